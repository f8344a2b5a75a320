"""Order statistics of whole tensors."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from torch_ltc._decompositions import gradients


def median(x: Tensor) -> Tensor:
    """The lower of two middle elements; NaN if there is one (NaNs are sorted to the
    end)."""
    if not x.numel():  # NaN, or the integer that the processor makes of it
        none = torch.tensor(math.nan, device="cpu").to(x.dtype).item()
        chosen = torch.full((), none, dtype=x.dtype, device=x.device)
        return chosen + x.sum() if x.is_floating_point() else chosen
    ordered = torch.sort(x.flatten())[0]
    middle = ordered[(x.numel() - 1) // 2].clone()
    if x.is_floating_point():
        middle = torch.where(ordered[-1].isnan(), ordered[-1], middle)
    return gradients.median(x, middle) if x.is_floating_point() else middle


def nanmedian(x: Tensor) -> Tensor:
    """The lower of two middle elements; NaN if there is nothing else."""
    if not x.numel() or not x.is_floating_point():
        return median(x)
    ordered = torch.sort(x.flatten())[0]
    middle = ((~ordered.isnan()).sum() - 1).clamp(min=0) // 2
    chosen = ordered.gather(0, middle.reshape(1)).reshape(())
    return gradients.nanmedian(x, chosen)
