"""lockstep() also runs each step op by op, and names the op that differs."""

from __future__ import annotations

import inspect

import pytest
import torch
import torch_ltc
from comparison import assert_close
from counting import counting


def test_agreeing_steps_pass() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(5, 4), torch.nn.Tanh()).to("lazy")
    optimizer = torch.optim.Adam(model.parameters())
    x = torch.randn(3, 5).to("lazy")
    with torch_ltc.debug.lockstep():
        for _ in range(2):
            optimizer.zero_grad()
            torch.nn.functional.dropout(model(x), 0.3).square().mean().backward()
            optimizer.step()
        assert model[0].weight.isfinite().all().item()
    assert not torch_ltc.config.lockstep


def test_the_first_differing_op_is_named() -> None:
    """Compiled exponentials round differently from eager's. With a tolerance below
    rounding errors, lockstep() reports a difference of aten::exp, not of a later op."""
    x = torch.rand(300, 1000).to("lazy")

    def step() -> float:
        y = (x.view(-1) * 2).exp()  # planted
        return (y * 3).amax().item() + (y + 1)[:9000].sum().item()

    with (
        pytest.raises(RuntimeError, match="first op that differs") as error,
        torch_ltc.debug.lockstep(tolerance=1e-12),
    ):
        step()
    lines, first = inspect.getsourcelines(step)
    line = first + next(i for i, text in enumerate(lines) if "planted" in text)
    assert "aten::exp" in str(error.value) and f":{line}" in str(error.value)
    assert "instead of" in str(error.value)
    assert step() > 0


def test_bisecting_with_patterns() -> None:
    x = torch.rand(4, 4).to("lazy")

    def program() -> list[float]:
        return ((x @ x).relu() + x.exp()).sum(1).tolist()

    expected = program()
    counters = {}
    for patterns in ("", "*", "*, !aten::mm", "aten::*x*", "!aten::relu", "aten::r?lu"):
        with torch_ltc.config(force_fallback=patterns), counting() as counts:
            assert_close(program(), expected, 1e-6, 0)
        counters[patterns] = counts.fallback_calls
    assert counters == {
        "": 0,
        "*": 5,
        "*, !aten::mm": 4,
        "aten::*x*": 1,
        "!aten::relu": 0,
        "aten::r?lu": 0,
    }
