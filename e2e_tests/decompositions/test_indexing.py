"""Decompositions of searches have eager's results."""

from __future__ import annotations

import pytest
import torch
from torch import nan


@pytest.mark.parametrize("invert", [False, True])
@pytest.mark.parametrize("tested", [3, 40])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_isin_with_numbers_that_do_not_sort(
    dtype: torch.dtype, tested: int, invert: bool
) -> None:
    inf = torch.inf
    listed = torch.tensor([nan, inf, -inf, *range(tested)], dtype=dtype)
    for elements in (
        torch.tensor([nan, inf, -inf, tested - 1.0, tested, 0.0], dtype=dtype),
        torch.arange(50.0, dtype=dtype).view(5, 10),
        torch.zeros(0, dtype=dtype),
    ):
        for others in (listed, listed[1:], listed[[0, *range(2, tested)]]):
            expected = torch.isin(elements, others, invert=invert)
            ours = torch.isin(elements.to("lazy"), others.to("lazy"), invert=invert)
            assert ours.cpu().equal(expected), (elements, others)
