"""Functions, methods and other callables can be captured, and called in threads; what can't
be captured is rejected."""

from __future__ import annotations

import copy
import functools
import threading
from typing import Any

import pytest
import torch
import torch_ltc
from capture.guarded_run import Run, both, plain
from torch import nn
from torch.nn import functional as F


class Trainer:
    def __init__(self) -> None:
        torch.manual_seed(0)
        self.model = nn.Linear(3, 1).to("lazy")
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.calls = 0

    @torch_ltc.capture
    def step(self, x: torch.Tensor) -> torch.Tensor:
        """Trains."""
        self.optimizer.zero_grad()
        loss = self.model(x).square().mean()
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    @classmethod
    @torch_ltc.capture
    def twice(cls, x: torch.Tensor) -> torch.Tensor:
        return x * 2


def test_methods() -> None:
    first, second = Trainer(), Trainer()
    x = torch.ones(4, 3, device="lazy")
    losses = []
    for _ in range(6):
        first.calls += 1  # `step` doesn't read it
        losses.append(first.step(x).item())
    assert losses == [second.step(x).item() for _ in range(6)]
    assert first.step.replays == second.step.replays == 4
    assert Trainer.step.__doc__ == "Trains."
    copied = copy.deepcopy(first)
    assert [copied.step(x).item() for _ in range(4)] == [
        first.step(x).item() for _ in range(4)
    ]
    assert copied.model.weight is not first.model.weight
    assert [Trainer.twice(x).sum().item() for _ in range(4)] == [24.0] * 4


@pytest.mark.parametrize("kind", ["partial", "callable object", "module", "builtin"])
def test_callables(kind: str) -> None:
    class Doubler:
        def __call__(self, x: torch.Tensor) -> torch.Tensor:
            return x * 2

    module = nn.ReLU()
    function = {
        "partial": functools.partial(torch.mul, other=2),
        "callable object": Doubler(),
        "module": module,
        "builtin": torch.neg,
    }[kind]
    captured = torch_ltc.capture(function)
    for number in range(5):
        x = torch.full((3,), float(number))
        assert torch.equal(captured(x.to("lazy")).cpu(), function(x))
    assert captured.replays == 3, captured.fallbacks


def test_what_is_not_callable_is_rejected() -> None:
    async def coroutine() -> None: ...

    def generator():
        yield 1

    for value, text in (
        (3, "a int"),
        ("step", "a str"),
        (coroutine, "a coroutine function"),
        (generator, "a generator function"),
        (nn.Linear, "a class"),
    ):
        with pytest.raises(TypeError, match=f"needs a function.*{text}"):
            torch_ltc.capture(value)


def test_threads() -> None:
    def call(run: Run, number: int) -> torch.Tensor:
        results = []
        thread = threading.Thread(
            target=lambda: results.append(run.call(run.batches[number]))
        )
        thread.start()
        thread.join()
        return results[0]

    lazy = both(plain, {}, call)
    assert lazy.call.replays >= 6, lazy.call.fallbacks


def test_an_exception_in_the_step() -> None:
    def make(run: Run) -> Any:
        def step(x: torch.Tensor, fail: bool = False) -> torch.Tensor:
            loss = run.loss(x)
            if fail:
                raise ValueError("mine")
            return run.update(loss)

        return step

    def call(run: Run, number: int) -> torch.Tensor:
        if number in (1, 6):
            with pytest.raises(ValueError, match="mine"):
                run.call(run.batches[number], fail=True)
        return run.call(run.batches[number])

    assert both(make, {}, call).call.replays >= 4


def test_constants_are_listed() -> None:
    def make(run: Run) -> Any:
        return lambda x: F.dropout(run.loss(x) * 2.75, 0.2).detach()

    run = Run("lazy", make)
    for x in run.batches[:4]:
        run.call(x)
    lines = run.call.constants
    assert any(
        line.startswith("0.1 from LeakyReLU.negative_slope at") for line in lines
    )
    assert any(line.startswith("2.75 from") for line in lines), lines
    assert all("an unknown line" not in line for line in lines), lines
