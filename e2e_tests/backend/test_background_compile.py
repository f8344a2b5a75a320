"""Steps don't wait for the compiler if it has a thread of its own."""

from __future__ import annotations

import pytest
import torch
import torch_ltc
from counting import counting
from subprocesses import run_python
from torch import nn


@pytest.fixture(autouse=True)
def in_the_background():
    with torch_ltc.config(background_compile=True, cache=False):
        yield
        torch_ltc.wait_for_compilations()


def _train(device: str, steps: int, seed: int, wait_after: int | None) -> list[float]:
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Dropout(0.2), nn.Linear(7, 3))
    model.to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    losses = []
    for step in range(steps):
        optimizer.zero_grad()
        loss = model(torch.randn(4, 5).to(device)).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
        if step == wait_after and device == "lazy":
            torch_ltc.wait_for_compilations()
    return [float(loss) for loss in losses]


def _origins() -> list[str]:
    return [entry["origin"] for entry in torch_ltc.step_log()]


def test_training_goes_on_meanwhile() -> None:
    with counting() as counts:
        losses = _train("lazy", 8, seed=1, wait_after=3)
    origins = _origins()[-counts.executions :]
    assert losses == pytest.approx(_train("cpu", 8, seed=1, wait_after=None), rel=1e-4)
    assert origins[0] == "interpreted" and "compiled" not in origins
    assert counts.compilations >= 1
    # Compiled programs overwrite parameters; those that stand in don't.
    assert counts.donated_buffers > 0 and counts.fallback_calls == 0


def test_both_programs_are_in_the_log() -> None:
    x = torch.randn(3, 11, device="lazy")
    (x * 3 - 1).cos()
    y = (x * 3 - 1).cos()
    torch_ltc.mark_step()
    torch_ltc.wait_for_compilations()
    standing_in, compiled = torch_ltc.compile_log()[-2:]
    assert (standing_in["origin"], compiled["origin"]) == ("interpreted", "compiled")
    assert standing_in["reason"].endswith("(until its program is compiled)")
    assert (
        compiled["reason"] + " (until its program is compiled)"
        == (standing_in["reason"])
    )
    assert (standing_in["location"], standing_in["program"]) == (
        compiled["location"],
        compiled["program"],
    )
    assert compiled["kernels"] > 0
    torch.testing.assert_close(y.cpu(), (x.cpu() * 3 - 1).cos())


@pytest.mark.compile_failures
def test_what_cannot_be_compiled_stays_interpreted(caplog) -> None:
    x = torch.randn(3, 13, device="lazy")
    with torch_ltc.config(force_compile_failure="aten::atan"):
        y = x.atan() + 1
        torch_ltc.mark_step()
        torch_ltc.wait_for_compilations()
    with counting() as counts:
        z = x.atan() + 1
        torch_ltc.mark_step()
        torch_ltc.wait_for_compilations()
    assert counts.compilations == counts.compile_failures == 0
    torch.testing.assert_close(y.cpu(), x.cpu().atan() + 1)
    torch.testing.assert_close(z.cpu(), y.cpu())
    said = [r.message for r in caplog.records if "can't be compiled" in r.message]
    assert len(said) == 1 and "aten::atan" in said[0]


@pytest.mark.compile_failures
def test_a_failure_that_comes_late_ends_nothing() -> None:
    x = torch.randn(3, 19, device="lazy")
    with torch_ltc.config(force_compile_failure="aten::atan"):
        y = x.atan() + 2
        torch_ltc.mark_step()
        with torch_ltc.config(compile_failure="raise"):
            torch_ltc.wait_for_compilations()
    torch.testing.assert_close(y.cpu(), x.cpu().atan() + 2)


def test_raising_compiles_at_once() -> None:
    x = torch.randn(3, 17, device="lazy")
    with torch_ltc.config(compile_failure="raise"), counting() as counts:
        x.sinh()
        y = x.sinh()
        torch_ltc.mark_step()
        assert torch_ltc.compile_log()[-1]["origin"] == "compiled"
    assert counts.compilations == 1
    torch.testing.assert_close(y.cpu(), x.cpu().sinh())


def test_only_compiled_programs_are_captured() -> None:
    weight = torch.randn(6, 6, device="lazy")

    @torch_ltc.capture
    def step(x: torch.Tensor) -> torch.Tensor:
        return (x @ weight).tanh().sum()

    x = torch.randn(2, 6).to("lazy")
    before = step.replays
    results = [step(x) for _ in range(3)]
    torch_ltc.wait_for_compilations()
    results += [step(x) for _ in range(6)]
    assert step.replays > before
    assert "interpreted" not in _origins()[-3:]
    expected = (x.cpu() @ weight.cpu()).tanh().sum()
    for result in results:
        torch.testing.assert_close(result.cpu(), expected)


def test_a_process_may_end_while_it_compiles() -> None:
    program = """
        import torch, torch_ltc
        x = torch.randn(64, 64, device="lazy")
        for n in range(6):
            y = (x @ x).tanh().softmax(-1).roll(n + 1, 0)
            torch_ltc.mark_step()
        print(float(y.sum()) > 0)
    """
    result = run_python(program, TORCH_LTC_BACKGROUND_COMPILE="1", TORCH_LTC_CACHE="0")
    assert result.stdout.strip() == "True" and not result.stderr
