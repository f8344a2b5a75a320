"""Each model with each optimizer equals eager CPU for 20 steps, dropout included, with
one program for each kind of step and without fallbacks."""

from __future__ import annotations

import functools

import pytest
import torch
import torch_ltc
from counting import counting, fallback_names, sync_names
from training.running import Outcome, assert_follows, optimizers, tasks, train

# The number of steps whose graphs may differ from those of the later steps: the first step
# creates the optimizer's state, and the second reads it for the first time.
WARM_UP = 3


@functools.cache
def eager(task: str, optimizer: str) -> Outcome:
    """Trains on one thread of the CPU: on two, ResNet with SGD isn't reproducible
    (running.SEED)."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return train(tasks.TASKS["test"][task], optimizer, "cpu")
    finally:
        torch.set_num_threads(threads)


@pytest.mark.parametrize("optimizer", optimizers.ALL)
@pytest.mark.parametrize("name", tasks.NAMES)
def test_follows_eager(name: str, optimizer: str) -> None:
    torch_ltc.reset_metrics()
    compilations = []

    def each_step(step: int, loss) -> None:
        counters = torch_ltc.metrics()
        compilations.append(counters["compilations"] + counters["program_disk_hits"])

    with counting() as counts:
        lazy = train(tasks.TASKS["test"][name], optimizer, "lazy", each_step=each_step)
    assert_follows(lazy, eager(name, optimizer))
    assert counts.fallback_calls == 0, fallback_names()
    assert counts.implicit_syncs == 0, sync_names()
    assert counts.graph_cuts == 0
    late = compilations[-1] - compilations[WARM_UP - 1]
    assert late == 0, [row["reason"] for row in torch_ltc.compile_log()[-late:]]
    assert counts.donated_buffers > 0
