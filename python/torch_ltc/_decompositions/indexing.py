"""Decompositions of the gradients of indexed writes."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


def masked_scatter_backward(
    grad_output: Tensor, mask: Tensor, sizes: Sequence[int]
) -> Tensor:
    """Returns the gradients where the mask is true, in order, padded with zeros to
    `sizes`."""
    count = torch.Size(sizes).numel()
    mask = mask.expand_as(grad_output).flatten()
    place = torch.where(mask, mask.cumsum(0) - 1, count)
    gathered = grad_output.new_zeros(max(count, mask.numel()) + 1)
    gathered = gathered.scatter(0, place, grad_output.flatten())
    return gathered.narrow(0, 0, count).reshape(sizes)
