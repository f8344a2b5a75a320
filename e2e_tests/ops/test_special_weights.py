"""If some elements of the results' gradients are infinite, the operands' gradients are NaN
and infinite at the same elements as in eager PyTorch.
"""

from __future__ import annotations

import math

import pytest
import torch
from ops.program import Row
from ops.test_ops import all_cases, run

#: Rows whose formula has an infinity where eager's has the difference of two infinities,
#: which is NaN, or the other way round.
DIFFERENCES = ("layer_norm", "layer_norm-no-affine", "grid_sample")


def float32_rows() -> list:
    rows = {}
    for case in all_cases():
        row, dtype = case.values
        if row.grad and dtype == torch.float32 and row.name not in DIFFERENCES:
            rows[case.id] = row
    return [pytest.param(row, id=name) for name, row in rows.items()]


def special_weights(count: int) -> torch.Tensor:
    is_infinite = torch.arange(count) % 3 == 0
    return torch.linspace(0.5, 1.5, count).masked_fill(is_infinite, math.inf)


@pytest.mark.parametrize("row", float32_rows())
def test_special_weights(row: Row) -> None:
    expected = run(row, torch.float32, "cpu", special_weights)
    lazy = run(row, torch.float32, "lazy", special_weights)
    for result, wanted in zip(lazy, expected, strict=True):
        result = result.cpu()
        if wanted.is_floating_point():
            assert torch.equal(result.isnan(), wanted.isnan())
            assert torch.equal(result.isinf(), wanted.isinf())
