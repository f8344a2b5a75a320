"""Convolutions and their gradients have eager torch's values. Convolutions are library
calls from the linalg stage on, so the whole compiler is used."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from comparison import assert_close
from lowering.linalg import compiled
from lowering.linalg.case_functions import Case, make_function
from lowering.linalg.inputs import F32, F64, random

# Sizes of input and weight, stride, padding, dilation, transposed, output_padding, groups.
GEOMETRIES = {
    "1d": ([2, 3, 9], [4, 3, 3], [2], [1], [1], False, [0], 1),
    "2d": ([2, 3, 8, 9], [4, 3, 3, 2], [1, 2], [1, 0], [1, 1], False, [0, 0], 1),
    "3d": ([1, 2, 4, 5, 6], [3, 2, 2, 3, 1], [1, 1, 2], [1, 1, 0], [1, 1, 1], False, [0, 0, 0], 1),
    "pointwise": ([2, 4, 5, 5], [6, 4, 1, 1], [1, 1], [0, 0], [1, 1], False, [0, 0], 1),
    "groups": ([2, 4, 6, 6], [6, 2, 3, 3], [1, 1], [1, 1], [1, 1], False, [0, 0], 2),
    "depthwise": ([1, 4, 6, 6], [4, 1, 3, 3], [1, 1], [1, 1], [1, 1], False, [0, 0], 4),
    "dilation": ([1, 2, 9, 9], [3, 2, 3, 3], [2, 1], [2, 2], [2, 3], False, [0, 0], 1),
    "transposed 1d": ([2, 3, 5], [3, 4, 3], [2], [1], [1], True, [1], 1),
    "transposed 2d": ([2, 4, 5, 6], [4, 3, 3, 2], [2, 3], [1, 0], [1, 1], True, [1, 2], 1),
    "transposed groups": ([1, 4, 5, 5], [4, 3, 3, 3], [2, 2], [0, 1], [2, 1], True, [0, 0], 2),
}  # fmt: skip


def check(case: Case, folder: Path) -> None:
    function = make_function(case, "program")
    actual = compiled.call(function, folder)
    for result, expected in zip(actual, function.expected, strict=True):
        assert_close(result, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", [F32, F64])
@pytest.mark.parametrize("name", GEOMETRIES)
def test_forward(name: str, dtype: torch.dtype, tmp_path: Path) -> None:
    sizes, weight_sizes, *window = GEOMETRIES[name]
    x, weight = random(*sizes, dtype=dtype), random(*weight_sizes, dtype=dtype)
    transposed, groups = window[3], window[5]
    channels = weight_sizes[1] * groups if transposed else weight_sizes[0]
    bias = random(channels, dtype=dtype) if dtype is F32 else None
    check(Case("convolution", (x, weight, bias, *window)), tmp_path)


# Gradients of transposed convolutions are decomposed at the torch stage
# (decompositions/test_convolution.py).
@pytest.mark.parametrize("name", [n for n in GEOMETRIES if "transposed" not in n])
def test_backward(name: str, tmp_path: Path) -> None:
    sizes, weight_sizes, *window = GEOMETRIES[name]
    x, weight = random(*sizes), random(*weight_sizes)
    y = torch.ops.aten.convolution(x, weight, None, *window)
    gradient = random(*y.shape)
    arguments = (gradient, x, weight, [y.shape[1]], *window, [True] * 3)
    check(Case("convolution_backward", arguments), tmp_path)
