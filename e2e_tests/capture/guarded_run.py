"""Runs a captured step on device lazy, and the same step on the CPU, with changes between
the calls, and compares the results."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import torch
import torch_ltc
from comparison import assert_close
from torch import nn

STEPS = 14


class Run:
    """A model with its optimizer and batches, other objects that a step may refer to, and
    the losses."""

    def __init__(self, device: str, make: Callable[[Run], Any]) -> None:
        torch.manual_seed(0)
        random.seed(0)
        self.device = device
        self.model = nn.Sequential(
            # Without a bias, whose gradient before batch norm is noise.
            nn.Linear(4, 8, bias=False),
            nn.BatchNorm1d(8, momentum=0.2),
            nn.LeakyReLU(0.1),
            nn.Dropout(0.25),
            nn.Linear(8, 2),
        ).to(device)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-2)
        generator = torch.Generator().manual_seed(1)
        self.batches = [
            torch.randn(6, 4, generator=generator).to(device) for _ in range(STEPS)
        ]
        self.box: Any = None
        self.losses: list[torch.Tensor] = []
        self.handles: list[Any] = []
        function = make(self)
        self.call = torch_ltc.capture(function) if device == "lazy" else function
        torch.manual_seed(3)

    def loss(self, x: torch.Tensor) -> torch.Tensor:
        return (self.model(x) - 1).square().mean()

    def update(self, loss: torch.Tensor) -> torch.Tensor:
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.detach()


def plain(run: Run) -> Callable[[torch.Tensor], torch.Tensor]:
    return lambda x: run.update(run.loss(x))


def both(
    make: Callable[[Run], Any],
    changes: dict[int, Callable[[Run], None]],
    call: Callable[[Run, int], Any] | None = None,
) -> Run:
    """Runs steps on both devices, with `changes` before some of them, and compares losses
    and parameters. Returns the run on device lazy."""
    runs = []
    for device in ("cpu", "lazy"):
        run = Run(device, make)
        for number, x in enumerate(run.batches):
            if number in changes:
                changes[number](run)
            result = call(run, number) if call else run.call(x)
            run.losses.append(result.detach().clone())
        runs.append(run)
    eager, lazy = runs
    assert_close(lazy.losses, eager.losses, 1e-4, 1e-5, "losses")
    assert_close(lazy.model.state_dict(), eager.model.state_dict(), 1e-3, 1e-4, "state")
    assert_close(lazy.batches, eager.batches, what="batches")
    return lazy


def set_attribute(path: str, value: Any) -> Callable[[Run], None]:
    """Returns a change of an attribute; `path` begins at the run: "model.3.p"."""

    def change(run: Run) -> None:
        owner: Any = run
        *outer, last = path.split(".")
        for name in outer:
            owner = owner[int(name)] if name.isdigit() else getattr(owner, name)
        setattr(owner, last, value)

    return change
