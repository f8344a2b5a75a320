"""Strides of convolutions and their gradients: they follow from the library that eager
PyTorch chooses on the CPU."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from comparison import compare


def _channels_last(x: torch.Tensor) -> torch.Tensor:
    return x.movedim(1, -1).contiguous().movedim(-1, 1)


def _transposed(first: int, second: int) -> Callable:
    return lambda x: x.transpose(first, second).contiguous().transpose(first, second)


LAYOUTS = {
    "row-major": lambda x: x,
    "channels last": _channels_last,
    "channels first": _transposed(0, 1),
    "channels inside": _transposed(1, 2),
    "columns": _transposed(-1, -2),
}
CONVOLUTIONS = {
    (1, False): F.conv1d,
    (2, False): F.conv2d,
    (3, False): F.conv3d,
    (1, True): F.conv_transpose1d,
    (2, True): F.conv_transpose2d,
    (3, True): F.conv_transpose3d,
}


@pytest.mark.parametrize("layout_of_weight", LAYOUTS)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("is_transposed", [False, True])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_strides_of_convolutions(
    rank: int, is_transposed: bool, layout: str, layout_of_weight: str
) -> None:
    function = CONVOLUTIONS[rank, is_transposed]

    def program(x: torch.Tensor, weight: torch.Tensor) -> list:
        result = function(x, weight)
        cotangent = torch.ones_like(result)
        return [result, *torch.autograd.grad(result, [x, weight], cotangent)]

    for batch in (1, 2):
        for dtype in (torch.float32, torch.float64):
            x = torch.randn(batch, 3, *[4] * rank, dtype=dtype)
            weight = torch.randn(3, 3, *[2] * rank, dtype=dtype)
            compare(
                program,
                LAYOUTS[layout](x).requires_grad_(),
                LAYOUTS[layout_of_weight](weight).requires_grad_(),
            )


def test_strides_without_a_batch_and_with_groups() -> None:
    def program(x: torch.Tensor, weight: torch.Tensor) -> list:
        return [
            F.conv3d(x[0], weight),
            F.conv3d(x, weight[:, :1], groups=3),
            F.conv3d(x, weight, padding=1, dilation=2),
        ]

    x, weight = torch.randn(1, 3, 4, 4, 4), torch.randn(3, 3, 2, 2, 2)
    compare(program, x, _channels_last(weight))
    compare(program, _channels_last(x), weight)
