"""Captured steps accept eager's arguments, in any combination, and return what eager
returns, except for autograd graphs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch_ltc
from capture.guarded_run import Run, both, plain, set_attribute
from comparison import assert_close
from torch import nn


def two(run: Run) -> Any:
    return lambda a, b: run.update((run.model(a) - b.mean()).square().mean())


ARGUMENTS: dict[str, Callable[[Run, int], tuple[tuple, dict]]] = {
    "the same twice, then two": lambda r, i: (
        (r.batches[i], r.batches[i if i < 7 else 0]), {}
    ),
    "two, then the same twice": lambda r, i: (
        (r.batches[i], r.batches[0 if i < 7 else i]), {}
    ),
    "an alias, then another": lambda r, i: (
        (r.batches[i], r.batches[i].detach() if i < 7 else r.batches[0]), {}
    ),
    "names in another order": lambda r, i: (
        (), dict([("a", r.batches[i]), ("b", r.batches[0])][:: 1 if i < 7 else -1])
    ),
    "transposed": lambda r, i: (
        (r.batches[i], r.batches[i] if i < 7 else r.batches[i].t().contiguous().t()), {}
    ),
    "another dtype": lambda r, i: (
        (r.batches[i], r.batches[i] if i < 7 else r.batches[i].double().float()), {}
    ),
    "another size": lambda r, i: ((r.batches[i][: 6 if i < 7 else 4], r.batches[i]), {}),
}  # fmt: skip


@pytest.mark.parametrize("name", ARGUMENTS)
def test_arguments(name: str) -> None:
    def call(run: Run, number: int) -> torch.Tensor:
        positional, named = ARGUMENTS[name](run, number)
        return run.call(*positional, **named)

    lazy = both(two, {}, call)
    assert lazy.call.replays >= 4, lazy.call.fallbacks


def test_a_model_and_an_optimizer_as_arguments() -> None:
    def make(run: Run) -> Any:
        def step(model: nn.Module, optimizer: torch.optim.Optimizer, batch: dict):
            optimizer.zero_grad()
            loss = model(batch["x"]).square().mean()
            loss.backward()
            optimizer.step()
            return loss.detach()

        return step

    def call(run: Run, number: int) -> torch.Tensor:
        return run.call(run.model, run.optimizer, {"x": run.batches[number]})

    lazy = both(make, {7: set_attribute("model.3.p", 0.6)}, call)
    assert lazy.call.replays >= 6, lazy.call.fallbacks


def test_writes_to_arguments() -> None:
    def make(run: Run) -> Any:
        def step(x: torch.Tensor) -> torch.Tensor:
            x.add_(0.5)
            return run.update(run.loss(x))

        return step

    lazy = both(make, {})
    assert lazy.call.replays >= 8, lazy.call.fallbacks


def test_writes_to_arguments_that_have_views() -> None:
    """Views of the arguments see the step's writes to them."""

    def make(run: Run) -> Any:
        run.box = [x[:2] for x in run.batches]

        def step(x: torch.Tensor) -> torch.Tensor:
            x.mul_(0.5)
            return run.update(run.loss(x))

        return step

    runs = []
    for device in ("cpu", "lazy"):
        run = Run(device, make)
        for x in run.batches:
            run.call(x)
        runs.append([view.cpu() for view in run.box])
    assert_close(*runs)


def test_returned_parameters_are_the_parameters() -> None:
    def make(run: Run) -> Any:
        def step(x: torch.Tensor) -> Any:
            loss = run.update(run.loss(x))
            return loss, run.model[0].weight, loss, x

        return step

    run = Run("lazy", make)
    results = [run.call(x) for x in run.batches]
    assert run.call.replays >= 8, run.call.fallbacks
    for (loss, weight, again, x), batch in zip(results, run.batches):
        assert weight is run.model[0].weight and again is loss and x is batch


def test_results_without_a_graph_say_so() -> None:
    model = nn.Linear(3, 1).to("lazy")

    @torch_ltc.capture
    def step(x: torch.Tensor) -> torch.Tensor:
        loss = model(x).square().mean()
        loss.backward()
        return loss

    x = torch.ones(2, 3, device="lazy")
    losses = [step(x) for _ in range(5)]
    assert step.replays and all(loss.requires_grad for loss in losses)
    with pytest.raises(
        RuntimeError, match="captured step returned has no autograd graph"
    ):
        losses[-1].backward()


def test_kept_gradients_keep_their_values() -> None:
    runs = []
    for device in ("cpu", "lazy"):
        run = Run(device, plain)
        kept = []
        for x in run.batches:
            run.call(x)
            kept.append(run.model[0].weight.grad)
        runs.append([gradient.cpu() for gradient in kept])
    assert_close(*runs, rtol=1e-3, atol=1e-5)
