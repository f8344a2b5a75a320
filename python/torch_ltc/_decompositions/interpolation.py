"""Interpolation of images: PyTorch's formulas, except for bytes.

For uint8, PyTorch's kernels round in between and use fixed-point weights, so the
program calls those kernels themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch._decomp import decomposition_table

aten = torch.ops.aten


def _nearest(op: Any, shift: float = 0.0) -> Callable[..., Tensor]:
    """PyTorch's formula, which reads past the end if a scale is too small for the
    sizes; eager's kernel repeats the last element."""

    def upsample(self: Tensor, size: Sequence[int], *scales: float | None) -> Tensor:
        for length, end, scale in zip(self.shape[2:], size, scales, strict=False):
            if scale and (end - 1 + shift) / scale >= length * (1 - 1e-6):
                raise NotImplementedError
        return decomposition_table[op](self, size, *scales)

    return upsample


upsample_nearest1d = _nearest(aten.upsample_nearest1d.default)
upsample_nearest3d = _nearest(aten.upsample_nearest3d.default)
upsample_nearest_exact1d = _nearest(aten._upsample_nearest_exact1d.default, 0.5)
upsample_nearest_exact2d = _nearest(aten._upsample_nearest_exact2d.default, 0.5)
upsample_nearest_exact3d = _nearest(aten._upsample_nearest_exact3d.default, 0.5)


def _smooth(op: Any, is_cubic: bool) -> Callable[..., Tensor]:
    def upsample(
        self: Tensor,
        size: Sequence[int],
        align_corners: bool,
        scales_h: float | None = None,
        scales_w: float | None = None,
    ) -> Tensor:
        arguments = (self, size, align_corners, scales_h, scales_w)
        if self.dtype == torch.uint8:
            return torch.ops.torch_ltc.upsample_bytes(*arguments, is_cubic)
        return decomposition_table[op](*arguments)

    return upsample


upsample_bilinear2d = _smooth(aten.upsample_bilinear2d.default, is_cubic=False)
upsample_bicubic2d = _smooth(aten.upsample_bicubic2d.default, is_cubic=True)
