"""A long compilation is reported while it runs."""

from __future__ import annotations

import pytest
import torch
import torch_ltc


def _compile(num_ops: int) -> float:
    """Compiles a program whose kernels all differ, because equal kernels are compiled only
    once. Returns the compilation's duration in seconds."""
    x = torch.randn(40, device="lazy")
    keep = []
    for n in range(num_ops):
        x = x.roll(n % 39 + 1).cumsum(0).tanh() + x[: n % 7 + 1].sum()
        keep.append(x[: n % 38 + 2].softmax(0))
    with torch_ltc.config(cache=False):
        torch_ltc.mark_step()
    return torch_ltc.compile_log()[-1]["seconds"]


def _said(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [r.message for r in caplog.records if "has taken a second" in r.message]


def test_a_long_compilation_is_announced_once(caplog) -> None:
    num_ops = 30
    while (seconds := _compile(num_ops)) < 1.2:
        assert num_ops < 20_000, f"{num_ops} rounds of ops took {seconds} s"
        num_ops *= 2
    assert len(_said(caplog)) >= 1
    assert "Compiling the program of step" in _said(caplog)[-1]
    assert "(at test_progress_line.py:" in _said(caplog)[-1]


def test_a_short_one_is_not(caplog) -> None:
    if _compile(1) < 0.9:
        assert not _said(caplog)
