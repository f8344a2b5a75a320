"""Decompositions of affine grids and of sampling at the points of a grid."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor


def _with_grid_gradient(result: Tensor, grid: Tensor) -> Tensor:
    """Makes `result`, the elements nearest to the points of the grid, depend on the grid
    with a gradient of zeros. The gradient is dense, not an expanded scalar."""
    never = torch.zeros((), dtype=torch.bool, device=result.device)
    return torch.where(never, (grid * 0).sum().to(result.dtype), result)


def affine_grid_generator(
    theta: Tensor, size: list[int], align_corners: bool
) -> Tensor:
    """Returns the positions of an affine grid, by eager's operations. Their rounding
    matters: the identity's positions are the centers of pixels, where the gradient of a
    sample jumps."""
    batch, _, *extents = size
    rank = len(extents)
    options = {"dtype": theta.dtype, "device": theta.device}
    parts = []
    for axis, extent in enumerate(reversed(extents)):
        shape = [1] * (rank + 1)
        shape[rank - 1 - axis] = -1
        parts.append(_steps(extent, align_corners, options).reshape(shape))
    parts.append(torch.ones([1] * (rank + 1), **options))
    base = torch.cat([part.expand(*extents, 1) for part in parts], -1)
    base = base.reshape(1, -1, rank + 1).expand(batch, -1, -1)
    return base.bmm(theta.transpose(1, 2)).reshape(batch, *extents, rank)


def _steps(extent: int, align_corners: bool, options: dict[str, Any]) -> Tensor:
    """Returns the positions of `extent` pixels. The bounds -1 and 1 are the outer edges of
    the image, or with `align_corners` the centers of its first and last pixel."""
    if extent <= 1:
        return torch.zeros(1, **options)
    steps = torch.linspace(-1, 1, extent, **options)
    return steps if align_corners else steps * (extent - 1) / extent


def grid_sampler_2d(
    x: Tensor,
    grid: Tensor,
    interpolation_mode: int,
    padding_mode: int,
    align_corners: bool,
) -> Tensor:
    """Samples images at the points of a grid, bicubically by PyTorch's formula. Linear and
    nearest samples use eager's operations instead, because the rounding of positions
    determines which element is the nearest, and on which side of a pixel's center the
    gradient is taken."""
    if interpolation_mode != 2:
        return _sample(
            x, grid, interpolation_mode, padding_mode, align_corners, _reflect_twice
        )
    from torch._decomp import decomposition_table

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
    return _sample(x, grid, interpolation_mode, padding_mode, align_corners, _reflect)


def _sample(
    x: Tensor,
    grid: Tensor,
    interpolation_mode: int,
    padding_mode: int,
    align: bool,
    reflect: Callable[[Tensor, float, float], Tensor],
) -> Tensor:
    """Samples `x` at each point of the grid. `interpolation_mode`: 0 linear, 1 nearest;
    `padding_mode`: 0 zeros, 1 border, 2 reflection."""
    batch, channels, *sizes = x.shape
    points = [
        _source(grid[..., len(sizes) - 1 - i], size, padding_mode, align, reflect)
        for i, size in enumerate(sizes)
    ]
    flat = x.reshape(batch, channels, -1)
    if interpolation_mode == 0:
        return _between(flat, points, sizes)
    nearest, _ = _voxels(flat, [p.round() for p in points], sizes)
    return _with_grid_gradient(nearest.contiguous(), grid)


def _between(flat: Tensor, points: list[Tensor], sizes: list[int]) -> Tensor:
    """Interpolates linearly between the 2^rank elements around each point."""
    rank = len(points)
    lows = [p.floor() for p in points]
    total = None
    for corner in range(2**rank):
        places, weight = [], None
        for i, (point, low) in enumerate(zip(points, lows)):
            upper = bool(corner >> (rank - 1 - i) & 1)
            place = low + 1 if upper else low
            share = point - low if upper else low + 1 - point
            places.append(place)
            weight = share if weight is None else weight * share
        values, inside = _voxels(flat, places, sizes)
        part = values * weight.unsqueeze(1)
        if rank == 3:  # eager ignores elements outside, even with an infinite weight
            part = torch.where(inside.unsqueeze(1), part, 0.0)
        total = part if total is None else total + part
    return total.contiguous()


def _source(
    points: Tensor,
    size: int,
    padding_mode: int,
    align: bool,
    reflect: Callable[[Tensor, float, float], Tensor],
) -> Tensor:
    """Converts positions in [-1, 1] to positions in voxels."""
    unit = (points + 1) / 2
    place = unit * (size - 1) if align else unit * size - 0.5
    if padding_mode == 2:
        low, high = (0, size - 1) if align else (-0.5, size - 0.5)
        place = reflect(place, low, high)
    if padding_mode == 0:
        return place
    # NaN (also the reflection of an infinite position) becomes the end that eager's kernel
    # chooses: the first element for images, the last for volumes.
    top = size - 1
    return _clip(place, top, 0 if reflect is _reflect_twice else top)


def _clip(place: Tensor, top: float, of_nan: float) -> Tensor:
    """Clamps to [0, top], with a gradient of zero at 0 and `top`, too. NaN becomes
    `of_nan`."""
    inside = (place > 0) & (place < top)
    clipped = place.detach().clamp(0, top)
    clipped = torch.where(clipped.isnan(), of_nan, clipped)
    return torch.where(inside, place, clipped)


def _reflect(place: Tensor, low: float, high: float) -> Tensor:
    span = high - low
    if span <= 0:
        return torch.zeros_like(place)
    distance = (place - low).abs()
    extra = torch.fmod(distance, span)
    flips = (distance / span).floor()
    return torch.where(torch.fmod(flips, 2) == 0, extra + low, high - extra)


def _reflect_twice(place: Tensor, low: float, high: float) -> Tensor:
    """Reflects positions with the same rounding as eager's kernel for images."""
    twice = 2 * (high - low)
    if twice <= 0:
        return torch.zeros_like(place)
    distance = (place - low).abs()
    extra = distance - (distance / twice).trunc() * twice
    return torch.minimum(extra, twice - extra) + low


def _voxels(
    flat: Tensor, places: list[Tensor], sizes: list[int]
) -> tuple[Tensor, Tensor]:
    """Returns the values at the positions (zero for a position outside), and a mask of the
    positions inside."""
    inside, position = None, None
    for place, size in zip(places, sizes):
        within = (place >= 0) & (place <= size - 1)
        index = torch.where(within, place, 0).to(torch.int64)  # 0 for NaN, too
        inside = within if inside is None else inside & within
        position = index if position is None else position * size + index
    batch, channels = flat.shape[:2]
    index = position.reshape(batch, 1, -1).expand(-1, channels, -1)
    values = flat.gather(2, index).reshape(batch, channels, *position.shape[1:])
    return torch.where(inside.unsqueeze(1), values, 0.0), inside
