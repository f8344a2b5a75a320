"""Calls that eager's kernels reject raise eager's error at the call, for operands of any
size. Checks that run eager's kernels run them on small operands."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

Call = Callable[[Tensor], Tensor]

#: The dtype of the operand, and a call that eager rejects.
CALLS: dict[str, tuple[torch.dtype, Call]] = {
    "logcumsumexp": (torch.int32, lambda x: x.logcumsumexp(0)),
    "softmax": (torch.int32, lambda x: x.softmax(0)),
    "frac": (torch.int32, torch.frac),
    "floor": (torch.bool, torch.floor),
    "fractional alpha": (torch.int32, lambda x: torch.add(x, x, alpha=1.5)),
    "negative power": (torch.int64, lambda x: x**-1),
    "lerp": (torch.int64, lambda x: torch.lerp(x, x, 0.5)),
    "bits": (torch.float16, lambda x: x & x),
    "matrix product": (torch.bool, lambda x: x.view(10, -1) @ x.view(-1, 10)),
    "bounds": (torch.uint8, lambda x: x.clamp(0, 300)),
    "put of another dtype": (torch.float32, lambda x: x.put(_positions(x), x.double())),
    "put of few elements": (torch.float32, lambda x: x.put(_positions(x), x[:10])),
    "index_reduce of few rows": (
        torch.float32,
        lambda x: x.index_reduce(0, _positions(x), x[1:], "amax"),
    ),
    "median": (torch.bool, torch.median),
    "median of rows": (torch.bool, lambda x: x.view(10, -1).median(1)),
    "nanmedian": (torch.bool, torch.nanmedian),
    "trace": (torch.bool, lambda x: x.view(10, -1).trace()),
    "mvlgamma": (torch.bool, lambda x: x.mvlgamma(1)),
    "renorm": (torch.float32, lambda x: x.view(10, -1).renorm(1, 5, 1)),
    "interpolation": (torch.int64, lambda x: _twice_as_long(x)),
    "pooling": (torch.bool, lambda x: F.avg_pool3d(x.view(1, 1, 2, 2, -1), 2)),
    "pooling of rows": (torch.int64, lambda x: F.adaptive_avg_pool1d(x.view(1, -1), 2)),
    "convolution": (
        torch.bool,
        lambda x: F.conv2d(x.view(1, 1, 10, -1), x[:9].view(1, 1, 3, 3)),
    ),
    "padding of the output": (
        torch.float32,
        lambda x: F.conv_transpose1d(
            x.view(1, 1, -1), x[:4].view(1, 1, 4), stride=2, output_padding=2
        ),
    ),
    "cubic samples of volumes": (torch.float32, lambda x: _cubic_samples(x)),
    "gradient of an empty result": (
        torch.float32,
        lambda x: torch.ops.aten._adaptive_avg_pool2d_backward(
            x.new_empty(1, 1, 0, 0), x.view(1, 1, 10, -1)
        ),
    ),
}


def _twice_as_long(x: Tensor) -> Tensor:
    return F.interpolate(x.view(1, 1, -1), scale_factor=2, mode="linear")


def _cubic_samples(x: Tensor) -> Tensor:
    grid = x.new_zeros(1, 2, 2, 2, 3)
    volume = x.view(1, 1, 2, 2, -1)
    return F.grid_sample(volume, grid, mode="bicubic", align_corners=False)


def _positions(x: Tensor) -> Tensor:
    return torch.arange(len(x), device=x.device)


def error_of(call: Call, x: Tensor) -> str:
    with pytest.raises((RuntimeError, IndexError)) as raised:
        call(x)
    return f"{raised.type.__name__}: {str(raised.value).split(' [aten::')[0]}"


@pytest.mark.filterwarnings("ignore:index_reduce")
@pytest.mark.parametrize("size", [60, 9000])
@pytest.mark.parametrize("name", CALLS)
def test_errors(name: str, size: int) -> None:
    dtype, call = CALLS[name]
    x = torch.ones(size, dtype=dtype)
    assert error_of(call, x.to("lazy")) == error_of(call, x)
