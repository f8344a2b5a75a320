"""Draws values, dimensions and numbers for the rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from fuzz.arguments import SCALARS, is_float

if TYPE_CHECKING:
    from fuzz.drawing import Drawing

F32 = torch.float32


def some(d: Drawing, least: int = 0, most: int = 4, wanted=lambda t: True) -> str:
    """Picks or creates a value that satisfies `wanted` and has a rank of `least` to
    `most`."""

    def fits(t: torch.Tensor) -> bool:
        return least <= t.dim() <= most and bool(t.numel()) and wanted(t)

    name = d.pick(fits) if d.random.random() < 0.85 else None
    if name:
        return name
    for _ in range(20):
        dtype = d.dtype()
        if wanted(torch.empty([1] * least, dtype=dtype)):
            return d.leaf([max(s, 1) for s in d.shape(least, most)], dtype)
    raise ValueError("no dtype is wanted")


def floats(d: Drawing, rank: int) -> str:
    return some(d, rank, rank, is_float)


def any_dim(d: Drawing, tensor: torch.Tensor) -> int:
    rank = max(tensor.dim(), 1)
    return d.random.randrange(rank) - (rank if d.random.random() < 0.3 else 0)


def size_at(tensor: torch.Tensor, dim: int) -> int:
    return tensor.shape[dim] if tensor.dim() else 1


def scalar(d: Drawing):
    return d.random.choice(SCALARS)
