"""Decompositions of embedding bags and their gradients."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from torch_ltc._decompositions.checks import zero_if


def _bag_maximum(
    rows: Tensor, kept: Tensor, bag: Tensor, place: Tensor, bags: int
) -> tuple[Tensor, Tensor]:
    """Returns the elementwise maximum [bags, width] of each bag's kept `rows`, and for each
    element the position of the first row that contains it. Like eager's comparisons,
    ignores NaN except in a bag's first row."""
    target = bag.unsqueeze(-1).expand_as(rows)
    last = len(place)
    none = torch.full_like(rows[:1], last, dtype=place.dtype).expand(bags, -1)

    def first_of(mask: Tensor) -> Tensor:
        places = torch.where(mask, place.unsqueeze(-1), last)
        return none.scatter_reduce(0, target, places, "amin")

    least = torch.full_like(rows[:1], -torch.inf).expand(bags, -1)
    masked = torch.where(kept & ~rows.isnan(), rows, -torch.inf)
    maximum = least.scatter_reduce(0, target, masked, "amax")
    starts = first_of(kept).gather(0, target) == place.unsqueeze(-1)
    holds = (rows == maximum.gather(0, target)) | (starts & rows.isnan())
    first = first_of(kept & holds)
    found = first < last
    chosen = torch.where(found, first, 0)
    return torch.where(found, rows.gather(0, chosen), 0.0), chosen


def _widened(tensor: Tensor) -> Tensor:
    is_short = tensor.dtype in (torch.float16, torch.bfloat16)
    return tensor.float() if is_short else tensor


def _checked_offsets(offsets: Tensor, length: int) -> Tensor:
    if not offsets.numel():
        return torch.zeros((), dtype=torch.int64, device=offsets.device)
    return zero_if(
        offsets[0] == 0,
        "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to "
        "start from position 0.",
    ) + zero_if(
        offsets[-1] <= length,
        f"offsets[-1] can not be greater than input's length {length}",
    )


def embedding_bag(
    weight: Tensor,
    indices: Tensor,
    offsets: Tensor,
    scale_grad_by_freq: bool = False,
    mode: int = 0,
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int = -1,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Reduces rows of `weight` [rows, width] to bags [bags, width]. `mode`: 0 sum, 1 mean,
    2 maximum.

    Also returns `bag` (the bag of each index), the bags' sizes, and PyTorch's
    `max_indices`: for a maximum, the row of each element [bags, width]. As in eager, the
    sizes for sums are zeros, and `bag` is empty if eager computes the sums in one kernel.
    """
    common = torch.promote_types(indices.dtype, offsets.dtype)
    indices, offsets = indices.to(common), offsets.to(common)
    bags = offsets.numel() - int(include_last_offset)
    zero = _checked_offsets(offsets, indices.numel())
    rows_of = f"the valid range [0, {weight.shape[0]})"
    zero = zero + zero_if(
        (indices >= 0) & (indices < weight.shape[0]),
        f"An index of input takes a value which is not in {rows_of}",
    )
    indices = indices.clamp(0, weight.shape[0] - 1) + zero.to(indices.dtype)
    place = _places(indices, offsets)
    bag = _bag_of(place, offsets[:bags])
    rows = torch.embedding(weight, indices, padding_idx, scale_grad_by_freq, sparse)
    dtype = rows.dtype
    # Eager rounds only the complete sum of 16-bit floats, not its terms or partial sums.
    if mode != 2:
        rows = _widened(rows)
    if per_sample_weights is not None:
        rows = rows * _widened(per_sample_weights).unsqueeze(-1)
    ones = torch.ones_like(indices)
    if padding_idx >= 0:
        counted = indices != padding_idx
        rows = torch.where(counted.unsqueeze(-1), rows, 0.0)
        ones = torch.where(counted, ones, 0)
    counts = torch.zeros(bags, dtype=indices.dtype, device=weight.device)
    counts = counts.index_add(0, bag, ones)
    if mode == 2:
        kept = ones.bool().unsqueeze(-1).expand_as(rows)
        result, chosen = _bag_maximum(rows, kept, bag, place, bags)
        first = torch.where(counts.unsqueeze(-1) > 0, indices[chosen], 0)
        return result, bag.to(common), counts, first
    total = torch.zeros(bags, weight.shape[1], dtype=rows.dtype, device=weight.device)
    total = total.index_add(0, bag, rows).to(dtype)
    if mode == 1:
        total = total / counts.clamp(min=1).unsqueeze(-1).to(total.dtype)
        return total, bag.to(common), counts, counts.clone()
    if padding_idx < 0 and weight.dtype != torch.float64 and weight.stride(1) == 1:
        bag = bag.new_empty(0)
    return total, bag.to(common), torch.zeros_like(counts), torch.zeros_like(counts)


def _places(indices: Tensor, offsets: Tensor) -> Tensor:
    return torch.arange(indices.numel(), dtype=offsets.dtype, device=offsets.device)


def _bag_of(place: Tensor, offsets: Tensor) -> Tensor:
    return torch.searchsorted(offsets.contiguous(), place, right=True) - 1


def embedding_bag_backward(
    grad: Tensor,
    indices: Tensor,
    offsets: Tensor,
    bag: Tensor,
    sizes: Tensor,
    chosen: Tensor,
    rows: int,
    scale_grad_by_freq: bool,
    mode: int,
    sparse: bool,
    per_sample_weights: Tensor | None,
    padding_idx: int = -1,
) -> Tensor:
    """Returns the gradient of the weight [rows, width]. `bag`, `sizes` and `chosen` are
    results of `embedding_bag`. Raises NotImplementedError for a sparse gradient."""
    if sparse:
        raise NotImplementedError
    wide = _widened(grad)
    zeros = torch.zeros(rows, grad.shape[1], dtype=wide.dtype, device=grad.device)
    if mode == 2:
        filled = torch.where((sizes > 0).unsqueeze(-1), wide, 0.0)
        return zeros.scatter_add(0, chosen.long(), filled).to(grad.dtype)
    if bag.numel() != indices.numel():
        bag = _bag_of(_places(indices, offsets), offsets)
    scale = torch.ones_like(indices, dtype=wide.dtype)
    if per_sample_weights is not None:
        scale = per_sample_weights.to(wide.dtype)
    if scale_grad_by_freq:
        counts = torch.zeros(rows, dtype=indices.dtype, device=grad.device)
        counts = counts.index_add(0, indices, torch.ones_like(indices))
        scale = scale / counts.index_select(0, indices)
    if mode == 1:
        scale = scale / sizes.index_select(0, bag)
    made = wide.index_select(0, bag) * scale.unsqueeze(-1)
    if padding_idx >= 0:
        made = torch.where((indices != padding_idx).unsqueeze(-1), made, 0.0)
    return zeros.index_add(0, indices, made).to(grad.dtype)


def embedding_bag_per_sample_weights_backward(
    grad: Tensor,
    weight: Tensor,
    indices: Tensor,
    offsets: Tensor,
    bag: Tensor,
    mode: int,
    padding_idx: int = -1,
) -> Tensor:
    if bag.numel() != indices.numel():
        bag = _bag_of(_places(indices, offsets), offsets)
    rows = _widened(weight.index_select(0, indices))
    made = (rows * _widened(grad.index_select(0, bag))).sum(-1)
    if padding_idx >= 0:
        made = torch.where(indices != padding_idx, made, 0.0)
    return made.to(grad.dtype)


def embedding_bag_forward_only(
    weight: Tensor, indices: Tensor, offsets: Tensor, *args: Any, **kwargs: Any
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Computes `embedding_bag` without a gradient. As in eager, `sizes` and `max_indices`
    for sums then have an element for each offset."""
    total, bag, sizes, chosen = embedding_bag(weight, indices, offsets, *args, **kwargs)
    mode = args[1] if len(args) > 1 else kwargs.get("mode", 0)
    if mode == 0:
        sizes = sizes.new_zeros(offsets.shape)
        chosen = torch.zeros_like(sizes)
    return total, bag, sizes, chosen
