"""A captured step replays its program for sizes that it has never seen, if the function's
code would do the same at these sizes; otherwise it traces the call."""

from __future__ import annotations

import contextvars
import math
import random
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch_ltc
from comparison import assert_close
from counting import counting
from subprocesses import run_python
from torch import nn
from torch.nn import functional as F

TABLE = {n: 1.0 + n * 7 % 5 for n in range(200)}


def calls(
    function: Callable[..., Any], sizes: list[tuple[int, int]]
) -> tuple[Any, list[Any], list[Any]]:
    """Calls the function eagerly and captured; returns the captured step and all
    results."""
    step = torch_ltc.capture(function)
    expected, actual = [], []
    for number, shape in enumerate(sizes):
        x = torch.randn(shape, generator=torch.Generator().manual_seed(number))
        for device, call, results in (
            ("cpu", function, expected),
            ("lazy", step, actual),
        ):
            torch.manual_seed(number)
            results.append(call(x.clone().to(device)))
    return step, expected, actual


def random_sizes(number: int, least: int = 9, most: int = 70) -> list[tuple[int, int]]:
    draws = random.Random(0)
    return [
        (draws.choice([3, 4, 5]), draws.randint(least, most)) for _ in range(number)
    ]


def gradient_of_mean(x):
    x = x.detach().requires_grad_()
    (x * x).mean().backward()
    return x.grad


def gradient_of_variance(x):
    x = x.detach().requires_grad_()
    x.var(1).sum().backward()
    return x.grad


def cross_entropy(x):
    x = x.detach().requires_grad_()
    loss = F.cross_entropy(x, torch.arange(x.shape[0], device=x.device) % x.shape[1])
    loss.backward()
    return loss.detach(), x.grad


def written(x):
    x.add_(1)
    return x.sum(), x


def quotients(x):
    quotient, remainder = divmod(x.shape[1], 5)
    return x[:, :quotient].sum() + remainder


def causal(x):
    n = x.shape[1]
    mask = torch.ones(n, n, device=x.device).triu(1).bool()
    scores = (x.t() @ x).masked_fill(mask, -math.inf)
    return scores.softmax(1)


GENERAL = {
    "reciprocal": lambda x: (x * (1 / x.shape[1])).sum(),
    "power": lambda x: (x * x.size(1) ** -0.5).sum(),
    "count": lambda x: x.sum() / x.numel(),
    "flattened": lambda x: x.reshape(x.shape[0] * x.shape[1]).view(*x.shape).sum(1),
    "range": lambda x: x + torch.arange(x.shape[1], device=x.device),
    "drawn": lambda x: x + torch.rand(x.shape[1], device=x.device),
    "drawn in order": lambda x: x + torch.randn_like(x.t()).t(),
    "dropout": lambda x: F.dropout(x.t(), 0.3),
    "permutation": lambda x: x[:, torch.randperm(x.shape[1], device=x.device)],
    "transposed": lambda x: x.t() * 2,
    "halves": lambda x: x[:, x.shape[1] // 2 - 3 :].sum(),
    "middle": lambda x: x[:, x.shape[1] // 2] * 2,
    "rolled": lambda x: x.roll(x.shape[1] // 3, 1),
    "smaller": lambda x: x[:, : sorted(x.shape)[0]].sum(),
    "rounded": lambda x: x[:, : math.floor(x.shape[1] * 0.5)].sum(),
    "constant tensor": lambda x: x.sum() * torch.tensor([1.0, 2.0], device=x.device),
    "windows": lambda x: x.unfold(1, 3, 2).sum(-1),
    "quotients": quotients,
    "causal": causal,
    "gradient of mean": gradient_of_mean,
    "gradient of variance": gradient_of_variance,
    "cross entropy": cross_entropy,
    "written": written,
}


@pytest.mark.parametrize("name", GENERAL)
def test_unseen_sizes_are_replayed(name: str) -> None:
    step, expected, actual = calls(GENERAL[name], random_sizes(40))
    assert_close(actual, expected)
    assert [r.stride() for r in leaves(actual)] == [
        r.stride() for r in leaves(expected)
    ]
    assert step.replays >= 25, step.fallbacks


def leaves(results: Any) -> list[torch.Tensor]:
    return torch.utils._pytree.tree_leaves(results)


def branches(x):
    return (x * 2 if 30 < x.shape[1] < 40 else x * 3).sum()


def one_size(x):
    return (x * 2 if x.size(1) == 37 else x * 3).sum()


def padded(x):
    return F.pad(x, (0, -x.shape[1] % 8), value=1.0).sum()


def repeated(x):
    for _ in range(x.shape[1] // 16):
        x = x + 1
    return x.sum()


def scaled_by_logarithm(x):
    return (x / math.log(x.shape[1] + 1)).sum()


DEPENDENT = {
    "branches": branches,
    "one size": one_size,
    "padded": padded,
    "repeated": repeated,
    "logarithm": scaled_by_logarithm,
    "table": lambda x: (x * TABLE[x.shape[1]]).sum(),
    "remainder": lambda x: (x * [1.0, 2.0, 3.0][x.shape[1] % 3]).sum(),
    "odd": lambda x: x[:, x.shape[1] % 2 :].sum(),
    "crop": lambda x: (x[:, :50] * 2).sum(),
    "view of crop": lambda x: x[:, :50].exp(),
    "digits": lambda x: x.sum() * len(f"{x.shape[1]}"),
    "shape": lambda x: (x * 2 if x.shape == (4, 33) else x * 3).sum(),
    "parts": lambda x: sum((i + 1) * p.sum() for i, p in enumerate(x.split(8, 1))),
    "length": lambda x: x.t()[: len(x.t()) // 2].sum(),
    "returned": lambda x: (x.sum(), x.shape[1]),
}


@pytest.mark.parametrize("name", DEPENDENT)
def test_code_that_depends_on_sizes(name: str) -> None:
    """The results are eager's, whether calls are replayed or traced."""
    sizes = random_sizes(60)
    sizes[20:20] = [(4, 33), (4, 37), (3, 1), (4, 2), (1, 40), (4, 50), (4, 51)]
    _, expected, actual = calls(DEPENDENT[name], sizes)
    assert_close(actual, expected)


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(50, 32)
        self.positions = nn.Parameter(torch.randn(128, 32))
        self.layer = nn.TransformerEncoderLayer(32, 4, 64, 0.1, batch_first=True)
        self.out = nn.Linear(32, 50)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = self.embedding(x) + self.positions[: x.shape[1]]
        mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1], x.device)
        return self.out(self.layer(hidden, src_mask=mask))


def train(device: str, tier: str, number: int) -> tuple[torch.Tensor, Any]:
    torch.manual_seed(0)
    model = Model().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 5, 0.9)

    def step(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
        loss.backward()
        optimizer.step()
        return loss.detach()

    call = torch_ltc.capture(step) if device == "lazy" else step
    losses = []
    with torch_ltc.config(tier=tier):
        for shape in random_sizes(number):
            x = torch.randint(
                50, shape, generator=torch.Generator().manual_seed(shape[1])
            )
            losses.append(call(x.to(device), x.roll(1, 1).to(device)))
            schedule.step()
    return torch.stack(losses).cpu(), call


@pytest.mark.parametrize("tier", ["auto", "compile"])
def test_training_with_varying_lengths(tier: str) -> None:
    """A loop with other lengths in each step is captured once: calls are traced while the
    range of the sizes grows."""
    expected, _ = train("cpu", tier, 40)
    with counting() as counters:
        actual, step = train("lazy", tier, 40)
    assert_close(actual, expected)
    assert step.replays >= 25, step.fallbacks
    assert counters["compilations"] <= 4


def test_two_sizes_in_turn_are_replayed() -> None:
    step = torch_ltc.capture(lambda x: x.square().sum())
    for number in range(40):
        size = 8 if number % 2 else 5
        assert step(torch.ones(size, device="lazy")).item() == size
    assert step.replays >= 34, step.fallbacks


def test_numbers_leave_the_trace_as_plain_numbers() -> None:
    seen = []

    def step(x):
        seen.append(type(x.shape[0] + 1))
        return x.sum(), x.shape[0] * 2

    captured = torch_ltc.capture(step)
    for size in (4, 5, 6):
        _, twice = captured(torch.ones(size, device="lazy"))
        assert type(twice) is int and twice == 2 * size
    assert all(issubclass(kind, int) for kind in seen)
    assert type(torch.ones(3, device="lazy").shape[0]) is int
    assert "shape" not in vars(torch.Tensor)


def test_check_every_compares_calls_with_other_sizes() -> None:
    step = torch_ltc.capture(lambda x: x.square().sum(), check_every=5)
    for number, size in enumerate([4, 20, 9, *range(5, 20), 40]):
        assert step(torch.ones(size, device="lazy")).item() == size, number
    assert step.replays >= 8 and step.traces >= 6


def test_a_constant_tensor_is_captured_with_its_origin() -> None:
    """Small CPU tensors are constants of the step, unless they change."""
    factors = [0.5, 2.0]
    table = torch.tensor([1.0, 3.0])

    @torch_ltc.capture
    def step(x):
        return x * torch.tensor(factors, device=x.device) + table.to(x.device)

    x = torch.ones(2, device="lazy")
    for _ in range(6):
        assert step(x).tolist() == [1.5, 5.0]
    assert step.replays >= 3
    table.numpy()[0] = 2.0
    assert step(x).tolist() == [2.5, 5.0]
    factors[1] = 4.0
    assert step(x).tolist() == [2.5, 7.0]


def test_a_context_variable_is_a_guard() -> None:
    variable = contextvars.ContextVar("variable", default=1)

    def run(x):
        token = variable.set(variable.get() + 1)
        try:
            return x * variable.get()
        finally:
            variable.reset(token)

    step = torch_ltc.capture(run)
    x = torch.ones(3, device="lazy")
    for _ in range(6):
        assert step(x).sum().item() == 6
    assert step.replays >= 3, step.fallbacks
    variable.set(2)
    assert step(x).sum().item() == 9


def test_a_step_that_changes_a_context_variable_is_traced() -> None:
    variable = contextvars.ContextVar("variable", default=0)

    @torch_ltc.capture
    def step(x):
        variable.set(variable.get() + 1)
        return x + 1

    for _ in range(5):
        step(torch.ones(3, device="lazy"))
    assert variable.get() == 5 and step.replays == 0


def test_numpy_is_optional() -> None:
    run_python(
        """
        import sys
        sys.modules["numpy"] = None  # importing it fails
        import torch, torch_ltc

        table = torch.tensor([1.0, 2.0])
        step = torch_ltc.capture(lambda x: (x * table.to(x.device)).sum() * x.shape[0])
        for n in (3, 9, 4, 5, 6, 7):
            assert step(torch.ones(n, 2, device="lazy")).item() == 3 * n * n
        assert step.replays >= 2, step.fallbacks
        """
    )
