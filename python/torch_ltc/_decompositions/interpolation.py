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


def _upsample2d(op, self: Tensor, size, align_corners, scales_h, scales_w) -> Tensor:
    if self.dtype != torch.uint8:
        return decomposition_table[op](self, size, align_corners, scales_h, scales_w)
    cubic = op is aten.upsample_bicubic2d.default
    return torch.ops.torch_ltc.upsample_bytes(
        self, size, align_corners, scales_h, scales_w, cubic
    )


def upsample_bilinear2d(
    self: Tensor,
    output_size: Sequence[int],
    align_corners: bool,
    scales_h: float | None = None,
    scales_w: float | None = None,
) -> Tensor:
    """Like `aten::upsample_bilinear2d`: [N, C, H, W] to [N, C, *output_size]."""
    op = aten.upsample_bilinear2d.default
    return _upsample2d(op, self, output_size, align_corners, scales_h, scales_w)


def upsample_bicubic2d(
    self: Tensor,
    output_size: Sequence[int],
    align_corners: bool,
    scales_h: float | None = None,
    scales_w: float | None = None,
) -> Tensor:
    """Like `aten::upsample_bicubic2d`: [N, C, H, W] to [N, C, *output_size]."""
    op = aten.upsample_bicubic2d.default
    return _upsample2d(op, self, output_size, align_corners, scales_h, scales_w)
