"""Threads of a process that use collectives at the same time, each in groups of its own,
and in a different order on each rank. Each rank of test_threads.py calls these
functions."""

from __future__ import annotations

import datetime
import random
import threading
import time
from collections.abc import Callable

import torch
import torch.distributed as dist
import torch_ltc
from comparison import assert_close
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def _in_threads(*functions: Callable[[], object], pause: float = 0.0) -> list:
    """Calls each function in a thread of its own, in an order that differs on each rank.
    Returns the results; raises the first error."""
    results: list = [None] * len(functions)

    def call(place: int) -> None:
        try:
            results[place] = functions[place]()
        except Exception as error:  # raised below
            results[place] = error

    places = list(range(len(functions)))
    places = places[dist.get_rank() :] + places[: dist.get_rank()]
    threads = {place: threading.Thread(target=call, args=(place,)) for place in places}
    for thread in threads.values():
        thread.start()
        time.sleep(pause)
    for thread in threads.values():
        thread.join()
    for result in results:
        if isinstance(result, Exception):
            raise result
    return results


def _sums(device: str, group, seed: int) -> list[float]:
    """Reduces in a loop; the thread sleeps for times that differ on each rank."""
    generator = random.Random(seed + 7 * dist.get_rank())
    x = torch.ones(5, device=device) * (dist.get_rank() + 1)
    values = []
    for i in range(40):
        x = x / 3 + seed
        if i % 3 == 2:
            dist.all_reduce(x, group=group, async_op=True).wait()
        else:
            dist.all_reduce(x, group=group)
        if generator.random() < 0.3:
            time.sleep(generator.random() * 0.01)
        if generator.random() < 0.3:
            values.append(x.sum().item())
    return [x.sum().item()]


_making = threading.Lock()  # torch's default generator is global


def _train(device: str, group, seed: int) -> tuple[list, list]:
    with _making:
        torch.manual_seed(seed)
        network = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 1)).to(device)
    model = DistributedDataParallel(network, process_group=group)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    generator = torch.Generator().manual_seed(dist.get_rank() + seed)
    losses = []
    for _ in range(20):
        x = torch.randn(4, 6, generator=generator)
        loss = model(x.to(device)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item() if seed % 2 else loss.detach())
    parameters = [p.detach().cpu() for p in model.parameters()]
    return [float(x) for x in losses], parameters


def _assert_as_on_cpu(function: Callable, count: int) -> None:
    """Compares the results of `count` threads with those of the CPU. The threads start at
    the same time, and then one after the other."""
    groups = [dist.new_group() for _ in range(count)]
    expected = [function("cpu", group, seed) for seed, group in enumerate(groups)]
    calls = [
        lambda seed=seed, group=group: function("lazy", group, seed)
        for seed, group in enumerate(groups)
    ]
    for pause in (0.0, 0.2):
        found = _in_threads(*calls, pause=pause)
        assert_close(found, expected, rtol=1e-4, atol=1e-5)


def reduce_in_threads(rank: int) -> None:
    _assert_as_on_cpu(_sums, 3)


def _replay(device: str, group, seed: int) -> list[float]:
    """Reduces in a function that is captured on device lazy."""

    def step(x: torch.Tensor) -> torch.Tensor:
        x = x / 3 + seed
        dist.all_reduce(x, group=group)
        return x

    captured = torch_ltc.capture(step) if device == "lazy" else step
    x = torch.ones(5, device=device) * (dist.get_rank() + 1)
    for i in range(40):
        x = captured(x)
        if i % 7 == 3 + dist.get_rank():
            x.sum().item()
    assert device == "cpu" or captured.replays > 30, captured.fallbacks
    return [x.sum().item()]


def replay_in_threads(rank: int) -> None:
    """Replayed collectives run on the thread's worker, as traced ones do."""
    _assert_as_on_cpu(_replay, 2)


def train_in_threads(rank: int) -> None:
    _assert_as_on_cpu(_train, 2)


def _watch(device: str, group, seed: int) -> object:
    """The first group's thread trains; the second group's thread occasionally reduces a
    metric."""
    return _sums(device, group, seed) if seed else _train(device, group, seed)


def reduce_next_to_training(rank: int) -> None:
    _assert_as_on_cpu(_watch, 2)


def hand_over_group(rank: int) -> None:
    """Threads use one group in turn, and a thread waits for another thread's collective."""
    x = torch.full((4,), rank + 1.0, device="lazy")
    works: list = []

    def begin() -> None:
        x.mul_(2)
        works.append(dist.all_reduce(x, async_op=True))

    def end() -> None:
        works.pop().wait()
        x.add_(1)
        dist.all_reduce(x)

    for _ in range(5):
        for function in (begin, end):
            thread = threading.Thread(target=function)
            thread.start()
            thread.join()
    expected = torch.tensor([1.0, 2.0])
    for _ in range(5):
        expected = (2 * expected).sum().repeat(2)
        expected = (expected + 1).sum().repeat(2)
    assert_close(x, expected[0].repeat(4))


def share_weights(rank: int) -> None:
    """A thread's collectives read weights that the other thread updates in place between
    them: each collective sends the values of its place in the program."""
    group = dist.new_group()
    weights = torch.zeros(1000, device="lazy")
    ready, taken = threading.Semaphore(0), threading.Semaphore(0)
    sums: list = []

    def update() -> None:
        for _ in range(20):
            weights.add_(1)
            torch_ltc.mark_step()
            ready.release()
            taken.acquire()

    def reduce() -> None:
        for _ in range(20):
            ready.acquire()
            total = weights * 1
            dist.all_reduce(total, group=group)
            sums.append(total)
            taken.release()

    _in_threads(update, reduce)
    assert [float(total[0]) for total in sums] == [2.0 * (i + 1) for i in range(20)]


def fail_in_one_thread(rank: int) -> None:
    """If ranks don't meet in one thread's group, the other thread's collectives
    continue."""
    short = dist.new_group(timeout=datetime.timedelta(seconds=4))
    other = dist.new_group()
    errors: list[str] = []
    done = threading.Event()

    def fail() -> None:
        if rank == 0:
            x = torch.ones(3, device="lazy")
            dist.all_reduce(x, group=short)
            try:
                x.sum().item()
            except RuntimeError as error:
                errors.append(str(error))
        done.set()

    def reduce() -> int:
        count = 0
        goes_on = torch.ones((), device="lazy")
        while goes_on.item() > 0:
            count += 1
            goes_on = torch.tensor(float(not done.is_set()), device="lazy")
            dist.all_reduce(goes_on, group=other)
        return count

    _, count = _in_threads(fail, reduce)
    assert count > 20, f"{count} collectives while the other thread waited"
    if rank == 0:
        assert "all_reduce(sum) of 3 Float at" in errors[0], errors
        assert "thread_group_cases.py" in errors[0], errors
