"""Training has eager's results if shapes or branches depend on values. Each op that reads
a pending value syncs once and is reported with its Python line; a few ops on data are
computed alone, so that the rest of the step stays one program."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch_ltc
from comparison import assert_close
from counting import counting
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


# The output `y`, the input `x`, and a mask of the batch, which has been computed.
BY_MASK: dict[str, Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "rows": lambda y, x, mask: y[mask].square().sum(),
    "elements": lambda y, x, mask: y[mask[:, None] & (x > -9)].square().sum(),
    "columns": lambda y, x, mask: (y.T * 1)[:, mask].square().sum(),
    "masked_select": lambda y, x, mask: y.masked_select(mask.unsqueeze(1)).square().sum(),
    "assignment": lambda y, x, mask: _assign(y * 1, mask, y[mask] * 3).square().sum(),
    "product": lambda y, x, mask: _scale(y * 1, mask).square().sum(),
    "nothing": lambda y, x, mask: y[mask & ~mask].sum() + y.square().sum(),
}  # fmt: skip


def _assign(y: torch.Tensor, mask: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    y[mask] = values
    return y


def _scale(y: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    y[mask] *= 2
    return y


@pytest.mark.parametrize("name", BY_MASK)
def test_a_mask_of_the_batch(name: str) -> None:
    """The positions that the mask selects are data of the step. If a few ops compute the
    mask from data, they run alone; the step isn't split in either case."""

    def loss(y: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        mask = torch.tensor([True, False, True]).to(x.device)
        return BY_MASK[name](y, x, mask)

    counters, _ = compare(loss)
    is_computed = name in ("elements", "masked_select", "nothing")
    assert counters["fallback_calls"] == 0
    assert counters["implicit_syncs"] == (STEPS if is_computed else 0)
    steps = [row for row in torch_ltc.step_log() if row["trigger"] == "mark_step"]
    # The gradient of the model's weight is in the same program as the loss.
    assert all(row["ops"] >= 8 for row in steps[-STEPS - 1 : -1])
    others = [row for row in torch_ltc.step_log() if row["trigger"] == "sync"]
    assert all(row["ops"] <= 6 for row in others[-STEPS:])


def test_numbers_of_selected_elements_share_programs() -> None:
    def train_with_masks(device: str) -> list[torch.Tensor]:
        torch.manual_seed(0)
        model = nn.Linear(4, 3).to(device)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        losses = []
        for step in range(16):
            x = torch.randn(40, 4).to(device)
            mask = (torch.arange(40) % 17 < step).to(device)
            loss = model(x)[mask].square().sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
        return losses

    expected = train_with_masks("cpu")
    with torch_ltc.config(varying_sizes="auto", cache=False), counting() as counts:
        actual = train_with_masks("lazy")
    assert_close(actual, expected, 1e-4, 1e-5)
    assert counts.compilations <= 6


@pytest.mark.parametrize("is_leading", [False, True], ids=["last", "leading"])
def test_a_learned_value_of_masked_elements(is_leading: bool) -> None:
    """Neither the write nor its gradient depends on the number of masked elements, so
    the mask isn't read."""

    def train_token(device: str) -> list[torch.Tensor]:
        torch.manual_seed(0)
        token = torch.randn(4, device=device).requires_grad_()
        y = torch.randn(3, 5, 4, device=device).requires_grad_()
        losses = []
        for _ in range(STEPS):
            z = y * 1
            mask = torch.rand(3, 5, device=device) < 0.5
            if is_leading:
                z[:, mask[0]] = token
            else:
                z[mask] = token
            loss = (z * torch.arange(4, device=device)).square().sum()
            loss.backward()
            losses.append(loss.detach())
        return [*losses, token.grad, y.grad]

    expected = train_token("cpu")
    torch_ltc.reset_metrics()
    actual = train_token("lazy")
    torch_ltc.mark_step()
    counters = torch_ltc.metrics()
    assert counters["fallback_calls"] == 0 and counters["implicit_syncs"] == 0
    assert_close(actual, expected, 1e-4, 1e-5)


def test_a_number_of_the_batch_is_read_alone() -> None:
    """A size that a few ops compute from data doesn't split the step."""

    def loss(y: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return y[: int((x > 0).sum(1).max())].square().sum()

    counters, _ = compare(loss)
    assert counters["implicit_syncs"] == STEPS
    steps = [row["ops"] for row in torch_ltc.step_log() if row["trigger"] == "sync"]
    assert all(ops <= 4 for ops in steps[-STEPS:])


def test_a_loop_without_steps_is_cut() -> None:
    """Reads of values that few ops compute don't end the trace, so a loop of such reads is
    cut after 32 of them."""

    def sum_in_loop(device: str) -> torch.Tensor:
        x = torch.arange(12.0).to(device)
        y = torch.zeros(12, device=device)
        for i in range(70):
            y = (y + x) * (x > i % 12).sum().item()
            y = y / (y.max() + 1)
        return y

    expected = sum_in_loop("cpu")
    torch_ltc.mark_step()
    actual = sum_in_loop("lazy")
    reads = [row["ops"] for row in torch_ltc.step_log() if row["trigger"] == "sync"][
        -70:
    ]
    assert_close(actual, expected, 1e-4, 1e-5)
    assert sum(ops > 100 for ops in reads) == 2 and max(reads) < 250
