"""Decompositions of image interpolation. The formula for linear interpolation of floats is
our own; the others are PyTorch's.

torch_ltc's own programs call PyTorch's kernels for all modes but `nearest`: as a formula of
about 50 small ops, a linear interpolation takes 10 times as long until it is compiled.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch._decomp import decomposition_table
from torch._prims_common import suggest_memory_format

aten = torch.ops.aten


def _nearest(op: Any, shift: float = 0.0) -> Callable[..., Tensor]:
    """Wraps PyTorch's formula to raise NotImplementedError for scales that are too small
    for the sizes: the formula would read past the end, where eager's kernel repeats the
    last element."""

    def upsample(self: Tensor, size: Sequence[int], *scales: float | None) -> Tensor:
        for length, end, scale in zip(self.shape[2:], size, scales, strict=False):
            if scale and (end - 1 + shift) / scale >= length * (1 - 1e-6):
                raise NotImplementedError
        return decomposition_table[op](self, size, *scales)

    return upsample


def _ignoring_scales(
    formula: Callable[..., Tensor], factors: Sequence[int], leading: int, need: Callable
) -> Callable[..., Tensor]:
    """Wraps `formula` to ignore the scales that eager's kernel ignores: those of dimensions
    whose size is multiplied by one of `factors` (a scale of 1.007 maps 20 rows to 20).
    `need`: `any`, or `all` if the kernel ignores the scales only together. `leading`: the
    number of arguments before the scales."""

    def upsample(self: Tensor, size: Sequence[int], *rest: Any) -> Tensor:
        is_free = [
            any(end == factor * length for factor in factors)
            for length, end in zip(self.shape[2:], size, strict=True)
        ]
        used = [
            None if ignored and need(is_free) else scale
            for ignored, scale in zip(is_free, rest[leading:], strict=False)
        ]
        return formula(self, size, *rest[:leading], *used)

    return upsample


upsample_nearest1d = _nearest(aten.upsample_nearest1d.default)
_nearest3d = _nearest(aten.upsample_nearest3d.default)
copies_nearest1d = _ignoring_scales(upsample_nearest1d, (1, 2), 0, any)
copies_nearest3d = _ignoring_scales(_nearest3d, (1, 2), 0, any)
upsample_nearest_exact1d = _nearest(aten._upsample_nearest_exact1d.default, 0.5)
upsample_nearest_exact2d = _nearest(aten._upsample_nearest_exact2d.default, 0.5)
upsample_nearest_exact3d = _nearest(aten._upsample_nearest_exact3d.default, 0.5)


def upsample_nearest3d(
    self: Tensor, size: Sequence[int], *scales: float | None
) -> Tensor:
    is_last = self.is_contiguous(memory_format=torch.channels_last_3d)
    formula = copies_nearest3d if is_last and self.shape[1] >= 4 else _nearest3d
    return formula(self, size, *scales)


def _linear(op: Any) -> Callable[..., Tensor]:
    def upsample(
        self: Tensor, size: Sequence[int], align_corners: bool, *scales: float | None
    ) -> Tensor:
        if not self.is_floating_point():
            return decomposition_table[op](self, size, align_corners, *scales)
        return _between(self, size, align_corners, scales)

    return _ignoring_scales(upsample, (1,), 1, any)


def _between(
    x: Tensor, size: Sequence[int], align_corners: bool, scales: Sequence[float | None]
) -> Tensor:
    """Interpolates linearly by a sum of products, like eager's kernel. PyTorch's formula
    subtracts the neighbors, which turns an infinity into NaN. 16-bit floats are converted
    before the elements are read, so that their gradients are summed in float32."""
    is_short = x.dtype in (torch.float16, torch.bfloat16)
    wide = torch.float32 if is_short else x.dtype
    rank = len(size)
    places: list[tuple[Tensor, Tensor]] = []
    shares = []
    for i, (length, end) in enumerate(zip(x.shape[2:], size, strict=True)):
        scale = scales[i] if i < len(scales) else None
        position = torch.arange(end, device=x.device).to(wide)
        if align_corners:
            position = position * ((length - 1.0) / (end - 1.0) if end > 1 else 0.0)
        else:
            step = 1.0 / scale if scale and scale > 0 else length / end
            position = (step * (position + 0.5) - 0.5).clamp(min=0.0)
        low = position.to(torch.int64).clamp(max=length - 1)
        shape = [end, *[1] * (rank - 1 - i)]
        shares.append((position - low).clamp(0.0, 1.0).reshape(shape))
        places.append(
            (low.reshape(shape), (low + 1).clamp(max=length - 1).reshape(shape))
        )
    source = x.to(wide)
    values = [
        aten._unsafe_index(source, [None, None, *corner])
        for corner in itertools.product(*places)
    ]
    for share in reversed(shares):
        values = [
            low * (1 - share) + high * share
            for low, high in zip(values[::2], values[1::2], strict=True)
        ]
    return values[0].to(x.dtype).contiguous(memory_format=suggest_memory_format(x))


def _of_floats(formula: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Wraps `formula` to raise NotImplementedError for uint8: PyTorch's kernels round
    intermediate results and use fixed-point weights."""

    def upsample(self: Tensor, *arguments: Any) -> Tensor:
        if self.dtype == torch.uint8:
            raise NotImplementedError
        return formula(self, *arguments)

    return upsample


def _bicubic(*arguments: Any) -> Tensor:
    return decomposition_table[aten.upsample_bicubic2d.default](*arguments)


upsample_linear1d = _linear(aten.upsample_linear1d.default)
upsample_bilinear2d = _of_floats(_linear(aten.upsample_bilinear2d.default))
upsample_trilinear3d = _linear(aten.upsample_trilinear3d.default)
upsample_bicubic2d = _of_floats(_bicubic)
derived_bicubic2d = _ignoring_scales(upsample_bicubic2d, (1,), 1, all)
