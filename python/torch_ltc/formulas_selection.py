"""Distances, order statistics, embedding bags, products: formulas of ops for which
PyTorch itself has none, or none that agrees with its kernels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch._prims_common import suggest_memory_format

from torch_ltc.formulas_checks import zero_if


def cdist_forward(x1: Tensor, x2: Tensor, p: float, compute_mode: int | None) -> Tensor:
    """Norms of all differences; eager may use a matrix product for p = 2, which is less
    exact."""
    del compute_mode
    return _norm(x1.unsqueeze(-2) - x2.unsqueeze(-3), p)


def _norm(x: Tensor, p: float) -> Tensor:
    if x.numel() == 0:  # also for the maximum of an empty tensor
        return x.sum(-1)
    if p == 0:  # these ops have a gradient of zeros
        return x.sign().square().sum(-1)
    return torch.linalg.vector_norm(x, p, -1)


def pdist_forward(x: Tensor, p: float = 2.0) -> Tensor:
    i, j = torch.triu_indices(x.shape[0], x.shape[0], 1).to(x.device)
    return _norm(x.index_select(0, i) - x.index_select(0, j), p)


def multi_margin_loss(x: Tensor, target: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    from torch._decomp import decomposition_table

    formula = decomposition_table[torch.ops.aten.multi_margin_loss.default]
    classes = x.shape[-1] if x.dim() else 1
    zero = zero_if((target >= 0) & (target < classes), "target out of range")
    return formula(x, target.clamp(0, classes - 1) + zero, *args, **kwargs)


def multilabel_margin_loss_forward(
    x: Tensor, target: Tensor, reduction: int
) -> tuple[Tensor, Tensor]:
    """PyTorch's formula (torch 2.13) also counts the positions after the last class."""
    if x.dim() > 2 or x.shape[-1:] == (0,):
        raise RuntimeError(
            "Expected non-empty vector or matrix with optional 0-dim batch size, "
            f"but got: {list(x.shape)}"
        )
    if target.shape != x.shape:
        raise RuntimeError(
            f"inconsistent target size: {list(target.shape)} for input of size: "
            f"{list(x.shape)}"
        )
    scores, classes = torch.atleast_2d(x), torch.atleast_2d(target)
    count = scores.shape[1]
    places = torch.arange(count, device=x.device)
    ends = torch.where(classes == -1, places, count).amin(1, keepdim=True)
    is_given = places < ends
    of_given = scores.gather(1, torch.where(is_given, classes, 0).clamp(0, count - 1))
    is_target = (torch.where(is_given, classes, -1).unsqueeze(2) == places).any(1)
    # [sample, given class, other class]
    margins = (1 - of_given.unsqueeze(2) + scores.unsqueeze(1)).clamp_min(0) / count
    counts = is_given.unsqueeze(2) & ~is_target.unsqueeze(1)
    zero = zero_if(
        (classes >= -1) & (classes < count), "argument #2 'target' is out of range"
    )
    loss = torch.where(counts, margins, 0).sum((1, 2)) + zero.to(x.dtype)
    if reduction:  # 1 is the mean, 2 the sum
        loss = loss.mean() if reduction == 1 else loss.sum()
    elif x.dim() <= 1:
        loss = loss.reshape(())
    return loss, is_target.to(x.dtype).reshape(x.shape)


def renorm(x: Tensor, p: float, dim: int, maxnorm: float) -> Tensor:
    """PyTorch's formula casts a factor by a non-functional op (torch 2.13)."""
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
    del unroll_dim
    for dim in expand1:
        i1 = i1.unsqueeze(dim)
    for dim in expand2:
        i2 = i2.unsqueeze(dim)
    for dim in expand3:
        i3 = i3.unsqueeze(dim)
    product = i1 * i2 * i3
    return product.sum(sumdim) if sumdim else product


def _with_shared_gradient(x: Tensor, chosen: Tensor) -> Tensor:
    """`chosen`, an element of x; its gradient is distributed equally among all elements
    that equal it."""
    if not x.is_floating_point():
        return chosen
    chosen = chosen.detach()
    equal = (x == chosen) & x.isfinite()
    zero = torch.where(equal, x - x.detach(), 0.0).sum()
    return chosen + zero / equal.sum().clamp(min=1)


def median(x: Tensor) -> Tensor:
    """The lower of two middle elements; NaN if there is one (NaNs are sorted to the
    end)."""
    if not x.numel():  # NaN, which becomes the lowest integer
        lowest = torch.iinfo(x.dtype).min if not x.is_floating_point() else math.nan
        return torch.full((), lowest, dtype=x.dtype, device=x.device)
    ordered = torch.sort(x.flatten())[0]
    middle = ordered[(x.numel() - 1) // 2].clone()
    if x.is_floating_point():
        middle = torch.where(ordered[-1].isnan(), ordered[-1], middle)
    return _with_shared_gradient(x, middle)


def nanmedian(x: Tensor) -> Tensor:
    """The lower of two middle elements; NaN if there is nothing else."""
    if not x.numel() or not x.is_floating_point():
        return median(x)
    ordered = torch.sort(x.flatten())[0]
    middle = ((~ordered.isnan()).sum() - 1).clamp(min=0) // 2
    chosen = ordered.gather(0, middle.reshape(1)).reshape(())
    return _with_shared_gradient(x, chosen)


def narrow_copy(x: Tensor, dim: int, start: int, length: int) -> Tensor:
    return x.narrow(dim, start, length).clone(memory_format=torch.contiguous_format)


def masked_scatter_backward(
    grad_output: Tensor, mask: Tensor, sizes: Sequence[int]
) -> Tensor:
    """The gradients where the mask is true, in order, padded with zeros."""
    count = torch.Size(sizes).numel()
    mask = mask.expand_as(grad_output).flatten()
    place = torch.where(mask, mask.cumsum(0) - 1, count)
    gathered = grad_output.new_zeros(max(count, mask.numel()) + 1)
    gathered = gathered.scatter(0, place, grad_output.flatten())
    return gathered.narrow(0, 0, count).reshape(sizes)


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
    if per_sample_weights is not None:
        rows = rows * per_sample_weights.unsqueeze(-1)
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
    total = total.index_add(0, bag, rows)
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


def channel_shuffle(x: Tensor, groups: int) -> Tensor:
    from torch._decomp import decomposition_table

    formula = decomposition_table[torch.ops.aten.channel_shuffle.default]
    return formula(x, groups).contiguous(memory_format=suggest_memory_format(x))


def _with_grid_gradient(result: Tensor, grid: Tensor) -> Tensor:
    """The nearest element doesn't depend on the grid: its gradient is zero."""
    never = torch.zeros((), dtype=torch.bool, device=result.device)
    return torch.where(never, grid.sum().to(result.dtype), result)


def grid_sampler_2d(
    x: Tensor,
    grid: Tensor,
    interpolation_mode: int,
    padding_mode: int,
    align_corners: bool,
) -> Tensor:
    from torch._decomp import decomposition_table

    formula = decomposition_table[torch.ops.aten.grid_sampler_2d.default]
    result = formula(x, grid, interpolation_mode, padding_mode, align_corners)
    result = result.contiguous()
    return _with_grid_gradient(result, grid) if interpolation_mode == 1 else result


def grid_sampler_3d(
    x: Tensor,
    grid: Tensor,
    interpolation_mode: int,
    padding_mode: int,
    align_corners: bool,
) -> Tensor:
    """Interpolation between the eight voxels (or from the nearest one) around each
    point of the grid; mode 0 bilinear, 1 nearest; padding 0 zeros, 1 border, 2
    reflection."""
    batch, channels, *sizes = x.shape
    points = [
        _source(grid[..., 2 - i], size, padding_mode, align_corners)
        for i, size in enumerate(sizes)
    ]
    flat = x.reshape(batch, channels, -1)
    if interpolation_mode == 1:
        nearest = _voxels(flat, [p.round() for p in points], sizes)
        return _with_grid_gradient(nearest.contiguous(), grid)
    lows = [p.floor() for p in points]
    total = None
    for corner in range(8):
        places, weight = [], None
        for i, (point, low) in enumerate(zip(points, lows)):
            upper = bool(corner >> (2 - i) & 1)
            place = low + 1 if upper else low
            share = point - low if upper else low + 1 - point
            places.append(place)
            weight = share if weight is None else weight * share
        part = _voxels(flat, places, sizes) * weight.unsqueeze(1)
        total = part if total is None else total + part
    return total.contiguous()


def _source(points: Tensor, size: int, padding_mode: int, align: bool) -> Tensor:
    """From [-1, 1] to voxel positions."""
    unit = (points + 1) / 2
    place = unit * (size - 1) if align else unit * size - 0.5
    if padding_mode == 2:
        low, high = (0, size - 1) if align else (-0.5, size - 0.5)
        place = _reflect(place, low, high)
    return place if padding_mode == 0 else place.clamp(0, size - 1)


def _reflect(place: Tensor, low: float, high: float) -> Tensor:
    span = high - low
    if span <= 0:
        return torch.zeros_like(place)
    distance = (place - low).abs()
    extra = torch.fmod(distance, span)
    flips = (distance / span).floor()
    return torch.where(torch.fmod(flips, 2) == 0, extra + low, high - extra)


def _voxels(flat: Tensor, places: list[Tensor], sizes: list[int]) -> Tensor:
    """Zero for a position outside."""
    inside, position = None, None
    for place, size in zip(places, sizes):
        within = (place >= 0) & (place <= size - 1)
        index = place.clamp(0, size - 1).to(torch.int64)
        inside = within if inside is None else inside & within
        position = index if position is None else position * size + index
    batch, channels = flat.shape[:2]
    index = position.reshape(batch, 1, -1).expand(-1, channels, -1)
    values = flat.gather(2, index).reshape(batch, channels, *position.shape[1:])
    return torch.where(inside.unsqueeze(1), values, 0.0)


def mvlgamma(x: Tensor, p: int) -> Tensor:
    """Rounded after each step in 16-bit floats, as eager does."""
    dtype = x.dtype if x.is_floating_point() else torch.get_default_dtype()
    halves = torch.arange(-p * 0.5 + 0.5, 0.5, 0.5, dtype=dtype, device=x.device)
    terms = (halves + x.unsqueeze(-1)).lgamma()
    return terms.sum(-1) + p * (p - 1) * math.log(math.pi) * 0.25
