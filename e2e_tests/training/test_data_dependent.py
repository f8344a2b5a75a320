"""Training has eager's results if shapes or branches depend on values. Each op that reads
such values syncs once and is reported with its Python line."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch_ltc
from comparison import assert_close
from torch import nn

STEPS = 3
Loss = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def halved(y: torch.Tensor) -> torch.Tensor:
    while y.abs().sum() > 1:
        y = y * 0.5
    return y.sum()


# For the model's output `y` and its input `x`: the loss, and the op that syncs.
LOSSES: dict[str, tuple[Loss, str]] = {
    "nonzero": (lambda y, x: y.flatten()[(x > 0).flatten().nonzero()[:, 0]].sum(), "nonzero"),
    "nonzero as tuple": (lambda y, x: y[(x > 0).nonzero(as_tuple=True)].sum(), "nonzero"),
    "where of one": (lambda y, x: y[torch.where(x > 0)].sum(), "nonzero"),
    "masked_select": (lambda y, x: y.masked_select(y > 0).sum(), "masked_select"),
    "unique": (lambda y, x: y.sum() * torch.unique((x * 2).long()).numel(), "_unique2"),
    "unique of rows": (lambda y, x: y.sum() * len(torch.unique(x * 2, dim=0)), "unique_dim"),
    "consecutive": (
        lambda y, x: y.sum() * len(torch.unique_consecutive(x.long())),
        "unique_consecutive",
    ),
    "bincount": (lambda y, x: y.sum() * torch.bincount((x.flatten() + 2).long()).max(), "bincount"),
    "item in a branch": (
        lambda y, x: y.sum() if y.sum().item() > 0 else (y * -2).sum(),
        "_local_scalar_dense",
    ),
    "bool in a branch": (
        lambda y, x: y.sum() if (y > 0).any() else (y * -2).sum(),
        "_local_scalar_dense",
    ),
    "float": (lambda y, x: y.sum() * float(x.max()), "_local_scalar_dense"),
    "slice": (lambda y, x: y[: int((x > 0).sum(1).max())].sum(), "_local_scalar_dense"),
    "tolist": (lambda y, x: y.sum() * sum(x[0].tolist()), "_to_copy"),
    "print": (lambda y, x: (str(y), y.sum())[1], "_to_copy"),
}  # fmt: skip


def train(loss: Loss, device: str) -> list[torch.Tensor]:
    torch.manual_seed(0)
    model = nn.Linear(4, 4).to(device)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    x = (torch.arange(12.0).reshape(3, 4) / 3 - 1).to(device)
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        value = loss(model(x), x)
        value.backward()
        optimizer.step()
        losses.append(value.detach())
    return [*losses, *(p.detach() for p in model.parameters())]


def compare(loss: Loss) -> tuple[dict, list[dict]]:
    """Compares training with eager's; returns the steps' counters and the syncs."""
    expected = train(loss, "cpu")
    torch_ltc.reset_metrics()
    actual = train(loss, "lazy")
    torch_ltc.mark_step()
    counters, syncs = torch_ltc.metrics(), torch_ltc.syncs()
    assert_close(actual, expected, 1e-4, 1e-5)
    assert all("test_data_dependent.py" in row["location"] for row in syncs)
    return counters, syncs


@pytest.mark.parametrize("name", LOSSES)
def test_one_sync_a_step(name: str) -> None:
    loss, op = LOSSES[name]
    counters, syncs = compare(loss)
    assert counters["implicit_syncs"] == STEPS
    assert {row["op"] for row in syncs} == {f"aten::{op}"}


def masked(y: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """Reads, writes and accumulates through masks; gradients flow through each access."""
    z = y * 1
    z[z > 0] = 0.5
    z[x < 0] *= 2
    z[x.sum(1) > 0] = y[x.sum(1) > 0] * 3
    return (z * x).sum() + y[y > 0].square().sum()


@pytest.mark.parametrize(
    "loss", [masked, lambda y, x: halved(y)], ids=["masks", "while"]
)
def test_follows_eager(loss: Loss) -> None:
    compare(loss)


def test_a_mask_that_stays_on_the_device() -> None:
    """No size depends on the mask if a number is written through it."""

    def loss(y: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        y = y * 1
        y[x > 1] = 0.5
        return torch.where(x > 0, y, 0).masked_fill(x > 2, 1.0).square().sum()

    counters, _ = compare(loss)
    assert counters["fallback_calls"] == 0 and counters["implicit_syncs"] == 0
