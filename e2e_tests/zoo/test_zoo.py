"""Ten training steps of each published architecture have eager CPU's results."""

from __future__ import annotations

import pytest
import torch_ltc
from comparison import assert_close
from counting import counting, fallback_names, sync_names
from zoo import catalogue

STEPS, WARM_UP = 10, 3
RELATIVE = 1e-3
# Absolute tolerance for parameters and gradients, which are of the order of 0.1.
ABSOLUTE = 1e-5


@pytest.mark.parametrize("name", catalogue.ENTRIES)
def test_ten_steps(name: str) -> None:
    eager = catalogue.train(name, "cpu", STEPS)
    torch_ltc.reset_metrics()
    compilations = []

    def each_step(step: int) -> None:
        counters = torch_ltc.metrics()
        compilations.append(counters["compilations"] + counters["program_disk_hits"])

    with counting() as counts:
        lazy = catalogue.train(name, "lazy", STEPS, each_step)
    assert counts.fallback_calls == 0, fallback_names()
    assert counts.implicit_syncs == STEPS * catalogue.ENTRIES[name].syncs, sync_names()
    assert all("masking_utils.py" in name for name in sync_names())
    assert counts.graph_cuts == 0
    late = compilations[-1] - compilations[WARM_UP - 1]
    assert late == 0, [row["reason"] for row in torch_ltc.compile_log()[-late:]]
    assert_close(lazy.losses, eager.losses, RELATIVE, 0)
    assert_close(lazy.parameters, eager.parameters, RELATIVE, ABSOLUTE)


@pytest.mark.parametrize("name", catalogue.ENTRIES)
def test_backward_is_a_program(name: str) -> None:
    """A separate program computes the backward pass, as if the loss had been read before
    it. Gradients are compared, because parameters don't show the gradients' magnitudes if
    the optimizer divides by these."""
    eager = catalogue.train(name, "cpu", 1)
    lazy = catalogue.train(name, "lazy", 1, before_backward=torch_ltc.mark_step)
    assert_close(lazy.gradients, eager.gradients, RELATIVE, ABSOLUTE)
