"""Windows over one to three dimensions, interpolation, sampling."""

from __future__ import annotations

import torch
from ops.program import FLOATS, WIDE, Row, any_of, distinct
from torch.nn import functional as F

x = any_of(2, 3, 8, 9)
d = distinct(2, 3, 8, 9)
e = distinct(2, 2, 4, 5, 6)


def _bytes(dtype: torch.dtype, generator: torch.Generator) -> torch.Tensor:
    return torch.randint(0, 256, (2, 3, 8, 9), dtype=dtype, generator=generator)


ROWS = [
    Row("max_pool2d", lambda a: F.max_pool2d(a, 2), (d,), FLOATS),
    Row("max_pool2d-overlap", lambda a: F.max_pool2d(a, 3, stride=2, padding=1), (d,), FLOATS),
    Row("max_pool2d-dilation", lambda a: F.max_pool2d(a, 2, stride=1, dilation=2), (d,), FLOATS),
    Row("max_pool2d-ceil", lambda a: F.max_pool2d(a, 3, stride=2, ceil_mode=True), (d,), FLOATS),
    Row("max_pool2d-indices", lambda a: F.max_pool2d(a, 2, return_indices=True), (d,), FLOATS),
    Row("max_pool1d", lambda a: F.max_pool1d(a, 2), (distinct(2, 3, 8),), FLOATS),
    Row("avg_pool2d", lambda a: F.avg_pool2d(a, 2), (x,), FLOATS),
    Row("avg_pool2d-padding", lambda a: F.avg_pool2d(a, 3, stride=2, padding=1), (x,), FLOATS),
    Row("avg_pool2d-exclude", lambda a: F.avg_pool2d(a, 3, 2, 1, count_include_pad=False), (x,), FLOATS),
    Row("avg_pool2d-ceil", lambda a: F.avg_pool2d(a, 3, 2, 1, ceil_mode=True), (x,), FLOATS),
    Row("avg_pool2d-divisor", lambda a: F.avg_pool2d(a, 2, divisor_override=3), (x,), FLOATS),
    Row("avg_pool1d", lambda a: F.avg_pool1d(a, 2), (any_of(2, 3, 8),), FLOATS),
    Row("adaptive_avg_pool2d-1", lambda a: F.adaptive_avg_pool2d(a, 1), (x,), FLOATS),
    Row("adaptive_avg_pool2d", lambda a: F.adaptive_avg_pool2d(a, (4, 5)), (x,), WIDE),
    Row("adaptive_max_pool2d-no-channels", lambda a: F.adaptive_max_pool2d(a, (2, 3)), (any_of(0, 3, 5),), WIDE),
    Row("adaptive_max_pool2d-signs", lambda a: F.adaptive_max_pool2d(a, (2, 3)).signbit(), (d,), FLOATS, grad=False),
    Row("adaptive_max_pool2d", lambda a: F.adaptive_max_pool2d(a, (2, 3)), (d,), WIDE),
    Row("max_pool3d", lambda a: F.max_pool3d(a, 2, 1, 1, return_indices=True), (e,), WIDE),
    Row("avg_pool3d", lambda a: F.avg_pool3d(a, 3, 2, 1, count_include_pad=False), (e,), WIDE),
    Row("adaptive_avg_pool3d", lambda a: F.adaptive_avg_pool3d(a, (2, 3, 1)), (e,), WIDE),
    Row("adaptive_max_pool3d", lambda a: F.adaptive_max_pool3d(a, (2, 3, 1), return_indices=True), (e,), WIDE),
    Row("max_unpool2d", lambda a: F.max_unpool2d(*F.max_pool2d(a, 2, return_indices=True), 2, output_size=(8, 9)), (d,), WIDE),
    Row("upsample-bilinear", lambda a: F.interpolate(a, scale_factor=2, mode="bilinear"), (x,), WIDE),
    Row("upsample-bicubic", lambda a: F.interpolate(a, size=(5, 7), mode="bicubic", align_corners=True), (x,), WIDE),
    Row("upsample-bytes", lambda a: [F.interpolate(a, size=(5, 13), mode=m, align_corners=c) for m in ("bilinear", "bicubic") for c in (False, True)], (_bytes,), (torch.uint8,), grad=False),
    Row("upsample-trilinear", lambda a: F.interpolate(a, scale_factor=2, mode="trilinear"), (e,), WIDE),
    Row("upsample-exact", lambda a: F.interpolate(a, size=(5, 7), mode="nearest-exact"), (x,), WIDE),
    Row("affine_grid", lambda t: F.affine_grid(t, (2, 1, 3, 4), align_corners=False), (any_of(2, 2, 3),), WIDE),
    Row("affine_grid-3d", lambda t: F.affine_grid(t, (2, 1, 2, 3, 4), align_corners=True), (any_of(2, 3, 4),), WIDE),
    Row("grid_sample", lambda a, g: F.grid_sample(a, g, align_corners=False), (x, any_of(2, 4, 5, 2, low=-1.2, high=1.2)), WIDE),
    Row("grid_sample-3d", lambda a, g: F.grid_sample(a, g, padding_mode="reflection", align_corners=True), (e, any_of(2, 3, 4, 5, 3, low=-1.2, high=1.2)), WIDE),
    Row("unfold-fold", lambda a: F.fold(F.unfold(a, 3, padding=1) * 2, (8, 9), 3, padding=1), (x,), WIDE),
    Row("fractional_max", lambda a: F.fractional_max_pool2d(a, 2, output_size=3), (x,), WIDE),
    Row("fractional_max-3d", lambda a: F.fractional_max_pool3d(a, 2, output_size=2), (e,), WIDE),
    Row("antialias", lambda a: F.interpolate(a, size=(4, 3), mode="bilinear", antialias=True), (x,), WIDE),
    Row("upsample-nearest", lambda a: F.interpolate(a, scale_factor=2), (x,), WIDE),
]  # fmt: skip
