"""Trains with DistributedDataParallel while other threads read losses and parameters. Each
rank of test_threads.py calls these functions."""

from __future__ import annotations

import queue
import threading

import torch
import torch.distributed as dist
from comparison import assert_close
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def _train(device: str, note=lambda model, loss: None) -> tuple[list, list]:
    """Returns the losses and parameters. Calls `note` after each step."""
    torch.manual_seed(0)
    layers = [nn.Sequential(nn.Linear(16, 16), nn.Tanh()) for _ in range(4)]
    model = DistributedDataParallel(nn.Sequential(*layers).to(device))
    optimizer = torch.optim.AdamW(model.parameters())
    generator = torch.Generator().manual_seed(dist.get_rank())
    losses = []
    for step in range(30):
        x = torch.randn(4 + step % 3, 16, generator=generator).to(device)
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
        note(model, losses[-1])
        if step % 5 == 4:
            total = losses[-1].clone()
            dist.all_reduce(total)
    return [x.item() for x in losses], [p.detach().cpu() for p in model.parameters()]


def compute_losses(rank: int) -> None:
    """A logging thread computes with each step's loss, while the next step's collectives
    are traced, compiled and run."""
    expected, _ = _train("cpu")
    losses: queue.Queue = queue.Queue()
    logged: list[float] = []

    def log() -> None:
        while (loss := losses.get()) is not None:
            logged.append(float((loss * 2).sum()))

    thread = threading.Thread(target=log)
    thread.start()
    try:
        _train("lazy", lambda model, loss: losses.put(loss))
    finally:
        losses.put(None)
        thread.join()
    assert_close(logged, [2 * x for x in expected], rtol=1e-4, atol=1e-6)


def watch_parameters(rank: int) -> None:
    """A thread reads the parameters all the time, also those of steps that aren't
    complete."""
    expected_losses, expected = _train("cpu")
    watched: list[nn.Module] = []
    errors: list[Exception] = []
    started, stopped = threading.Event(), threading.Event()

    def watch() -> None:
        started.wait()
        while not stopped.is_set() and not errors:
            for parameter in list(watched[0].parameters())[:2]:
                try:
                    float(parameter.detach().sum())
                except RuntimeError as error:
                    errors.append(error)

    def note(model: nn.Module, loss: torch.Tensor) -> None:
        watched.append(model)
        started.set()

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        losses, parameters = _train("lazy", note)
    finally:
        watched or watched.append(nn.Module())
        started.set()
        stopped.set()
        thread.join()
    assert not errors, errors[0]
    assert_close(losses, expected_losses, rtol=1e-4, atol=1e-6)
    assert_close(parameters, expected, rtol=1e-4, atol=1e-5)
