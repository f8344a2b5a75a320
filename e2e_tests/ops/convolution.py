"""Convolutions in one to three dimensions."""

from __future__ import annotations

from ops.program import BF16, F32, WIDE, Row, any_of
from torch.nn import functional as F

x = any_of(2, 4, 8, 9, low=-1, high=1)
w = any_of(6, 4, 3, 3, low=-1, high=1)
bias = any_of(6)


def _conv(**options):
    return lambda *tensors: F.conv2d(*tensors, **options)


def _transposed(**options):
    return lambda *tensors: F.conv_transpose2d(*tensors, **options)


ROWS = [
    Row("conv2d", F.conv2d, (x, w, bias), (*WIDE, BF16), tolerance=2e-2),
    Row("conv2d-exact", F.conv2d, (x, w, bias), WIDE, tolerance=1e-4),
    Row("conv2d-no-bias", F.conv2d, (x, w), WIDE, tolerance=1e-4),
    Row("conv2d-padding", _conv(padding=1), (x, w, bias), WIDE, tolerance=1e-4),
    Row("conv2d-uneven", _conv(padding=(2, 1), stride=(1, 2)), (x, w, bias), WIDE, tolerance=1e-4),
    Row("conv2d-stride", _conv(stride=2, padding=1), (x, w), WIDE, tolerance=1e-4),
    Row("conv2d-dilation", _conv(dilation=2), (x, w), WIDE, tolerance=1e-4),
    Row("conv2d-groups", _conv(groups=2), (x, any_of(6, 2, 3, 3), bias), WIDE, tolerance=1e-4),
    Row("conv2d-depthwise", _conv(groups=4, padding=1), (x, any_of(4, 1, 3, 3)), WIDE, tolerance=1e-4),
    Row("conv2d-1x1", F.conv2d, (x, any_of(6, 4, 1, 1), bias), WIDE, tolerance=1e-4),
    Row("conv2d-same", _conv(padding="same"), (x, w, bias), (F32,), tolerance=1e-4),
    Row("conv1d", lambda a, k, c: F.conv1d(a, k, c, padding=1), (any_of(2, 3, 10), any_of(5, 3, 3), any_of(5)), WIDE, tolerance=1e-4),
    Row("conv3d", lambda a, k, c: F.conv3d(a, k, c, padding=1), (any_of(2, 3, 4, 5, 6), any_of(4, 3, 3, 3, 3), any_of(4)), WIDE, tolerance=1e-4),
    Row("conv_transpose2d", _transposed(stride=2, padding=1), (x, any_of(4, 6, 3, 3), bias), WIDE, tolerance=1e-4),
    Row("conv-relu-conv", lambda a, k: F.conv2d(F.conv2d(a, k[:4], padding=1).relu(), k, padding=1), (x, w), WIDE, tolerance=1e-4),
]  # fmt: skip
