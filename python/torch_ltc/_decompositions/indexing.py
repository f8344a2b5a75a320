"""Decompositions of the gradients of indexed writes and of searches."""

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


def isin(
    elements: Tensor,
    test_elements: Tensor,
    *,
    assume_unique: bool = False,
    invert: bool = False,
) -> Tensor:
    # As eager, sorts the elements to test against if there are many.
    is_sorted = test_elements.numel() >= 10 * elements.numel() ** 0.145
    if not is_sorted or assume_unique or not test_elements.is_floating_point():
        return torch._decomp.decompositions.isin(
            elements, test_elements, assume_unique=assume_unique, invert=invert
        )
    sorted_elements = test_elements.flatten().sort()[0]
    # A search that compares with NaN ends behind the NaNs, which sort last. PyTorch's
    # formula doesn't find the elements before them (2.13).
    ordered = sorted_elements.nan_to_num(torch.inf, torch.inf, -torch.inf)
    place = torch.searchsorted(ordered, elements.flatten())
    place = place.clamp(max=ordered.numel() - 1)
    found = sorted_elements[place] == elements.flatten()
    return (found.logical_not() if invert else found).reshape(elements.shape)
