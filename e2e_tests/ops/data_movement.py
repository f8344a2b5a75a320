"""Ops that move elements: views, joins, pads."""

from __future__ import annotations

import torch
from ops.program import ALL, BOOL, FLOATS, NUMBERS, WIDE, Row, any_of
from torch.nn import functional as F

x = any_of(3, 4, 6)
m = any_of(4, 6)

VIEWS = [
    Row("view", lambda a: a.view(12, 6) + 1, (x,), ALL),
    Row("view-infer", lambda a: a.view(-1, 2, 3), (x,), ALL),
    Row("reshape-transposed", lambda a: a.transpose(0, 2).reshape(8, 9), (x,), ALL),
    Row("flatten", lambda a: a.flatten(1), (x,), ALL),
    Row("unflatten", lambda a: a.unflatten(2, (2, 3)), (x,), ALL),
    Row("expand", lambda a: a.expand(5, 3, 4, 6) * 1, (x,), NUMBERS),
    Row("expand_as", lambda a, b: a.expand_as(b), (any_of(4, 1), m), ALL),
    Row("permute", lambda a: a.permute(2, 0, 1), (x,), ALL),
    Row("transpose", lambda a: a.transpose(0, -1), (x,), ALL),
    Row("t", lambda a: a.t(), (m,), ALL),
    Row("movedim", lambda a: a.movedim(0, 2), (x,), ALL),
    Row("unsqueeze", lambda a: a.unsqueeze(1), (x,), ALL),
    Row("squeeze", lambda a: a.squeeze(), (any_of(1, 3, 1),), ALL),
    Row("squeeze-dim", lambda a: a.squeeze(0).squeeze(-1), (any_of(1, 3, 1),), ALL),
    Row("squeeze-dims", lambda a: a.squeeze((0, 2)), (any_of(1, 3, 1),), ALL),
    Row("select", lambda a: a[1] + a[-1], (x,), NUMBERS),
    Row("slice", lambda a: a[:, 1:3], (x,), ALL),
    Row("slice-step", lambda a: a[..., 1::2], (x,), ALL),
    Row("slice-empty", lambda a: a[3:], (x,), ALL),
    Row("narrow", lambda a: a.narrow(2, 1, 3), (x,), ALL),
    Row("newaxis-and-ellipsis", lambda a: a[None, ..., 0, :2], (x,), ALL),
    Row("diagonal", lambda a: a.diagonal(1, 1, 2), (x,), ALL),
    Row("diag-of-vector", torch.diag, (any_of(4),), NUMBERS),
    Row("unfold", lambda a: a.unfold(2, 3, 2), (x,), ALL),
    Row("as_strided", lambda a: a.as_strided((2, 3), (1, 2), 1), (m,), ALL, grad=False),
    Row("detach", lambda a: a.detach() * 2, (x,), NUMBERS, grad=False),
    Row("view_as", lambda a, b: a.view_as(b), (any_of(24), m), ALL),
]

LISTS = [
    Row("split", lambda a: a.split(2, 1), (x,), ALL),
    Row("split-rest", lambda a: a.split(4, 2), (x,), ALL),
    Row("split-sizes", lambda a: a.split([1, 3], 1), (x,), ALL),
    Row("chunk", lambda a: a.chunk(3, -1), (x,), ALL),
    Row("unbind", lambda a: a.unbind(0), (x,), ALL),
    Row("unbind-used", lambda a: sum(a.unbind(1)), (x,), NUMBERS),
    Row("tensor_split", lambda a: a.tensor_split(4, 2), (x,), ALL),
]

JOINS = [
    Row("cat", lambda a, b: torch.cat([a, b], 1), (any_of(2, 3), any_of(2, 5)), ALL),
    Row("cat-one", lambda a: torch.cat([a], 0), (m,), ALL),
    Row("cat-mixed", lambda a, b: torch.cat([a, b.long()]), (m, m), NUMBERS, grad=False),
    Row("cat-empty", lambda a, b: torch.cat([a, b], 0), (any_of(0, 6), m), ALL),
    Row("stack", lambda a, b: torch.stack([a, b], 1), (m, any_of(4, 6)), ALL),
    Row("hstack", lambda a, b: torch.hstack([a, b]), (m, any_of(4, 2)), ALL),
    Row("repeat", lambda a: a.repeat(2, 1, 3), (m,), ALL),
    Row("tile", lambda a: a.tile((2, 2)), (m,), ALL),
    Row("flip", lambda a: a.flip(0, 2), (x,), ALL),
    Row("roll", lambda a: a.roll((1, -2), (0, 2)), (x,), ALL),
    Row("roll-flat", lambda a: a.roll(5), (m,), ALL),
    Row("rot90", lambda a: torch.rot90(a), (m,), ALL),
    Row("tril", lambda a: a.tril(), (x,), ALL),
    Row("triu", lambda a: a.triu(1), (m,), ALL),
    Row("repeat_interleave", lambda a: a.repeat_interleave(3, 0), (m,), NUMBERS),
    Row("meshgrid", lambda a, b: torch.meshgrid(a, b, indexing="ij"), (any_of(3), any_of(4)), ALL),
]  # fmt: skip

PADS = [
    Row("pad", lambda a: F.pad(a, (1, 2, 0, 3)), (x,), ALL),
    Row("pad-value", lambda a: F.pad(a, (2, 0), value=7), (m,), NUMBERS),
    Row("pad-negative", lambda a: F.pad(a, (-1, 2)), (m,), NUMBERS),
    Row("pad-reflect-1d", lambda a: F.pad(a, (2, 1), "reflect"), (x,), FLOATS),
    Row("pad-reflect-2d", lambda a: F.pad(a, (2, 1, 1, 1), "reflect"), (any_of(2, 3, 4, 6),), FLOATS),
    Row("pad-reflect-3d", lambda a: F.pad(a, (1, 1, 0, 1, 1, 0), "reflect"), (any_of(1, 2, 3, 4, 3),), WIDE),
    Row("pad-replicate-3d", lambda a: F.pad(a, (2, 1, 0, 3, 1, 1), "replicate"), (any_of(1, 2, 3, 4, 3),), WIDE),
    Row("pad-replicate-1d", lambda a: F.pad(a, (2, 1), "replicate"), (x,), FLOATS),
    Row("pad-replicate-2d", lambda a: F.pad(a, (2, 1, 1, 1), "replicate"), (any_of(2, 3, 4, 6),), FLOATS),
    Row("pixel_shuffle", lambda a: F.pixel_shuffle(a, 2), (any_of(2, 8, 3, 3),), FLOATS),
    Row("pixel_unshuffle", lambda a: F.pixel_unshuffle(a, 2), (any_of(2, 2, 4, 6),), FLOATS),
]  # fmt: skip

# Gradients of views are separate ops. Most rows use the operand twice, so that the
# gradients of both uses are added.
GRADIENTS = [
    Row("grad-of-slices", lambda a: a[:, 1:] * a[:, :-1], (x,), FLOATS),
    Row("grad-of-selects", lambda a: a[0] * a[1] + a[2], (x,), FLOATS),
    Row("grad-of-diagonal", lambda a: a.diagonal() * a.sum(), (m,), FLOATS),
    Row("grad-of-unfold", lambda a: a.unfold(1, 3, 1) ** 2, (m,), FLOATS),
    Row("grad-of-expand", lambda a: a.expand(4, 6) * a, (any_of(1, 6),), FLOATS),
]

VIEW_WRITES = [
    Row(
        "slice_scatter",
        lambda a, b: a.slice_scatter(b, 1, 0, 4, 2),
        (m, any_of(4, 2)),
        ALL,
    ),
    Row("select_scatter", lambda a, b: a.select_scatter(b, 0, 2), (m, any_of(6)), ALL),
    Row("diagonal_scatter", lambda a, b: a.diagonal_scatter(b, 1), (m, any_of(4)), ALL),
    Row(
        "as_strided_scatter",
        lambda a, b: a.as_strided_scatter(b, (2, 3), (6, 1), 1),
        (m, any_of(2, 3)),
        ALL,
        grad=False,
    ),
    Row("slice-assignment", lambda a, b: _set(a.clone(), b), (x, any_of(4, 2)), ALL),
    Row("diagonal-fill", lambda a: _diagonal(a.clone()), (any_of(5, 5),), ALL),
    Row("transposed-write", lambda a: _transposed(a.clone()), (m,), ALL),
]


def _set(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    a[1, :, 2:4] = b
    a[0, 0] = a[2, 1]
    return a


def _diagonal(a: torch.Tensor) -> torch.Tensor:
    a.diagonal().fill_(1)
    return a


def _transposed(a: torch.Tensor) -> torch.Tensor:
    first_column = a.t()[0]
    first_column.zero_()
    return a if a.dtype is BOOL else a + first_column.sum()


EMPTY = [
    Row("cat-empty", lambda a: torch.cat([a, a]), (any_of(5, 0),), NUMBERS),
    Row("cumsum-empty", lambda a: a.cumsum(-1), (any_of(3, 0, 2),), NUMBERS),
]

ROWS = [*EMPTY, *VIEWS, *LISTS, *JOINS, *PADS, *GRADIENTS, *VIEW_WRITES]
