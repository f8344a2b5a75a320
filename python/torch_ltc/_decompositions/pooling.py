"""Decompositions of pooling over three dimensions, by gathering each window's elements.

Windows may differ in size, for example in adaptive pooling or at the edge. In a sum, the
missing elements of shorter windows are masked, so that infinities and NaN stay in their
windows; in a maximum, copies of other elements of the window replace them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import torch
from torch import Tensor
from torch._prims_common import suggest_memory_format

from torch_ltc._decompositions.checks import zero_if

DIMS = 3


@dataclass
class Windows:
    """The windows along a dimension of `size` elements: the first position and the length
    of each, and the step between elements. Elements outside [0, size) are missing."""

    size: int
    starts: list[int]
    step: int
    lengths: list[int]

    def positions(self) -> list[list[int]]:
        longest = max(self.lengths, default=0)
        return [
            [start + i * self.step if i < length else -1 for i in range(longest)]
            for start, length in zip(self.starts, self.lengths)
        ]


def _per_dim(value: Sequence[int], default: Sequence[int] = ()) -> list[int]:
    values = list(value) or list(default)
    return values * DIMS if len(values) == 1 else values


def _output_size(size: int, extent: int, stride: int, padding: int, ceil: bool) -> int:
    span = size + 2 * padding - extent
    count = (span + (stride - 1 if ceil else 0)) // stride + 1
    # A window that starts in the padding after the tensor isn't counted.
    if ceil and (count - 1) * stride >= size + padding:
        count -= 1
    return count


def regular_windows(
    sizes: Sequence[int],
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    ceil: bool,
) -> list[Windows]:
    kernel = _per_dim(kernel)
    result = []
    for size, k, s, p, d in zip(
        sizes, kernel, _per_dim(stride, kernel), _per_dim(padding), _per_dim(dilation)
    ):
        count = _output_size(size, (k - 1) * d + 1, s, p, ceil)
        result.append(Windows(size, [i * s - p for i in range(count)], d, [k] * count))
    return result


def adaptive_windows(sizes: Sequence[int], outputs: Sequence[int]) -> list[Windows]:
    result = []
    for size, count in zip(sizes, outputs):
        starts = [i * size // count for i in range(count)]
        ends = [-(-(i + 1) * size // count) for i in range(count)]
        result.append(Windows(size, starts, 1, [e - s for s, e in zip(starts, ends)]))
    return result


def _gather(x: Tensor, dim: int, windows: Windows, missing: float) -> Tensor:
    """Replaces dimension `dim` by two: the window and the element in the window. Missing
    elements have the value `missing`."""
    positions = torch.tensor(windows.positions())
    inside = (positions >= 0) & (positions < windows.size)
    count, longest = positions.shape
    places = positions.clamp(0, windows.size - 1).flatten().to(x.device)
    values = x.index_select(dim, places).unflatten(dim, (count, longest))
    if bool(inside.all()):
        return values
    shape = [1] * values.dim()
    shape[dim : dim + 2] = [count, longest]
    return torch.where(inside.reshape(shape).to(x.device), values, missing)


def _check_rank(x: Tensor, name: str) -> None:
    torch._check(
        x.dim() in (DIMS + 1, DIMS + 2),
        lambda: f"{name}: expected a 4D or 5D input, got {x.dim()}D",
    )


def _sum(x: Tensor, windows: list[Windows]) -> Tensor:
    for i, along in enumerate(windows):
        dim = x.dim() - DIMS + i
        x = _gather(x, dim, along, 0).sum(dim + 1)
    return x


def _divide(total: Tensor, divisor: Tensor | int) -> Tensor:
    mode = None if total.is_floating_point() else "trunc"
    return torch.div(total, divisor, rounding_mode=mode)


def _outer(factors: list[list[int]], like: Tensor) -> Tensor:
    d, h, w = (torch.tensor(f, dtype=like.dtype) for f in factors)
    return (d[:, None, None] * h[:, None] * w).to(like.device)


def avg_pool3d(
    x: Tensor,
    kernel_size: Sequence[int],
    stride: Sequence[int] = (),
    padding: Sequence[int] = (0,),
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    _check_rank(x, "avg_pool3d")
    windows = regular_windows(
        x.shape[-DIMS:], kernel_size, stride, padding, (1,), ceil_mode
    )
    total = _sum(x, windows)
    if divisor_override is not None:
        return _divide(total, divisor_override)
    counts = []
    for along, pad in zip(windows, _per_dim(padding)):
        margin = pad if count_include_pad else 0
        counts.append(
            [
                min(s + n, along.size + margin) - max(s, -margin)
                for s, n in zip(along.starts, along.lengths)
            ]
        )
    return _divide(total, _outer(counts, total))


def adaptive_avg_pool3d(x: Tensor, output_size: Sequence[int]) -> Tensor:
    _check_rank(x, "adaptive_avg_pool3d")
    windows = adaptive_windows(x.shape[-DIMS:], output_size)
    total = _sum(x, windows)
    return _divide(total, _outer([along.lengths for along in windows], total))


def _max(x: Tensor, windows: list[Windows]) -> tuple[Tensor, Tensor]:
    """Returns the first maximum of each window, or its last NaN, and the position of that
    element in the flattened last three dimensions."""
    leading = x.dim() - DIMS
    sizes = x.shape[leading:]
    places = [torch.tensor(_nearest_inside(along)) for along in windows]
    for i, along in enumerate(places):
        dim = leading + 2 * i
        elements = x.index_select(dim, along.flatten().to(x.device))
        x = elements.unflatten(dim, along.shape)
    outputs = [leading + 2 * i for i in range(DIMS)]
    order = [*range(leading), *outputs, *(o + 1 for o in outputs)]
    elements = x.permute(order).flatten(-DIMS)
    values, chosen = elements.max(-1)
    if x.is_floating_point():
        count = torch.arange(elements.shape[-1], device=x.device)
        last = torch.where(elements.isnan(), count, 0).amax(-1)
        chosen = torch.maximum(chosen, last)
    position = _positions(places, sizes).to(x.device)
    position = position.expand(*elements.shape[:leading], *position.shape)
    return values, position.gather(-1, chosen.unsqueeze(-1)).squeeze(-1)


def _nearest_inside(along: Windows) -> list[list[int]]:
    """Returns the positions of each window's elements; a missing element gets the nearest
    position inside. Such copies change neither which value is the first maximum nor which
    NaN is the last."""
    result = []
    for places in along.positions():
        inside = [place for place in places if 0 <= place < along.size]
        first, last = inside[0], inside[-1]
        before = next(i for i, place in enumerate(places) if place == first)
        after = len(places) - before - len(inside)
        result.append([first] * before + inside + [last] * after)
    return result


def _positions(places: list[Tensor], sizes: Sequence[int]) -> Tensor:
    """Returns the positions of each window's elements in the flattened dims, as int64:
    [windows in each of three dims, elements]."""
    result = torch.zeros((), dtype=torch.int64)
    for i, along in enumerate(places):
        shape = [1] * (2 * DIMS)
        shape[i], shape[DIMS + i] = along.shape
        result = result * sizes[i] + along.reshape(shape)
    return result.flatten(-DIMS)


def max_pool3d_with_indices(
    x: Tensor,
    kernel_size: Sequence[int],
    stride: Sequence[int] = (),
    padding: Sequence[int] = (0,),
    dilation: Sequence[int] = (1,),
    ceil_mode: bool = False,
) -> tuple[Tensor, Tensor]:
    _check_rank(x, "max_pool3d")
    windows = regular_windows(
        x.shape[-DIMS:], kernel_size, stride, padding, dilation, ceil_mode
    )
    values, positions = _max(x, windows)
    # Of eager's pooling ops over three dimensions, only this one preserves the
    # channels-last format.
    if _is_channels_last(x):
        values, positions = _channels_last(values), _channels_last(positions)
    return values, positions


def _batched(x: Tensor) -> Tensor:
    return x if x.dim() == DIMS + 2 else x.unsqueeze(0)


def _is_channels_last(x: Tensor) -> bool:
    last = torch.channels_last_3d
    if x.is_contiguous():
        return False
    if x.dim() == DIMS + 2:
        return suggest_memory_format(x) == last
    return _batched(x).is_contiguous(memory_format=last)


def _channels_last(x: Tensor) -> Tensor:
    last = _batched(x).contiguous(memory_format=torch.channels_last_3d)
    return last if x.dim() == DIMS + 2 else last.squeeze(0)


def max_pool3d_with_indices_backward(
    grad: Tensor,
    x: Tensor,
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    ceil_mode: bool,
    indices: Tensor,
) -> Tensor:
    made = adaptive_max_pool3d_backward(grad, x, indices)
    return _channels_last(made) if _is_channels_last(x) else made


def adaptive_max_pool3d_backward(grad: Tensor, x: Tensor, indices: Tensor) -> Tensor:
    flat = (*x.shape[:-DIMS], -1)
    zeros = torch.zeros(x.shape, dtype=x.dtype, device=x.device).flatten(-DIMS)
    made = zeros.scatter_add(-1, indices.reshape(flat), grad.reshape(flat))
    return made.reshape(x.shape)


def adaptive_max_pool3d(x: Tensor, output_size: Sequence[int]) -> tuple[Tensor, Tensor]:
    _check_rank(x, "adaptive_max_pool3d")
    return _max(x, adaptive_windows(x.shape[-DIMS:], output_size))


def max_unpool2d(x: Tensor, indices: Tensor, output_size: Sequence[int]) -> Tensor:
    result = _max_unpool(torch.ops.aten.max_unpool2d.default, x, indices, output_size)
    return result.contiguous(memory_format=suggest_memory_format(x))


def max_unpool3d(
    x: Tensor,
    indices: Tensor,
    output_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
) -> Tensor:
    op = torch.ops.aten.max_unpool3d.default
    return _max_unpool(op, x, indices, output_size, stride, padding)


def _max_unpool(
    op: Any, x: Tensor, indices: Tensor, size: Sequence[int], *rest: Sequence[int]
) -> Tensor:
    """Runs PyTorch's formula with checked indices: the formula numbers the elements of all
    planes, so an index past the end of its plane would refer to the next plane."""
    from torch._decomp import decomposition_table

    if not x.numel():  # the result wouldn't depend on the check
        raise NotImplementedError
    volume = "x".join(map(str, size))
    zero = zero_if(
        (indices >= 0) & (indices < prod(size)),
        f"Found an invalid max index (output volumes are of size {volume})",
    )
    inside = indices.clamp(0, max(prod(size) - 1, 0)) + zero
    return decomposition_table[op](x, inside, size, *rest)
