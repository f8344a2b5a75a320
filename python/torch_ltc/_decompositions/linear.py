"""Distances and products of more than two operands."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor


def cdist_forward(x1: Tensor, x2: Tensor, p: float, compute_mode: int | None) -> Tensor:
    """Norms of all differences; eager may use a matrix product for p = 2, which is less
    exact."""
    del compute_mode
    return _norm(x1.unsqueeze(-2) - x2.unsqueeze(-3), p)


def _norm(x: Tensor, p: float) -> Tensor:
    if x.numel() == 0:  # also for the maximum of an empty tensor
        return x.sum(-1)
    if p == 0:  # these ops have a gradient of zeros
        return x.sign().square().sum(-1)
    if p == math.inf:
        return _largest(x.abs())
    return torch.linalg.vector_norm(x, p, -1)


def _largest(x: Tensor) -> Tensor:
    """Equal maxima have the whole gradient each, of which `amax` gives them a part."""
    largest = x.detach().amax(-1, keepdim=True)
    changes = torch.where((x == largest) & x.isfinite(), x - x.detach(), 0)
    return largest.squeeze(-1) + changes.sum(-1)


def cross(x: Tensor, other: Tensor, dim: int = -1) -> Tensor:
    """Eager rounds each product, which matters in 16 bits."""
    if x.dim() != other.dim() or x.size(dim) != 3 or other.size(dim) != 3:
        raise ValueError("no vectors in space")
    x, other = torch.broadcast_tensors(x, other)
    forth = x.roll(-1, dim) * other.roll(-2, dim)
    return forth - x.roll(-2, dim) * other.roll(-1, dim)


def pdist_forward(x: Tensor, p: float = 2.0) -> Tensor:
    i, j = torch.triu_indices(x.shape[0], x.shape[0], 1).to(x.device)
    return _norm(x.index_select(0, i) - x.index_select(0, j), p)


def trilinear(
    i1: Tensor,
    i2: Tensor,
    i3: Tensor,
    expand1: Sequence[int],
    expand2: Sequence[int],
    expand3: Sequence[int],
    sumdim: Sequence[int],
    unroll_dim: int = 1,
) -> Tensor:
    """Sums of products of three tensors of size 1 in the dims where they are expanded.
    Like eager, first sums the products of two over the dims that the third doesn't
    have, and rounds them."""
    del unroll_dim
    for dim in expand1:
        i1 = i1.unsqueeze(dim)
    for dim in expand2:
        i2 = i2.unsqueeze(dim)
    for dim in expand3:
        i3 = i3.unsqueeze(dim)
    # Sums of 16-bit numbers are rounded once.
    wide = torch.float32 if i1.dtype in (torch.float16, torch.bfloat16) else i1.dtype
    first = [dim for dim in sumdim if dim in expand3]
    both = i1.to(wide) * i2.to(wide)
    both = both.sum(first, keepdim=True) if first else both
    product = both.to(i1.dtype).to(wide) * i3.to(wide)
    return (product.sum(sumdim) if sumdim else product).to(i1.dtype)
