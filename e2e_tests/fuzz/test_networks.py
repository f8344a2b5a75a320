"""Random networks over images of varying sizes compute eager's results when compiled."""

from __future__ import annotations

import copy

import pytest
import torch
import torch_ltc
from comparison import assert_close
from fuzz.networks import draw_network

#: Seeds in which a kernel computed some of its elements only: its number of iterations was
#: a multiple of another kernel's number of blocks.
FOUND = (219, 221, 243, 246)


@pytest.mark.parametrize("seed", [*range(40), *FOUND])
def test_a_network(seed: int) -> None:
    drawn = draw_network(seed)
    eager, lazy = drawn.network, copy.deepcopy(drawn.network).to("lazy")
    for step, (number, height, width) in enumerate(drawn.sizes):
        torch.manual_seed(seed * 100 + step)
        x = torch.randn(number, eager.channels, height, width)
        results = drawn.step(lazy, x.to("lazy"))
        torch_ltc.mark_step()
        for result, wanted in zip(results, drawn.step(eager, x), strict=True):
            # Numbers that are zero but for rounding are compared with the others.
            atol = 2e-4 * max(1.0, wanted.abs().max().item())
            assert_close(result, wanted, rtol=5e-3, atol=atol, equal_nan=True)
