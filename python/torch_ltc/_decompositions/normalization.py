"""The decompositions of `renorm` and of weight normalization."""

from __future__ import annotations

import torch
from torch import Tensor


def renorm(x: Tensor, p: float, dim: int, maxnorm: float) -> Tensor:
    """Scales each slice along `dim` whose p-norm exceeds `maxnorm` to norm `maxnorm`.
    PyTorch's formula isn't used, because it casts a factor by a non-functional op (torch
    2.13)."""
    if isinstance(p, complex) or p <= 0:
        raise RuntimeError("renorm: non-positive-norm not supported")
    if maxnorm < 0:
        raise RuntimeError(f"renorm: expected maxnorm to be >= 0 but got {maxnorm}")
    if x.dim() < 2:
        raise RuntimeError(
            f"renorm: input needs at least 2 dimensions, got {x.dim()} dimensions"
        )
    others = [d for d in range(x.dim()) if d != dim % x.dim()]
    wide = torch.float32 if x.dtype in (torch.bfloat16, torch.float16) else x.dtype
    norm = torch.linalg.vector_norm(x, p, others, keepdim=True, dtype=wide)
    factor = torch.where(norm > maxnorm, maxnorm / (norm + 1e-7), 1.0)
    return (x * factor.to(x.dtype)).contiguous()


def _per_slice(x: Tensor, dim: int) -> tuple[list[int], list[int]]:
    """Returns the dims of a slice along `dim`, and the sizes of one number per slice."""
    others = [d for d in range(x.dim()) if d != dim]
    return others, [size if d == dim else 1 for d, size in enumerate(x.shape)]


def weight_norm(v: Tensor, g: Tensor, dim: int = 0) -> tuple[Tensor, Tensor]:
    """Returns v * (g / norm) and the norms of the slices along `dim`. Eager computes in
    float32 for bfloat16, and then also returns float32 norms."""
    others, sizes = _per_slice(v, dim)
    wide = torch.float32 if v.dtype == torch.bfloat16 else v.dtype
    norm = torch.linalg.vector_norm(v, 2, others, keepdim=True, dtype=wide)
    w = v.to(wide) * (g.to(wide).view(sizes) / norm)
    return w.to(v.dtype).contiguous(), norm.view(g.shape)


def weight_norm_backward(
    grad_w: Tensor, v: Tensor, g: Tensor, norms: Tensor, dim: int
) -> tuple[Tensor, Tensor]:
    others, sizes = _per_slice(v, dim)
    wide = norms.dtype
    norm, scale = norms.view(sizes), g.to(wide).view(sizes)
    grad, direction = grad_w.to(wide), v.to(wide)
    along = (grad * direction).sum(others, keepdim=True)
    grad_v = scale * (grad / norm - direction * (along / norm.pow(3)))
    grad_g = (along / norm).view(g.shape)
    return grad_v.to(v.dtype).contiguous(), grad_g.to(g.dtype)
