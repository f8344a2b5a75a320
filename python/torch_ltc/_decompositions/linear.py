"""Decompositions of distances, cross products and trilinear products."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor


def cdist_forward(x1: Tensor, x2: Tensor, p: float, compute_mode: int | None) -> Tensor:
    """Returns the p-norm of the difference of each pair of rows. For p = 2, eager may use a
    matrix product, which is less exact."""
    del compute_mode
    difference = x1.unsqueeze(-2) - x2.unsqueeze(-3)
    if p == math.inf:  # of eager's distances, only cdist's maximum ignores NaN
        difference = torch.where(difference.isnan(), 0.0, difference)
    return _norm(difference, p)


def cdist_backward(
    grad: Tensor, x1: Tensor, x2: Tensor, p: float, cdist: Tensor
) -> Tensor:
    difference = x1.unsqueeze(-2) - x2.unsqueeze(-3)
    grad, cdist = grad.unsqueeze(-1), cdist.unsqueeze(-1)
    made = _norm_gradient(grad, difference, p, cdist).sum(-2)
    return made.sum_to_size(x1.shape)


def pdist_forward(x: Tensor, p: float = 2.0) -> Tensor:
    i, j = _pairs(x)
    return _norm(x.index_select(0, i) - x.index_select(0, j), p)


def pdist_backward(grad: Tensor, x: Tensor, p: float, pdist: Tensor) -> Tensor:
    i, j = _pairs(x)
    difference = x.index_select(0, i) - x.index_select(0, j)
    made = _norm_gradient(grad.unsqueeze(-1), difference, p, pdist.unsqueeze(-1))
    return torch.zeros_like(x).index_add(0, i, made).index_add(0, j, -made)


def _pairs(x: Tensor) -> list[Tensor]:
    return list(torch.triu_indices(x.shape[0], x.shape[0], 1).to(x.device))


def _norm(x: Tensor, p: float) -> Tensor:
    if x.numel() == 0:  # amax would reject an empty dimension
        return x.sum(-1)
    if p == 0:  # denormals count as well; NaN gives NaN
        return x.abs().ceil().clamp(max=1).sum(-1)
    if p == math.inf:
        return x.abs().amax(-1)
    return torch.linalg.vector_norm(x, p, -1)


def _norm_gradient(grad: Tensor, x: Tensor, p: float, norm: Tensor) -> Tensor:
    """Returns the gradient of a norm, by the operations of eager's kernels: each of several
    equal maxima gets the whole gradient, and infinities and NaN stay in their places."""
    if p == 0:
        return torch.zeros_like(x)
    sign = torch.where(x.isnan(), x, x.sign())
    if p == 1:
        return grad * sign
    if p == math.inf:
        return grad * sign * (1 - (x.abs() - norm).abs().ceil().clamp(max=1))
    if p == 2:
        made = grad * x / norm
    elif p < 2:
        made = sign * x.abs().pow(p - 1) * grad / norm.pow(p - 1)
        if p < 1:
            made = torch.where(x == 0, 0.0, made)
    else:
        made = x * x.abs().pow(p - 2) * grad / norm.pow(p - 1)
    return torch.where(norm == 0, 0.0, made)


def cross(x: Tensor, other: Tensor, dim: int = -1) -> Tensor:
    """Returns the cross product of vectors of size 3 along `dim`, with row-major strides.
    Each product is rounded, as in eager, which matters for 16-bit floats. Raises ValueError
    for other sizes."""
    if x.dim() != other.dim() or x.size(dim) != 3 or other.size(dim) != 3:
        raise ValueError("no vectors in space")
    x, other = torch.broadcast_tensors(x, other)
    forth = x.roll(-1, dim) * other.roll(-2, dim)
    return (forth - x.roll(-2, dim) * other.roll(-1, dim)).contiguous()


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
    """Sums the products of three tensors over `sumdim`, after each was unsqueezed at its
    expanded dims. Like eager, first multiplies the first two tensors and sums the products
    over the dims that the third tensor lacks, and rounds these sums. Raises ValueError for a dim that no tensor has:
    its size is 0 in eager (torch 2.13), so eager's kernel runs instead."""
    del unroll_dim
    if set(expand1) & set(expand2) & set(expand3):
        raise ValueError("no tensor has this dim")
    for dim in expand1:
        i1 = i1.unsqueeze(dim)
    for dim in expand2:
        i2 = i2.unsqueeze(dim)
    for dim in expand3:
        i3 = i3.unsqueeze(dim)
    # Sums of 16-bit floats are rounded once.
    wide = torch.float32 if i1.dtype in (torch.float16, torch.bfloat16) else i1.dtype
    first = [dim for dim in sumdim if dim in expand3]
    both = i1.to(wide) * i2.to(wide)
    both = both.sum(first, keepdim=True) if first else both
    product = both.to(i1.dtype).to(wide) * i3.to(wide)
    return (product.sum(sumdim) if sumdim else product).to(i1.dtype)
