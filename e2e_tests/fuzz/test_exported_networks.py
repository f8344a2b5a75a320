"""Random networks that are exported for all sizes of images compute eager's results at sizes
at which they weren't traced, or are rejected."""

from __future__ import annotations

import functools

import pytest
import torch
import torch_ltc
from comparison import assert_close
from fuzz.networks import draw_network
from torch.export import Dim

SEEDS = range(24)
#: Sizes of images, all multiples of 4: most networks halve images.
SIZES = ((2, 12, 32), (5, 24, 8), (3, 20, 20))


@functools.cache
def exported_network(seed: int) -> torch_ltc.ExportedProgram | None:
    network = draw_network(seed).network.eval()
    number, height, width = (Dim(name, min=2, max=16) for name in ("b", "h", "w"))
    example = torch.randn(3, network.channels, 16, 24)
    shapes = ({0: number, 2: 4 * height, 3: 4 * width},)
    try:
        return torch_ltc.export(network, (example,), dynamic_shapes=shapes)
    except ValueError:
        return None


@pytest.mark.parametrize("seed", SEEDS)
def test_an_exported_network(seed: int) -> None:
    exported = exported_network(seed)
    if exported is None:
        return
    network = draw_network(seed).network.eval()
    for number, height, width in SIZES:
        x = torch.randn(number, network.channels, height, width)
        values = [
            x if row["role"] == "argument" else value
            for row, value in zip(exported.inputs, exported.values)
        ]
        for result, wanted in zip(exported.run(values), network(x)):
            atol = 2e-4 * max(1.0, wanted.abs().max().item())
            assert_close(result, wanted, rtol=5e-3, atol=atol, equal_nan=True)


def test_most_networks_have_a_program_for_all_sizes() -> None:
    exported = sum(exported_network(seed) is not None for seed in SEEDS)
    assert exported >= len(SEEDS) // 2
