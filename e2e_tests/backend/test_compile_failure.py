"""A program that can't be compiled is reported once and run by the interpreter."""

from __future__ import annotations

import pytest
import torch
import torch_ltc
from comparison import assert_close
from counting import counting

pytestmark = pytest.mark.compile_failures


@pytest.fixture
def rejected():
    """Makes compilation fail for programs with `frac`."""
    with torch_ltc.config(force_compile_failure="aten::frac"):
        yield


def interpreted() -> list[dict]:
    return [row for row in torch_ltc.compile_log() if row["origin"] == "interpreted"]


def test_runs_by_the_interpreter_and_warns_once(rejected, caplog) -> None:
    x = torch.arange(6.0).div(4)
    torch_ltc.reset_metrics()  # the log keeps a limited number of entries
    with counting() as counts:
        for _ in range(3):
            y = x.to("lazy").frac() * 2
            torch_ltc.mark_step()
            assert torch.equal(y.cpu(), x.frac() * 2)
    assert counts.compile_failures == 1
    assert counts.compilations == 0
    warnings = [r.getMessage() for r in caplog.records if "frac" in r.getMessage()]
    assert len(warnings) == 1
    assert "can't be compiled" in warnings[0]
    assert "test_compile_failure.py" in warnings[0]
    assert "force_fallback" in warnings[0]
    rows = interpreted()
    assert len(rows) == 1
    assert "aten::frac" in rows[0]["reason"]


def test_the_ops_line_is_named(rejected, caplog) -> None:
    with torch_ltc.config(source_info=True):
        y = torch.ones(5, device="lazy").frac()
        torch_ltc.mark_step()
    assert y.sum().item() == 0
    text = next(r.getMessage() for r in caplog.records if "frac" in r.getMessage())
    assert text.count("test_compile_failure.py") == 2, "the op's line and the step's"


def test_a_training_step_goes_on(rejected) -> None:
    """A training loop in which one step can't be compiled gives eager's parameters; the
    other steps are compiled."""

    def train(device: str) -> list[torch.Tensor]:
        torch.manual_seed(0)
        model = torch.nn.Linear(4, 3)
        x = torch.randn(8, 4)
        model.to(device)
        x = x.to(device)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
        for step in range(4):
            optimizer.zero_grad()
            y = model(x)
            (y.frac() if step == 2 else y).square().sum().backward()
            optimizer.step()
        return [p.detach().cpu() for p in model.parameters()]

    with counting() as counts:
        lazy = train("lazy")
    assert counts.compile_failures == 1
    assert counts.compilations > 0
    assert_close(lazy, train("cpu"), rtol=1e-5, atol=1e-6)


def test_a_failed_run_leaves_the_model(rejected) -> None:
    """As with compiled programs, tensors that a failed step would have updated keep
    their old values."""
    weight = torch.nn.Parameter(torch.ones(4, 3).to("lazy"))
    optimizer = torch.optim.SGD([weight], lr=0.5)
    for index in (2, 9):
        rows = weight.frac().index_select(0, torch.tensor([index]).to("lazy"))
        (rows.sum() + weight.sum()).backward()
        optimizer.step()
        torch_ltc.mark_step()
        optimizer.zero_grad(set_to_none=False)
    with pytest.raises(IndexError, match=r"index_select.*out of range"):
        torch_ltc.wait_device_ops()
    # The value after the first step: the gradient is 2 for one row, and 1 for the others.
    expected = torch.full((4, 3), 0.5)
    expected[2] = 0
    assert torch.equal(weight.detach().cpu(), expected)


def test_raising_instead(rejected) -> None:
    x = torch.full((7,), 1.5, device="lazy")
    torch_ltc.mark_step()
    y = x.frac()
    with torch_ltc.config(compile_failure="raise"):
        with pytest.raises(RuntimeError, match="can't be compiled: aten::frac"):
            torch_ltc.mark_step()
        with pytest.raises(RuntimeError, match="compile_failure = 'interpret'"):
            torch_ltc.mark_step()
    # The op isn't lost: its result is still pending.
    assert y.tolist() == [0.5] * 7


def test_what_the_dialect_cannot_say() -> None:
    """The gradient with scale_grad_by_freq, which has no lowering, equals eager's."""
    weight = torch.randn(5, 3)
    lazy = weight.to("lazy").requires_grad_()
    weight.requires_grad_()
    indices = torch.tensor([1, 1, 4])
    for w, i in ((weight, indices), (lazy, indices.to("lazy"))):
        torch.nn.functional.embedding(i, w, scale_grad_by_freq=True).sum().backward()
    assert_close(lazy.grad, weight.grad)
