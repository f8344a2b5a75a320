"""Poolings, forward and backward."""

from __future__ import annotations

import torch
from lowering.linalg.case_functions import Case
from lowering.linalg.inputs import BF16, F32, F64, random

CASES: list[Case] = []


def add(op: str, *args, tolerance: float | None = None, **kwargs) -> None:
    CASES.append(Case(op, args, kwargs, tolerance))


def max_pool(x: torch.Tensor, *window) -> None:
    """Adds a max pooling and its gradient. `window`: kernel, stride, padding, dilation,
    ceil_mode."""
    values, indices = torch.ops.aten.max_pool2d_with_indices(x, *window)
    add("max_pool2d_with_indices", x, *window)
    gradient = random(*values.shape, dtype=x.dtype)
    add(
        "max_pool2d_with_indices_backward",
        gradient,
        x,
        *window,
        indices,
        tolerance=1e-6,
    )


def average_pool(x: torch.Tensor, *window) -> None:
    """Adds an average pooling and its gradient. `window`: kernel, stride, padding,
    ceil_mode, count_include_pad, divisor_override."""
    result = torch.ops.aten.avg_pool2d(x, *window)
    add("avg_pool2d", x, *window, tolerance=1e-6)
    gradient = random(*result.shape, dtype=x.dtype)
    add("avg_pool2d_backward", gradient, x, *window, tolerance=1e-5)


for dtype in (F32, F64, BF16):
    x = random(2, 3, 8, 9, dtype=dtype)
    max_pool(x, [2, 2], [2, 2], [0, 0], [1, 1], False)
    average_pool(x, [2, 2], [2, 2], [0, 0], False, True, None)
x = random(2, 3, 8, 9)
max_pool(x, [3, 3], [2, 2], [1, 1], [1, 1], False)
max_pool(x, [3, 2], [1, 2], [1, 0], [2, 1], False)
max_pool(x, [3, 3], [2, 2], [1, 1], [1, 1], True)
max_pool(x, [2, 2], [], [0, 0], [1, 1], True)
max_pool(random(3, 5, 5), [2, 2], [1, 1], [1, 1], [1, 1], False)
max_pool(torch.zeros(1, 1, 4, 4), [3, 3], [1, 1], [1, 1], [1, 1], False)
max_pool(torch.full((1, 1, 4, 4), -float("inf")), [2, 2], [2, 2], [0, 0], [1, 1], False)
nans = random(1, 1, 4, 4)
nans[0, 0, 1, 1] = nans[0, 0, 0, 0] = float("nan")
add("max_pool2d_with_indices", nans, [2, 2])
add("max_pool2d_with_indices", random(1, 2, 6, 6), [2])

for include in (True, False):
    average_pool(x, [3, 3], [2, 2], [1, 1], False, include, None)
    average_pool(x, [3, 3], [2, 2], [1, 1], True, include, None)
    average_pool(x, [3, 2], [1, 2], [0, 1], False, include, None)
average_pool(x, [3, 3], [2, 2], [1, 1], False, True, 5)
average_pool(random(3, 5, 5), [2, 2], [], [0, 0], True, True, None)

for sizes in ([1, 1], [2, 3], [4, 9], [8, 9], [5, 7], [10, 11]):
    result = torch.ops.aten._adaptive_avg_pool2d(x, sizes)
    add("_adaptive_avg_pool2d", x, sizes, tolerance=1e-5)
    add("_adaptive_avg_pool2d_backward", random(*result.shape), x, tolerance=1e-5)
    add("adaptive_max_pool2d", x, sizes)
    indices = torch.ops.aten.adaptive_max_pool2d(x, sizes)[1]
    add(
        "adaptive_max_pool2d_backward",
        random(*result.shape),
        x,
        indices,
        tolerance=1e-5,
    )
add("_adaptive_avg_pool2d", x.to(BF16), [3, 3], tolerance=1e-5)
