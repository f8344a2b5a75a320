"""Bags of embeddings."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from torch_ltc._decompositions.checks import zero_if


def _bag_maximum(
    rows: Tensor, kept: Tensor, bag: Tensor, place: Tensor, bags: int
) -> tuple[Tensor, Tensor]:
    """The maximum of each bag's kept `rows` and the position of the first row that has
    it.

    The gradient goes to that row only, as in eager; that of an empty bag is zero.
    """
    target = bag.unsqueeze(-1).expand_as(rows)
    with torch.no_grad():
        least = torch.full_like(rows[:1], -torch.inf).expand(bags, -1)
        masked = torch.where(kept, rows, -torch.inf)
        maximum = least.scatter_reduce(0, target, masked, "amax")
        holds = kept & (rows == maximum.gather(0, target))
        last = len(place)
        places = torch.where(holds, place.unsqueeze(-1), last)
        none = torch.full_like(maximum, last, dtype=place.dtype)
        first = none.scatter_reduce(0, target, places, "amin")
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
    """Rows of `weight` (rows, width), reduced by bag: sum, mean or maximum.

    Also returns each index's bag, the bags' sizes, and PyTorch's `max_indices`: for a
    maximum (bags, width) the row of each number. Eager returns zeros as sizes for sums,
    and no bags if one kernel adds all rows.
    """
    bags = offsets.numel() - int(include_last_offset)
    zero = _checked_offsets(offsets, indices.numel())
    rows_of = f"the valid range [0, {weight.shape[0]})"
    zero = zero + zero_if(
        (indices >= 0) & (indices < weight.shape[0]),
        f"An index of input takes a value which is not in {rows_of}",
    )
    indices = indices.clamp(0, weight.shape[0] - 1) + zero.to(indices.dtype)
    place = torch.arange(indices.numel(), dtype=offsets.dtype, device=weight.device)
    bag = torch.searchsorted(offsets[:bags].contiguous(), place, right=True) - 1
    rows = torch.embedding(weight, indices, padding_idx, scale_grad_by_freq, sparse)
    dtype = rows.dtype
    if per_sample_weights is not None:
        # Eager rounds the sum of products, not each of them.
        rows, scale = _widened(rows), _widened(per_sample_weights)
        rows = rows * scale.unsqueeze(-1)
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
        return result, bag, counts, indices[chosen]
    total = torch.zeros(bags, weight.shape[1], dtype=rows.dtype, device=weight.device)
    total = total.index_add(0, bag, rows).to(dtype)
    if mode == 1:
        total = total / counts.clamp(min=1).unsqueeze(-1).to(total.dtype)
        return total, bag, counts, counts.clone()
    if padding_idx < 0 and weight.dtype != torch.float64 and weight.stride(1) == 1:
        bag = bag.new_empty(0)
    return total, bag, torch.zeros_like(counts), torch.zeros_like(counts)


def embedding_bag_forward_only(
    weight: Tensor, indices: Tensor, offsets: Tensor, *args: Any, **kwargs: Any
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The sizes for sums have one element for each offset."""
    total, bag, sizes, chosen = embedding_bag(weight, indices, offsets, *args, **kwargs)
    mode = args[1] if len(args) > 1 else kwargs.get("mode", 0)
    if mode == 0:
        sizes = sizes.new_zeros(offsets.shape)
        chosen = torch.zeros_like(sizes)
    return total, bag, sizes, chosen
