"""Decompositions of the ops of `torch.amp.GradScaler`, which scales losses.

These ops write to their operands; functionalization calls the functional forms below.
"""

from __future__ import annotations

import torch
from torch import Tensor


def non_finite_check_and_unscale(
    gradients: list[Tensor], found: Tensor, inverse: Tensor
) -> tuple[list[Tensor], Tensor]:
    """Returns the gradients times `inverse`, and 1.0 in place of `found` if an element is
    infinite or NaN (then the maximum norm of its tensor is, too). Like eager, multiplies
    16-bit gradients in float32."""
    largest = [
        torch.linalg.vector_norm(gradient, float("inf")).double()
        for gradient in gradients
        if gradient.numel()
    ]
    if not largest:
        raise RuntimeError("no elements")
    is_finite = torch.stack(largest).isfinite().all()
    scaled = []
    for gradient in gradients:
        wide = torch.promote_types(gradient.dtype, torch.float32)
        factor = inverse.reshape(()).to(wide)
        scaled.append((gradient.to(wide) * factor).to(gradient.dtype))
    return scaled, torch.where(is_finite, found, 1.0)


def update_scale(
    scale: Tensor,
    tracker: Tensor,
    found: Tensor,
    growth: float,
    backoff: float,
    interval: int,
) -> tuple[Tensor, Tensor]:
    """Returns the new scale and growth tracker. Like eager, multiplies in double."""
    was_found = found != 0
    steps = tracker + 1
    is_due = steps == interval
    grown = (scale.double() * growth).to(scale.dtype)
    kept = torch.where(is_due & grown.isfinite(), grown, scale)
    reduced = (scale.double() * backoff).to(scale.dtype)
    return (
        torch.where(was_found, reduced, kept),
        torch.where(was_found | is_due, 0, steps),
    )
