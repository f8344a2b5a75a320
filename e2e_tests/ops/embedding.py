"""Rows of a table by number."""

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
]  # fmt: skip
