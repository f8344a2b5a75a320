"""Common calls in a training loop cause no compilation, sync or fallback in steady
steps."""

from __future__ import annotations

import pytest
import torch
import torch_ltc
from comparison import assert_close
from counting import Counts, counting, fallback_names, sync_names
from torch import nn
from torch.nn import functional as F
from training.running import tasks

WARM_UP, STEADY = 3, 8


class Loop:
    """Trains a perceptron with AdamW, one step at a time."""

    def __init__(self) -> None:
        self.task = tasks.TASKS["test"]["perceptron"]
        self.model = self.task.model().to("lazy")
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3)

    def step(self, number: int) -> torch.Tensor:
        batch = tasks.to(self.task.batch(number), "lazy")
        self.optimizer.zero_grad()
        loss = self.task.loss(self.model, batch)
        loss.backward()
        self.optimizer.step()
        return loss


def steady_counts(loop: Loop, after) -> Counts:
    for number in range(WARM_UP):
        after(number, loop.step(number))
    torch_ltc.reset_metrics()
    with counting() as counts:
        for number in range(WARM_UP, WARM_UP + STEADY):
            after(number, loop.step(number))
        torch_ltc.wait_device_ops()
    return counts


def assert_steady(counts: Counts) -> None:
    assert counts.compilations + counts.program_disk_hits == 0
    assert counts.fallback_calls == 0, fallback_names()
    assert counts.implicit_syncs == 0, sync_names()
    assert counts.steps == STEADY
    assert counts.executions == STEADY


def test_changing_learning_rate() -> None:
    loop = Loop()

    def after(number: int, loss: torch.Tensor) -> None:
        for group in loop.optimizer.param_groups:
            group["lr"] = 1e-3 / (number + 1)
            group["weight_decay"] = 0.01 * number

    assert_steady(steady_counts(loop, after))


def test_learning_rate_takes_effect() -> None:
    parameter = nn.Parameter(torch.ones(3, device="lazy"))
    optimizer = torch.optim.SGD([parameter], lr=1.0)
    for rate in (1.0, 0.5, 0.25, 0.125):
        optimizer.param_groups[0]["lr"] = rate
        optimizer.zero_grad()
        parameter.sum().backward()
        optimizer.step()
    assert parameter.tolist() == [1 - 1.875] * 3


def test_kept_losses() -> None:
    losses = []
    loop = Loop()
    assert_steady(steady_counts(loop, lambda number, loss: losses.append(loss)))
    assert len({loss.item() for loss in losses}) > 1


def test_kept_detached_losses_and_running_sum() -> None:
    loop = Loop()
    total = torch.zeros((), device="lazy")
    kept = []

    def after(number: int, loss: torch.Tensor) -> None:
        nonlocal total
        total = total + loss.detach()
        kept.append(loss.detach())

    assert_steady(steady_counts(loop, after))
    assert_close(total, torch.stack([loss.cpu() for loss in kept]).sum())


def test_item_each_step() -> None:
    """The value is available after the step: reading it cuts nothing."""
    values = []
    loop = Loop()
    counts = steady_counts(loop, lambda number, loss: values.append(loss.item()))
    assert_steady(counts)
    assert len(values) == WARM_UP + STEADY


def test_item_before_the_step_is_a_counted_sync_without_recompilation() -> None:
    loop = Loop()
    values = []

    def step(number: int) -> None:
        batch = tasks.to(loop.task.batch(number), "lazy")
        loop.optimizer.zero_grad()
        loss = loop.task.loss(loop.model, batch)
        values.append(loss.item())
        loss.backward()
        loop.optimizer.step()

    for number in range(WARM_UP + 1):
        step(number)
    torch_ltc.reset_metrics()
    with counting() as counts:
        for number in range(STEADY):
            step(number)
    assert counts.compilations + counts.program_disk_hits == 0
    assert counts.implicit_syncs == STEADY
    (row,) = torch_ltc.syncs()
    assert row["op"] == "aten::_local_scalar_dense"
    assert row["calls"] == STEADY
    assert "test_costs.py" in row["location"]


@pytest.mark.parametrize("each", [2, 3])
def test_gradient_accumulation(each: int) -> None:
    loop = Loop()

    def run(number: int) -> None:
        for part in range(each):
            batch = tasks.to(loop.task.batch(number * each + part), "lazy")
            (loop.task.loss(loop.model, batch) / each).backward()
        loop.optimizer.step()
        loop.optimizer.zero_grad()

    for number in range(WARM_UP):
        run(number)
    with counting() as counts:
        for number in range(STEADY):
            run(number)
    assert_steady(counts)


def test_scalars_that_change_are_not_constants() -> None:
    x = torch.ones(4, device="lazy")
    for step in range(2):
        ((x * (0.1 + step) + step) / (step + 2)).sum()
        torch_ltc.mark_step()
    with counting() as counts:
        results = []
        for step in range(2, 7):
            results.append(((x * (0.1 + step) + step) / (step + 2)).sum())
            torch_ltc.mark_step()
    assert counts.compilations + counts.program_disk_hits <= 1
    for step, result in zip(range(2, 7), results):
        expected = 4 * ((0.1 + step) + step) / (step + 2)
        assert abs(result.item() - expected) < 1e-5


def test_evaluation_loop_with_mark_step() -> None:
    model = tasks.TASKS["test"]["resnet"].model().to("lazy").eval()
    batches = [tasks.TASKS["test"]["resnet"].batch(step) for step in range(6)]

    def evaluate(batch) -> torch.Tensor:
        with torch.no_grad():
            hits = model(batch[0].to("lazy")).argmax(1) == batch[1].to("lazy")
        torch_ltc.mark_step()
        return hits.sum()

    evaluate(batches[0]), evaluate(batches[1])
    torch_ltc.mark_step()
    with counting() as counts:
        for batch in batches[2:]:
            evaluate(batch)
    assert counts.compilations + counts.program_disk_hits == 0
    assert counts.fallback_calls == 0, fallback_names()
    assert counts.implicit_syncs == 0, sync_names()


def test_optimizer_step_writes_in_place() -> None:
    """Each step donates the buffers of parameters and optimizer state."""
    loop = Loop()
    counts = steady_counts(loop, lambda number, loss: None)
    tensors = sum(1 for _ in loop.model.parameters()) * 3  # with both averages
    assert counts.donated_buffers >= STEADY * tensors


def test_two_models_in_one_step() -> None:
    """Two models whose optimizers alternate, as in adversarial training, compile nothing
    in steady steps."""
    first, second = nn.Linear(4, 4).to("lazy"), nn.Linear(4, 4).to("lazy")
    rules = [torch.optim.Adam(m.parameters(), lr=1e-2) for m in (first, second)]

    def run() -> None:
        x = torch.ones(2, 4, device="lazy")
        for rule in rules:
            rule.zero_grad()
            F.mse_loss(second(first(x)), x).backward()
            rule.step()

    for _ in range(WARM_UP):
        run()
    with counting() as counts:
        for _ in range(STEADY):
            run()
    assert counts.compilations + counts.program_disk_hits == 0
    assert counts.steps == 2 * STEADY
