"""Reads and writes at indices that a tensor contains."""

from __future__ import annotations

import torch
from ops.program import (
    ALL,
    FLOATS,
    INTS,
    NUMBERS,
    WIDE,
    Row,
    any_of,
    distinct,
    index,
    mask,
)

x = any_of(4, 5, 6)
m = any_of(5, 6)


def _put(a, i, j, values, accumulate=False):
    return a.index_put((i, j), values, accumulate=accumulate)


ROWS = [
    Row("index_select", lambda a, i: a.index_select(1, i), (x, index(5, 7)), ALL),
    Row("gather", lambda a, i: a.gather(1, i), (m, index(6, 5, 3)), ALL),
    Row("take_along_dim", lambda a, i: torch.take_along_dim(a, i, 0), (m, index(5, 2, 6)), ALL),
    Row("index", lambda a, i: a[i], (x, index(4, 3)), ALL),
    Row("index-two", lambda a, i, j: a[i, j], (x, index(4, 3), index(5, 3)), ALL),
    Row("index-broadcast", lambda a, i, j: a[i[:, None], j], (x, index(4, 2), index(5, 3)), ALL),
    Row("index-apart", lambda a, i, j: a[i, :, j], (x, index(4, 3), index(6, 3)), ALL),
    Row("index-last", lambda a, i: a[..., i], (x, index(6, 3)), ALL),
    Row("index-negative", lambda a: a[torch.tensor([-1, 0], device=a.device)], (x,), ALL),
    Row("index-list", lambda a: a[[2, 0, 1]], (x,), ALL),
    Row("index_put", lambda a, v: _put(a, *_places(a), v), (m, any_of(3)), ALL),
    Row("index_put-accumulate", lambda a, i, j, v: _put(a, i, j, v, True), (m, index(5, 7), index(6, 7), any_of(7)), NUMBERS),
    Row("index-assignment", lambda a, i: _assign(a.clone(), i), (x, index(4, 2)), NUMBERS),
    Row("scatter", lambda a, v: a.scatter(1, _permutation(a), v), (m, any_of(5, 6)), ALL),
    Row("scatter-value", lambda a, i: a.scatter(1, i, 2), (m, index(6, 5, 2)), ALL),
    Row("scatter_add", lambda a, i, v: a.scatter_add(0, i, v), (m, index(5, 5, 6), any_of(5, 6)), NUMBERS),
    Row("scatter_reduce-amax", lambda a, i, v: a.scatter_reduce(1, i, v, "amax"), (m, index(6, 5, 4), any_of(5, 4)), NUMBERS, grad=False),
    Row("scatter_reduce-mean", lambda a, i, v: a.scatter_reduce(1, i, v, "mean"), (m, index(6, 5, 4), any_of(5, 4)), FLOATS, grad=False),
    Row("index_add", lambda a, i, v: a.index_add(0, i, v), (m, index(5, 3), any_of(3, 6)), NUMBERS),
    Row("index_copy", lambda a, v: a.index_copy(0, _rows(a), v), (m, any_of(2, 6)), ALL),
    Row("index_fill", lambda a: a.index_fill(1, _rows(a), 2), (m,), NUMBERS),
    Row("masked_scatter", lambda a, k, v: a.masked_scatter(k, v), (m, mask(5, 6), any_of(5, 6)), ALL),
    Row("masked_scatter-few", lambda a, k, v: a.masked_scatter(k & _begin(a), v), (m, mask(5, 6), any_of(12)), ALL),
    Row("index_fill-tensor", lambda a: a.index_fill(1, _rows(a), a[0, 0].detach()), (m,), NUMBERS),
    Row("index_reduce-mean", lambda a, s: a.index_reduce(0, _rows(a), s, "mean"), (m, any_of(2, 6)), WIDE, grad=False),
    Row("index_reduce-amax", lambda a, s: a.index_reduce(0, _rows(a), s, "amax", include_self=False), (m, any_of(2, 6)), NUMBERS, grad=False),
    Row("scatter-reduce-multiply", lambda a, i, s: a.scatter(1, i, s, reduce="multiply"), (m, index(6, 5, 3), any_of(5, 3)), WIDE, grad=False),
    Row("put", lambda a, s: a.put(_rows(a), s), (m, any_of(2)), NUMBERS),
    Row("take", lambda a: a.take(_rows(a)), (m,), NUMBERS),
    Row("take-one", lambda a: a.take(_rows(a)[0]), (m,), NUMBERS),
    Row("take-from-the-end", lambda a: a.take(-1 - _rows(a)), (m,), NUMBERS),
    Row("searchsorted", lambda a, b: torch.searchsorted(b.sort().values, a, right=True), (m, any_of(5, 7)), NUMBERS, grad=False),
    Row("searchsorted-sorter", lambda a, b: torch.searchsorted(b, a, sorter=b.argsort()), (m, distinct(5, 7)), FLOATS, grad=False),
    Row("isin", lambda a: torch.isin(a, _rows(a)), (m,), INTS, grad=False),
    Row("bucketize", lambda a, b: torch.bucketize(a, b.sort().values), (m, distinct(7)), FLOATS, grad=False),
    Row("one_hot-by-hand", lambda a, i: (i[:, None] == torch.arange(5, device=i.device)).to(a.dtype) @ a, (m, index(5, 3)), FLOATS),
    Row("masked_select", lambda a, k: a.masked_select(k), (m, mask(5, 6)), NUMBERS),
    Row("nonzero", lambda a: (a > 0).nonzero(), (m,), NUMBERS, grad=False, reason="the size depends on values"),
    Row("boolean-index", lambda a, k: a[k], (m, mask(5)), NUMBERS),
    Row("boolean-index-of-columns", lambda a, k: a[:, k], (m, mask(6)), NUMBERS),
    Row("boolean-assignment", lambda a, k, v: a.index_put((k,), v), (m, mask(5), any_of(6)), NUMBERS),
    Row("boolean-assignment-to-columns", lambda a, k, v: _assign_columns(a * 1, k, v), (m, mask(6), any_of(5, 1)), NUMBERS),
    Row("unique", lambda a: torch.unique(a), (m,), NUMBERS[3:], grad=False, reason="the size depends on values"),
]  # fmt: skip


def _places(a: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns three different positions, so that the order of writes doesn't matter."""
    rows = torch.tensor([0, 2, 4], device=a.device)
    columns = torch.tensor([5, 1, 0], device=a.device)
    return rows, columns


def _begin(a: torch.Tensor) -> torch.Tensor:
    return torch.arange(6, device=a.device) < 2


def _permutation(a: torch.Tensor) -> torch.Tensor:
    return torch.tensor([3, 0, 5, 1, 4, 2], device=a.device).expand(5, 6)


def _rows(a: torch.Tensor) -> torch.Tensor:
    return torch.tensor([3, 1], device=a.device)


def _assign_columns(a: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    a[:, k] = v
    return a


def _assign(a: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
    a[i] = 3
    a[:, i] += 1
    return a
