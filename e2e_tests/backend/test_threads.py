"""Threads can use shared lazy tensors in the ways that eager allows."""

from __future__ import annotations

import faulthandler
import queue
import random
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
import torch_ltc
from comparison import assert_close
from torch import nn

ROUNDS = 4
DEVICES = ("cpu", "lazy")


@pytest.fixture(autouse=True)
def watchdog() -> Iterator[None]:
    """If a test deadlocks, prints all stacks and ends the process."""
    faulthandler.dump_traceback_later(240, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()


def in_threads(work: Callable[[int], None], count: int = 4) -> None:
    errors: list[BaseException] = []

    def guarded(index: int) -> None:
        try:
            work(index)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors, errors


def end_step_sometimes(choice: random.Random) -> None:
    if choice.random() < 0.1:
        torch_ltc.mark_step()


@pytest.mark.parametrize("trial", range(ROUNDS))
@pytest.mark.parametrize("donation", [True, False])
@pytest.mark.parametrize("is_async", [True, False])
def test_shared_accumulator(donation: bool, is_async: bool, trial: int) -> None:
    """No write is lost if threads write a shared tensor under a lock and read it without
    the lock."""
    with torch_ltc.config(donation=donation, async_execution=is_async):
        x = torch.zeros(50, device="lazy")
        lock = threading.Lock()

        def work(index: int) -> None:
            choice = random.Random(trial * 10 + index)
            for _ in range(20):
                with lock:
                    x.add_(1)
                (x * 2).sum()
                end_step_sometimes(choice)
                if choice.random() < 0.05:
                    (x + 1).sum().item()

        in_threads(work)
        assert x.tolist() == [80.0] * 50


@pytest.mark.parametrize("trial", range(4))
@pytest.mark.parametrize(
    "write",
    [
        lambda x, i: x.add_(1),
        lambda x, i: x[i].add_(4),
        lambda x, i: x.view(-1)[i * 8 : i * 8 + 8].add_(4),
        lambda x, i: x.t()[:, i].add_(4),
        lambda x, i: x.copy_(x + 1),
        lambda x, i: torch.add(x, 1, out=x),
        lambda x, i: x.index_add_(
            0, torch.tensor([i], device="lazy"), torch.full((1, 8), 4.0, device="lazy")
        ),
    ],
    ids=["whole", "row", "slice", "transposed", "copy", "out", "index_add"],
)
def test_shared_writes_of_many_kinds(write: Callable, trial: int) -> None:
    x = torch.zeros(4, 8, device="lazy")
    views = [x[i] for i in range(4)]
    lock = threading.Lock()

    def work(index: int) -> None:
        choice = random.Random(trial * 10 + index)
        for _ in range(8):
            with lock:
                write(x, index)
            views[(index + 1) % 4].sum()
            end_step_sometimes(choice)

    in_threads(work)
    expected = 32.0
    assert x.tolist() == [[expected] * 8] * 4
    for view in views:
        assert view.tolist() == [expected] * 8


@pytest.mark.parametrize("trial", range(ROUNDS))
def test_values_are_those_of_the_moment_of_reading(trial: int) -> None:
    """Later writes don't change what a reader has traced."""
    x = torch.zeros(64, device="lazy")
    lock = threading.Lock()
    kept: list[tuple[float, torch.Tensor]] = []
    total = 0.0

    def work(index: int) -> None:
        nonlocal total
        choice = random.Random(trial * 10 + index)
        for _ in range(15):
            with lock:
                x.add_(1)
                total += 1
                kept.append((total, x * 3))
            end_step_sometimes(choice)

    in_threads(work)
    for value, tensor in kept:
        assert tensor.tolist() == [value * 3] * 64


@pytest.mark.parametrize("trial", range(ROUNDS))
def test_producer_and_consumers(trial: int) -> None:
    made: queue.Queue = queue.Queue(4)
    sums: list[float] = []
    lock = threading.Lock()

    def work(index: int) -> None:
        if index == 0:
            for i in range(24):
                made.put((torch.ones(32, device="lazy") * i).cumsum(0))
                if i % 5 == 0:
                    torch_ltc.mark_step()
            for _ in range(3):
                made.put(None)
            return
        while (item := made.get()) is not None:
            value = item[-1].item()
            del item
            with lock:
                sums.append(value)

    in_threads(work)
    assert sorted(sums) == [32.0 * i for i in range(24)]


def test_tensors_freed_by_other_threads() -> None:
    made = [torch.ones(16, device="lazy") * i for i in range(64)]
    made += [t + 1 for t in made]

    def work(index: int) -> None:
        for i in range(20):
            made.append(torch.full((16,), float(i), device="lazy") * 2)
            made.pop(random.Random(i * 4 + index).randrange(len(made))).sum()
            if i % 7 == 0:
                torch_ltc.mark_step()

    in_threads(work)
    for tensor in made:
        assert torch.equal(tensor.cpu(), tensor.cpu()[0].expand(16))


def model() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 4))


@pytest.mark.parametrize("trial", range(ROUNDS))
def test_inference_of_a_shared_model(trial: int) -> None:
    torch.manual_seed(1)
    inputs = torch.randn(8, 5, 8)
    expected = model()(inputs).detach()
    net = model().to("lazy")
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.mul_(1.0)  # pending until the first read
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda x: net(x.to("lazy")).cpu(), inputs))
    assert_close(torch.stack(results), expected)


@pytest.mark.parametrize("device", DEVICES)
def test_backward_in_threads(device: str) -> None:
    """As in DataParallel, each thread computes the gradients of a share of the batch; the
    gradients are summed under a lock."""
    torch.manual_seed(2)
    inputs, targets = torch.randn(4, 6, 8), torch.randn(4, 6, 4)
    whole = model()
    loss = (whole(inputs) - targets).square().sum()
    loss.backward()
    net = model().to(device)
    sums = [torch.zeros_like(p) for p in net.parameters()]
    lock = threading.Lock()

    def work(index: int) -> None:
        x, y = inputs[index].to(device), targets[index].to(device)
        part = (net(x) - y).square().sum()
        gradients = torch.autograd.grad(part, list(net.parameters()))
        with lock:
            for total, gradient in zip(sums, gradients):
                total += gradient
        torch_ltc.mark_step()

    for _ in range(3):
        for total in sums:
            total.zero_()
        in_threads(work)
        for total, parameter in zip(sums, whole.parameters()):
            assert_close(total, parameter.grad, rtol=1e-4, atol=1e-5)


def test_a_reader_while_another_thread_trains() -> None:
    """A reader always sees the complete weights of one step."""
    weight = nn.Parameter(torch.zeros(256, device="lazy"))
    optimizer = torch.optim.SGD([weight], lr=1.0)
    ended = threading.Event()

    def work(index: int) -> None:
        if index == 0:
            for _ in range(60):
                weight.grad = torch.full((256,), -1.0, device="lazy")
                optimizer.step()
            ended.set()
            return
        seen = 0.0
        while not ended.is_set():
            value = weight.detach().cpu()
            assert torch.equal(value, value[0].expand(256))
            assert value[0] >= seen
            seen = value[0].item()

    in_threads(work, 3)
    assert weight.tolist() == [60.0] * 256


def test_models_of_their_own_train_as_alone() -> None:
    def train(seed: int, device: str) -> list[torch.Tensor]:
        generator = torch.Generator().manual_seed(seed)
        net = model().to(device)
        optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
        for _ in range(6):
            x = torch.randn(5, 8, generator=generator).to(device)
            optimizer.zero_grad()
            net(x).square().mean().backward()
            optimizer.step()
        return [p.detach().cpu() for p in net.parameters()]

    # A thread initializes its weights under the lock, because all threads share a random
    # generator.
    lock = threading.Lock()
    expected = [train(seed, "cpu") for seed in range(4)]
    results: dict[int, list[torch.Tensor]] = {}
    make = model

    def work(index: int) -> None:
        with lock:
            net = make().to("lazy")
            torch_ltc.mark_step()
        generator = torch.Generator().manual_seed(index)
        optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
        for _ in range(6):
            x = torch.randn(5, 8, generator=generator).to("lazy")
            optimizer.zero_grad()
            net(x).square().mean().backward()
            optimizer.step()
        results[index] = [p.detach().cpu() for p in net.parameters()]

    in_threads(work)
    for seed in range(4):
        assert_close(results[seed], expected[seed])
