"""A read of a value may run the step on the reader's thread, cuts the trace only if the
value is pending, and is reported if it cuts the steps of a loop."""

from __future__ import annotations

import contextlib
import logging
import resource
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import torch_ltc
from comparison import assert_close
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch_ltc._backend import bindings

READS: dict[str, Callable[[torch.Tensor], object]] = {
    "item": lambda x: x.sum().item(),
    "bool": lambda x: bool((x > 0).all()),
    "float": lambda x: float(x.mean()),
    "tolist": lambda x: x.tolist(),
    "cpu": lambda x: x.cpu(),
    "numpy": lambda x: x.detach().cpu().numpy(),
    "index": lambda x: x.argmax().item(),
}


def round_trip(read: Callable[[torch.Tensor], object]) -> object:
    x = torch.arange(6.0).to("lazy")
    return read((x * 2 + 1).tanh())


def waits(work: Callable[[], object], times: int = 100) -> int:
    """Returns how often this thread waited for another one during the calls of `work`."""
    before = resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw
    for _ in range(times):
        work()
    return resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw - before


@pytest.mark.parametrize("tier", ["compile", "interpret"])
@pytest.mark.parametrize("name", READS)
def test_a_short_step_runs_on_the_thread_that_waits(name: str, tier: str) -> None:
    with torch_ltc.config(tier=tier):
        for _ in range(10):
            round_trip(READS[name])
        # Compares the minimum: on a busy machine some steps take long, and the worker runs
        # them.
        assert min(waits(lambda: round_trip(READS[name])) for _ in range(5)) < 50


def wakes_of_others(work: Callable[[], object], times: int = 100) -> int:
    """Returns how often other threads of the process, such as the worker, began to wait
    during the calls of `work`."""

    def count() -> int:
        waits = 0
        for task in Path("/proc/self/task").iterdir():
            if int(task.name) == threading.get_native_id():
                continue
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it ended
                status = (task / "status").read_text()
                waits += int(status.split("\nvoluntary_ctxt_switches:")[1].split()[0])
        return waits

    before = count()
    for _ in range(times):
        work()
    return count() - before


def trained(weight: torch.Tensor) -> torch.Tensor:
    """Runs a training step and returns its loss. Like `optimizer.step()`, it ends with
    `mark_step`, which doesn't wait."""
    loss = weight.square().sum()
    weight.sub_(weight, alpha=1e-3)
    torch_ltc.mark_step()
    return loss


@pytest.mark.parametrize("tier", ["compile", "interpret"])
def test_a_short_step_whose_loss_is_read_runs_on_the_reader(tier: str) -> None:
    weight = torch.ones(4).to("lazy")
    with torch_ltc.config(tier=tier):
        for _ in range(10):
            trained(weight).item()
        found = [wakes_of_others(lambda: trained(weight).item()) for _ in range(5)]
        assert min(found) < 50


@pytest.mark.parametrize("tier", ["compile", "interpret"])
def test_a_program_whose_loss_is_no_longer_read_has_the_worker(tier: str) -> None:
    def train() -> None:
        trained(weight)
        torch_ltc.wait_device_ops()  # waits for all threads; isn't a read

    weight = torch.ones(4).to("lazy")
    with torch_ltc.config(tier=tier):
        for _ in range(10):
            trained(weight).item()
        trained(weight)
        assert wakes_of_others(train) >= 50


def test_a_step_that_nobody_waits_for_has_the_worker() -> None:
    x = torch.randn(600, 600).to("lazy")
    for _ in range(3):
        (x @ x).sum().item()
    begin = time.perf_counter()
    y = x
    for _ in range(2):
        y = y @ x * 1e-2
        torch_ltc.mark_step()
    traced = time.perf_counter() - begin
    y.sum().item()
    assert traced < time.perf_counter() - begin


def test_a_read_comes_after_the_steps_before_it() -> None:
    big = torch.randn(500, 500).to("lazy") * 1e-2
    small = torch.zeros(4, device="lazy")
    for step in range(20):
        big = big @ big
        small = small + 1
        torch_ltc.mark_step()  # leaves the step in the queue
        small.add_(1)
        assert small.sum().item() == 8 * (step + 1)


class Counting(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.calls += 1
        return function(*args, **(kwargs or {}))


SURROUNDINGS = {
    "autocast": lambda: torch.autocast("cpu", dtype=torch.bfloat16),
    "autocast of lazy": lambda: torch.autocast("lazy", dtype=torch.bfloat16),
    "inference": torch.inference_mode,
    "no gradient": torch.no_grad,
    "a mode": Counting,
    "default device": lambda: torch.device("lazy"),
}


@pytest.mark.parametrize("tier", ["compile", "interpret"])
@pytest.mark.parametrize("name", SURROUNDINGS)
def test_the_thread_s_settings_stay_out_of_the_step(name: str, tier: str) -> None:
    """The reader's autocast, modes and default device don't affect the step, although both
    tiers call PyTorch's kernel for `sort`."""

    def compute() -> torch.Tensor:
        x = torch.tensor([3.0, 1.0, 2.0], device="cpu").to("lazy")
        return ((x * 1.001).sort().values + 1).cumsum(0)

    with torch_ltc.config(tier=tier):
        expected = compute().cpu()
        for _ in range(5):
            with SURROUNDINGS[name]():
                result = compute()
                assert result.cpu().dtype == torch.float32
            assert_close(result, expected, rtol=0, atol=0)


READS_OF_VALUES: dict[str, Callable[[torch.Tensor, torch.Tensor], object]] = {
    "item": lambda x, total: total.item(),
    "bool": lambda x, total: bool(total),
    "float": lambda x, total: float(total),
    "format": lambda x, total: f"{total:.3f}",
    "tolist": lambda x, total: x.tolist(),
    "cpu": lambda x, total: x.cpu(),
    "numpy": lambda x, total: x.numpy(force=True),
    "equal": lambda x, total: torch.equal(x, x),
}


@pytest.mark.parametrize("name", READS_OF_VALUES)
def test_a_value_that_is_computed_is_read_without_a_cut(name: str) -> None:
    x = torch.rand(4).to("lazy") + 1
    total = x.sum()
    torch_ltc.mark_step(wait=True)
    pending = torch.rand(3).to("lazy") * 2
    ops, before = bindings().pending_ops(), torch_ltc.metrics()["implicit_syncs"]
    READS_OF_VALUES[name](x, total)
    assert bindings().pending_ops() == ops
    assert torch_ltc.metrics()["implicit_syncs"] == before
    assert pending.cpu().shape == (3,)


def said(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [r.message for r in caplog.records if "needed a value" in r.message]


def test_a_read_in_a_loop_is_reported_once(caplog: pytest.LogCaptureFixture) -> None:
    model = nn.Linear(3, 2).to("lazy")
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    x = torch.ones(4, 3, device="lazy")
    with caplog.at_level(logging.WARNING, "torch_ltc"):
        for _ in range(120):
            optimizer.zero_grad()
            loss = model(x).square().mean()
            loss.item()
            loss.backward()
            optimizer.step()
    assert len(said(caplog)) == 1
    assert "test_reads.py" in said(caplog)[0]


def test_a_read_that_ends_a_step_is_not_reported(
    caplog: pytest.LogCaptureFixture,
) -> None:
    model = nn.Linear(3, 2).to("lazy")
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    x = torch.ones(4, 3, device="lazy")
    with caplog.at_level(logging.INFO, "torch_ltc"):
        for _ in range(30):
            model(x).argmax().item()
        torch_ltc.mark_step()
        for _ in range(30):
            optimizer.zero_grad()
            loss = model(x).square().mean()
            loss.backward()
            optimizer.step()
            loss.item()
            (model(x) > 0).sum().item()
            torch_ltc.mark_step()
    assert said(caplog) == []
