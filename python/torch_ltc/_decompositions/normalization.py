"""The decomposition of `renorm`."""

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
