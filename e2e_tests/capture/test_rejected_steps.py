"""A step whose calls do what a replay couldn't repeat is traced each time, and the reason
names the operation and its line."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable
from typing import Any

import numpy
import pytest
import torch
import torch_ltc
from capture.guarded_run import STEPS, Run, both


def counting(run: Run) -> Any:
    run.box = [0]

    def step(x: torch.Tensor) -> torch.Tensor:
        run.box[0] += 1
        return run.update(run.loss(x) * (1.0 if run.box[0] < 7 else 2.0))

    return step


def remembering(run: Run) -> Any:
    def step(x: torch.Tensor) -> torch.Tensor:
        loss = run.update(run.loss(x))
        run.last = loss
        return loss

    return step


def appending(run: Run) -> Any:
    run.box = []

    def step(x: torch.Tensor) -> torch.Tensor:
        loss = run.update(run.loss(x))
        run.box.append(loss)
        return loss

    return step


def drawing(draw: Callable[[], float]) -> Any:
    return lambda run: lambda x: run.update(run.loss(x) * (1 + 0 * draw()))


def iterating(run: Run) -> Any:
    iterator = iter([1.0] * 7 + [2.0] * STEPS)
    return lambda x: run.update(run.loss(x) * next(iterator))


def printing(run: Run) -> Any:
    def step(x: torch.Tensor) -> torch.Tensor:
        print("step", end="")
        return run.update(run.loss(x))

    return step


def scheduled(run: Run) -> Any:
    schedule = torch.optim.lr_scheduler.ExponentialLR(run.optimizer, 0.8)

    def step(x: torch.Tensor) -> torch.Tensor:
        loss = run.update(run.loss(x))
        schedule.step()
        return loss

    return step


def seeding(run: Run) -> Any:
    def step(x: torch.Tensor) -> torch.Tensor:
        torch.manual_seed(5)
        return run.update(run.loss(x))

    return step


def counting_in_a_variable(run: Run) -> Any:
    calls = 0

    def step(x: torch.Tensor) -> torch.Tensor:
        nonlocal calls
        calls += 1
        return run.update(run.loss(x) * (1.0 if calls < 7 else 2.0))

    return step


REJECTED = {
    "a variable": (
        counting_in_a_variable,
        r"changes calls \(at test_rejected_steps.py:\d+\)",
    ),
    "a counter": (counting, r"changes run.box\[0\] \(at test_rejected_steps.py:\d+\)"),
    "an attribute": (
        remembering,
        r"changes run.last \(at test_rejected_steps.py:\d+\)",
    ),
    "a list": (appending, r"changes run.box \(at"),
    "random": (drawing(random.random), "random"),
    "numpy": (drawing(numpy.random.rand), "random"),
    "time": (drawing(time.time), r"time.time at test_rejected_steps.py:\d+"),
    "an iterator": (iterating, "'iterator', an iterator"),
    "print": (printing, r"print at test_rejected_steps.py:\d+"),
    "a scheduler": (scheduled, r"scheduler.step\(\)"),
    "a seed": (seeding, r"random generator's state at test_rejected_steps.py:\d+"),
}


@pytest.mark.parametrize("name", REJECTED)
def test_what_a_replay_could_not_repeat(name: str) -> None:
    make, reason = REJECTED[name]
    lazy = both(make, {})
    assert lazy.call.replays == 0
    found = list(lazy.call.fallbacks)
    assert any(re.search(reason, text) for text in found), found


@pytest.mark.parametrize("read", ["item", "scalar operand", "index", "tolist"])
def test_values_of_cpu_arguments(read: str) -> None:
    @torch_ltc.capture
    def step(x: torch.Tensor, n: torch.Tensor) -> torch.Tensor:
        if read == "item":
            return x * n.item()
        if read == "index":
            return x[: int(n + 1)] * 2
        if read == "tolist":
            return x * n.tolist()
        return x * n

    x = torch.arange(6.0)
    for number in (2, 2, 2, 3, 4):
        n = torch.tensor(number)
        expected = step.__wrapped__(x, n)
        assert torch.equal(step(x.to("lazy"), n).cpu(), expected)
