"""Decompositions of order statistics of whole tensors."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from torch_ltc._decompositions import gradients


def median(x: Tensor) -> Tensor:
    """Returns the middle element, or the lower of two middle elements; NaN if any element
    is NaN (NaNs are sorted to the end)."""
    if not x.numel():  # returns NaN, or the integer to which the CPU converts it
        none = torch.tensor(math.nan, device="cpu").to(x.dtype).item()
        chosen = torch.full((), none, dtype=x.dtype, device=x.device)
        return chosen + x.sum() if x.is_floating_point() else chosen
    ordered = torch.sort(x.flatten())[0]
    middle = ordered[(x.numel() - 1) // 2].clone()
    if x.is_floating_point():
        middle = torch.where(ordered[-1].isnan(), ordered[-1], middle)
    return gradients.median(x, middle) if x.is_floating_point() else middle


def nanmedian(x: Tensor) -> Tensor:
    """Returns the middle one of the elements that aren't NaN, or the lower of two middle
    ones; NaN if all elements are NaN."""
    if not x.numel() or not x.is_floating_point():
        return median(x)
    ordered = torch.sort(x.flatten())[0]
    middle = ((~ordered.isnan()).sum() - 1).clamp(min=0) // 2
    chosen = ordered.gather(0, middle.reshape(1)).reshape(())
    return gradients.nanmedian(x, chosen)
