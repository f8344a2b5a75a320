"""Embeddings: rows of a table by index."""

from __future__ import annotations

from ops.program import FLOATS, I32, Row, any_of, index
from torch.nn import functional as F

table = any_of(9, 4)

ROWS = [
    Row("embedding", lambda w, i: F.embedding(i, w), (table, index(9, 2, 5)), FLOATS),
    Row("embedding-padding", lambda w, i: F.embedding(i, w, padding_idx=3), (table, index(9, 2, 25)), FLOATS),
    Row("embedding-int32", lambda w, i: F.embedding(i.to(I32), w), (table, index(9, 6)), FLOATS),
    Row("embedding-repeated", lambda w, i: F.embedding(i * 0 + 2, w), (table, index(9, 6)), FLOATS),
    Row("embedding-scaled", lambda w, i: F.embedding(i, w, scale_grad_by_freq=True), (table, index(9, 12)), FLOATS[:2]),
    Row("embedding-tied", lambda w, i: F.embedding(i, w) @ w.t(), (table, index(9, 6)), FLOATS),
    Row("one_hot", lambda w, i: F.one_hot(i, 9).to(w.dtype) @ w, (table, index(9, 6)), FLOATS),
    Row("embedding-max_norm", lambda w, i: F.embedding(i, w.detach() * 2, max_norm=1.0), (table, index(9, 6)), FLOATS),
    Row("bag-sum", lambda w, i: F.embedding_bag(i, w), (table, index(9, 4, 3)), FLOATS),
    Row("bag-mean", lambda w, i: F.embedding_bag(i, w, offsets=i.new_tensor([0, 2, 2, 5]), mode="mean"), (table, index(9, 9)), FLOATS),
    Row("bag-max", lambda w, i: F.embedding_bag(i, w, mode="max"), (table, index(9, 4, 3)), FLOATS),
    Row("bag-max-empty", lambda w, i: F.embedding_bag(i, w, offsets=i.new_tensor([0, 2, 2, 5, 9]), mode="max"), (table, index(9, 9)), FLOATS),
    Row("bag-max-padding", lambda w, i: F.embedding_bag(i % 3, w, mode="max", padding_idx=1), (table, index(9, 4, 3)), FLOATS),
]  # fmt: skip
