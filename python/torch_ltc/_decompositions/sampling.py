"""Samples of images at the points of a grid."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor


def _with_grid_gradient(result: Tensor, grid: Tensor) -> Tensor:
    """The nearest element doesn't depend on the grid: its gradient is zero (and dense,
    not an expanded number)."""
    never = torch.zeros((), dtype=torch.bool, device=result.device)
    return torch.where(never, (grid * 0).sum().to(result.dtype), result)


def grid_sampler_2d(
    x: Tensor,
    grid: Tensor,
    interpolation_mode: int,
    padding_mode: int,
    align_corners: bool,
) -> Tensor:
    """PyTorch's formula, except for the nearest element, which depends on how positions
    are rounded."""
    from torch._decomp import decomposition_table

    if interpolation_mode == 1:
        sizes = list(x.shape[2:])
        points = [
            _source(grid[..., 1 - i], size, padding_mode, align_corners, _reflect_twice)
            for i, size in enumerate(sizes)
        ]
        flat = x.reshape(*x.shape[:2], -1)
        nearest = _voxels(flat, [p.round() for p in points], sizes)
        return _with_grid_gradient(nearest.contiguous(), grid)
    formula = decomposition_table[torch.ops.aten.grid_sampler_2d.default]
    result = formula(x, grid, interpolation_mode, padding_mode, align_corners)
    return result.contiguous()


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
        _source(grid[..., 2 - i], size, padding_mode, align_corners, _reflect)
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


def _source(
    points: Tensor,
    size: int,
    padding_mode: int,
    align: bool,
    reflect: Callable[[Tensor, float, float], Tensor],
) -> Tensor:
    """From [-1, 1] to voxel positions."""
    unit = (points + 1) / 2
    place = unit * (size - 1) if align else unit * size - 0.5
    if padding_mode == 2:
        low, high = (0, size - 1) if align else (-0.5, size - 0.5)
        place = reflect(place, low, high)
    return place if padding_mode == 0 else place.clamp(0, size - 1)


def _reflect(place: Tensor, low: float, high: float) -> Tensor:
    span = high - low
    if span <= 0:
        return torch.zeros_like(place)
    distance = (place - low).abs()
    extra = torch.fmod(distance, span)
    flips = (distance / span).floor()
    return torch.where(torch.fmod(flips, 2) == 0, extra + low, high - extra)


def _reflect_twice(place: Tensor, low: float, high: float) -> Tensor:
    """The same with the roundings of eager's kernel for images."""
    twice = 2 * (high - low)
    if twice <= 0:
        return torch.zeros_like(place)
    distance = (place - low).abs()
    extra = distance - (distance / twice).trunc() * twice
    return torch.minimum(extra, twice - extra) + low


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
