"""Planted problems are reported with the Python line that causes them."""

from __future__ import annotations

import html
import inspect
import json
import logging
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import torch_ltc
from comparison import assert_close
from subprocesses import run_python
from torch import nn


def line_of(function: Callable, text: str) -> str:
    """Returns "test_explain.py:31" for the line of `function` that contains `text`."""
    lines, first = inspect.getsourcelines(function)
    found = [number for number, line in enumerate(lines, first) if text in line]
    assert len(found) == 1, f"{text!r} is on {len(found)} lines"
    return f"{Path(__file__).name}:{found[0]}"


class Loop:
    """A small training loop; each method is a step, most with a planted problem."""

    def __init__(self) -> None:
        self.model = nn.Sequential(nn.Linear(8, 8), nn.Tanh()).to("lazy")
        torch_ltc.name_parameters(self.model)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.inputs = torch.randn(4, 8).to("lazy")
        self.calls = 0
        self.kept: list[torch.Tensor] = []

    def healthy(self) -> None:
        self.optimizer.zero_grad()
        self.model(self.inputs).square().mean().backward()
        self.optimizer.step()

    def float_in_a_shape(self) -> None:
        self.calls += 1
        size = int(1.0 + self.calls % 100)
        self.optimizer.zero_grad()
        y = self.model(self.inputs.repeat(size, 1))  # planted: shape
        y.square().mean().backward()
        self.optimizer.step()

    def item_in_the_loop(self) -> None:
        self.optimizer.zero_grad()
        loss = self.model(self.inputs).square().mean()
        loss.item()  # planted: item
        loss.backward()
        self.optimizer.step()

    def unsupported_op(self) -> None:
        self.optimizer.zero_grad()
        loss = self.model(self.inputs).square().mean()
        torch.linalg.eigvalsh(self.inputs.t() @ self.inputs)  # planted: op
        loss.backward()
        self.optimizer.step()

    def kept_reference(self) -> None:
        self.optimizer.zero_grad()
        self.model(self.inputs).square().mean().backward()
        self.old_weight = self.model[0].weight.detach()  # planted: reference
        self.optimizer.step()

    def growing_list(self) -> None:
        self.optimizer.zero_grad()
        loss = self.model(self.inputs).square().mean()  # planted: list
        loss.backward()
        self.optimizer.step()
        self.kept.append(loss.detach())


PLANTED = {
    "recompile": (Loop.float_in_a_shape, "planted: shape"),
    "sync": (Loop.item_in_the_loop, "planted: item"),
    "fallback": (Loop.unsupported_op, "planted: op"),
    "memory": (Loop.growing_list, "planted: list"),
}


def test_a_healthy_loop() -> None:
    page = torch_ltc.explain(Loop().healthy)
    assert page.healthy, page
    assert [finding.kind for finding in page.findings] == ["slow"]
    assert "healthy" in str(page) and "% of the time" in str(page)
    assert page.seconds["step"] > 0 and page.seconds["kernels"] > 0
    json.dumps(page.data())
    assert page._repr_html_() == f"<pre>{html.escape(str(page))}</pre>"


def test_reports_are_texts_in_a_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    class ZMQInteractiveShell:  # the shell of a notebook has a class of this name
        pass

    monkeypatch.setattr("builtins.get_ipython", ZMQInteractiveShell, raising=False)
    page = torch_ltc.explain(lambda: torch.ones(2, device="lazy").add_(1))
    assert "(median)" in page._repr_html_()
    assert "Counts" in torch_ltc.metrics_report()


def test_a_loop_on_another_device_is_named() -> None:
    model = nn.Linear(3, 3)
    page = torch_ltc.explain(lambda: model(torch.ones(2, 3)))
    assert not page.healthy and "1 finding." in str(page)
    assert page.findings[0].kind == "device"
    assert "nothing was computed on device lazy" in str(page)


def test_what_explain_rejects() -> None:
    with pytest.raises(
        TypeError, match="calls a function, but got an object of class int"
    ):
        torch_ltc.explain(5)
    with pytest.raises(ValueError, match="at least one step, not 0"):
        torch_ltc.explain(lambda: None, steps=0)


@pytest.mark.parametrize("kind", PLANTED)
def test_planted_cause(kind: str) -> None:
    function, mark = PLANTED[kind]
    loop = Loop()
    page = torch_ltc.explain(lambda: function(loop))
    assert not page.healthy
    found = [finding for finding in page.findings if finding.kind == kind]
    assert found, page
    assert line_of(function, mark) in {finding.location for finding in found}, page
    assert all(finding.advice for finding in found)
    assert line_of(function, mark) in str(page).replace("\n", "")


def test_a_kept_reference_is_named() -> None:
    loop = Loop()
    page = torch_ltc.explain(loop.kept_reference)
    found = [finding for finding in page.findings if finding.kind == "donation"]
    assert [f for f in found if "'0.weight'" in f.sentence], page
    assert any("old_weight" in f.sentence for f in found), page


def test_the_line_that_prevents_donation_is_named() -> None:
    loop = Loop()
    page = torch_ltc.explain(loop.kept_reference)
    found = [finding for finding in page.findings if finding.kind == "donation"]
    wanted = line_of(Loop.kept_reference, "planted: reference")
    assert wanted in {finding.location for finding in found}, page


def test_a_list_that_prevents_donation_is_named() -> None:
    loop, old_values = Loop(), []

    def step() -> None:
        old_values[:] = [p.detach() for p in loop.model.parameters()]
        loop.healthy()

    page = torch_ltc.explain(step)
    found = [finding for finding in page.findings if finding.kind == "donation"]
    sentences = [finding.sentence for finding in found]
    assert any("the list 'old_values' of 2 elements" in s for s in sentences), page
    assert len(set(sentences)) == len(sentences)


def test_memory_at_the_peak_is_named_by_line() -> None:
    weight = torch.randn(64, 64).to("lazy")

    def step() -> torch.Tensor:
        large = weight.repeat(32, 32) @ weight.repeat(32, 1)  # planted: large
        return (large.sum() + weight.mean()).sqrt()

    page = torch_ltc.explain(step, steps=2)
    first = next(iter(page.peak["lines"]))
    assert first == line_of(step, "planted: large"), page
    assert page.peak["peak_bytes"] >= 64 * 32 * 64 * 32 * 4
    assert page.peak["input_bytes"] == 64 * 64 * 4
    assert "At the peak of a step" in str(page)


def test_what_a_slow_step_is_bound_by() -> None:
    x = torch.ones(4).to("lazy")
    big = torch.randn(700, 700).to("lazy")
    sizes = iter(range(1000, 2000))

    def many_small_ops() -> torch.Tensor:
        y = x
        for _ in range(300):
            y = y.sin()
        return y

    def one_large_op() -> torch.Tensor:
        return big @ big @ big @ big

    def a_new_size_each_time() -> torch.Tensor:
        with torch_ltc.config(varying_sizes="off"):
            y = torch.ones(next(sizes)).to("lazy").cos()
            torch_ltc.mark_step()
        return y

    causes = {
        "Python and tracing": (many_small_ops, "tracing-bound"),
        "kernels": (one_large_op, "kernel-bound"),
        "compiling": (a_new_size_each_time, "compile-bound"),
    }
    for name, (step, sentence) in causes.items():
        page = torch_ltc.explain(step)
        assert page.bound_by == name, page
        assert sentence in str(page)


def test_undonated_parameters_are_reported(caplog: pytest.LogCaptureFixture) -> None:
    loop = Loop()
    loop.inputs = torch.randn(13, 8).to(
        "lazy"
    )  # a new program, because each program is reported once
    with caplog.at_level(logging.INFO, logger="torch_ltc"):
        for _ in range(3):
            loop.kept_reference()
        torch_ltc.wait_device_ops()
    messages = [r.message for r in caplog.records if "doesn't overwrite" in r.message]
    assert (
        messages
        and "'0.weight'" in messages[-1]
        and "holds its old value" in messages[-1]
    )


def test_a_growing_list_is_named() -> None:
    loop = Loop()
    page = torch_ltc.explain(loop.growing_list)
    (finding,) = [f for f in page.findings if f.kind == "memory"]
    assert "'kept'" in finding.sentence


def test_no_sync() -> None:
    loop = Loop()
    loop.healthy()
    with torch_ltc.debug.no_sync():
        loop.healthy()
        with pytest.raises(
            RuntimeError, match=r"(?s)_local_scalar_dense.*no_sync"
        ) as e:
            loop.item_in_the_loop()
    assert f":{line_of(Loop.item_in_the_loop, 'planted').split(':')[1]}" in str(e.value)
    torch_ltc.wait_device_ops()
    loop.item_in_the_loop()


def test_no_fallback() -> None:
    x = torch.eye(3).to("lazy")
    with (
        torch_ltc.debug.no_fallback(),
        pytest.raises(RuntimeError, match=r"would run eagerly.*test_explain.py"),
    ):
        torch.linalg.eigvalsh(x)
    torch.linalg.eigvalsh(x)


def test_no_recompile() -> None:
    x = torch.ones(7).to("lazy")

    def step(size: int) -> torch.Tensor:
        y = (x[:size] * 2).sum()
        torch_ltc.mark_step()
        return y

    step(3)
    with torch_ltc.debug.no_recompile():
        step(3)
        with pytest.raises(RuntimeError, match=r"A new program would.*no_recompile"):
            step(4)
    assert step(5).item() == 10


def test_guards_nest() -> None:
    with torch_ltc.debug.no_sync():
        with torch_ltc.debug.no_sync():
            pass
        with pytest.raises(RuntimeError, match="no_sync"):
            torch.ones(2, device="lazy").exp().sum().item()
    torch.ones(2, device="lazy").exp().sum().item()


def test_events_are_reported_once_and_then_as_part_of_a_loop(
    caplog: pytest.LogCaptureFixture,
) -> None:
    x = torch.ones(5).to("lazy")
    kept = []
    with caplog.at_level(logging.INFO, logger="torch_ltc"):
        for _ in range(12):
            y = x * 3
            y.sum().item()  # an implicit sync
            kept.append(y + 1)  # continues the step: a read at its end isn't a cut
            torch_ltc.mark_step()
    syncs = [r for r in caplog.records if "middle of a step" in r.message]
    assert [r.levelno for r in syncs] == [logging.INFO, logging.WARNING]
    here = line_of(
        test_events_are_reported_once_and_then_as_part_of_a_loop, "y.sum" + "().item()"
    )
    assert all(here in record.message for record in syncs)


def test_programs_that_are_older_than_the_logs() -> None:
    inputs = torch.rand(13, device="lazy")

    def step() -> None:
        kept.append((inputs * 2).cumsum(0))
        torch_ltc.mark_step()

    kept: list[torch.Tensor] = []
    first = torch_ltc.explain(step)
    torch_ltc.reset_metrics()
    assert torch_ltc.explain(step).peak == first.peak != {}
    program = torch_ltc.step_log()[-1]["program"]
    assert "aten.cumsum" in torch_ltc.debug.dump(program[:12])


def test_each_new_program_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="torch_ltc"):
        kept = [torch.ones(1100 + i).to("lazy").cos() for i in range(1)]
        with torch_ltc.config(varying_sizes="off"):
            torch_ltc.mark_step()
    assert kept and any("needed a new program" in r.message for r in caplog.records)


def test_detect_nan_names_op_and_line() -> None:
    x = torch.tensor([1.0, -1.0]).to("lazy")

    def step() -> None:
        y = x.exp()
        z = (y - 3).log()  # planted: nan
        kept.append((z * 2).sum())
        torch_ltc.mark_step()

    kept: list[torch.Tensor] = []
    with (
        pytest.raises(RuntimeError, match=r"first NaN was made by aten::log") as error,
        torch_ltc.debug.detect_nan(),
    ):
        step()
    assert f"{line_of(step, 'planted: nan')}" in str(error.value)
    with torch_ltc.debug.detect_nan():
        assert x.exp().sum().item() > 0
        loop = Loop()
        loop.healthy()


def test_detect_nan_names_the_line_of_this_time() -> None:
    """If two lines create the same program, the error names the line that ran."""
    x = torch.full((5,), 1e38).to("lazy")

    def doubled() -> torch.Tensor:
        return x.mul(2.0)

    def tenfold() -> torch.Tensor:
        return x.mul(10.0)  # planted: inf

    with (
        pytest.raises(RuntimeError, match=r"first Inf was made by aten::mul") as error,
        torch_ltc.debug.detect_nan(),
    ):
        for step in (doubled, tenfold):
            kept = step()
            torch_ltc.mark_step(wait=True)
    assert kept is not None and line_of(tenfold, "planted: inf") in str(error.value)


def test_detect_nan_keeps_the_model() -> None:
    """A step that produces a NaN doesn't update the parameters."""
    weight = torch.nn.Parameter(torch.ones(3).to("lazy"))
    optimizer = torch.optim.Adam([weight], lr=0.1)
    with torch_ltc.debug.detect_nan():
        for number in (1.0, -1.0):
            optimizer.zero_grad()
            (weight * number).sqrt().sum().backward()
            optimizer.step()
            torch_ltc.mark_step()
        with pytest.raises(RuntimeError, match=r"first NaN was made by"):
            torch_ltc.wait_device_ops()
    expected = torch.nn.Parameter(torch.ones(3))
    optimizer = torch.optim.Adam([expected], lr=0.1)
    expected.sqrt().sum().backward()
    optimizer.step()
    assert_close(weight, expected)


def test_step_log_file(tmp_path: Path) -> None:
    path = tmp_path / "steps.jsonl"
    with torch_ltc.config(step_log_file=str(path)):
        Loop().healthy()
        torch_ltc.wait_device_ops()
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert rows and rows[-1]["trigger"] == "mark_step"
    assert rows[-1]["execute_seconds"] > 0 and rows[-1]["live_tensors"] > 0


HANDLERS_THAT_ASK = """
import logging, sys
import torch, torch_ltc
from torch_ltc._backend import bindings

class Asking(logging.Handler):
    def emit(self, record):
        torch_ltc.step_log()
        torch_ltc.compile_log()
        bindings().cache_info(True)
        print(record.getMessage())

logging.getLogger("torch_ltc").addHandler(Asking())
torch_ltc.config.tier = "compile"
for option, function in (("step_log_file", torch.sin), ("cache_dir", torch.exp)):
    setattr(torch_ltc.config, option, "/dev/null/nowhere")
    function(torch.ones(4, device="lazy")).sum().item()
    torch_ltc.wait_device_ops()
"""


def test_log_handlers_may_ask() -> None:
    """A log handler may read the logs and the cache's statistics, because no lock is held
    while a warning is logged."""
    output = run_python(HANDLERS_THAT_ASK, timeout=60).stdout
    assert output.count("(option step_log_file)") == 1, output
    assert "cache" in output, output


def test_the_list_that_grows_is_named() -> None:
    """A container of older tensors of the same line, or of few new ones, isn't."""
    inputs = torch.ones(3, device="lazy")
    constant: list[torch.Tensor] = []
    losses: list[torch.Tensor] = []

    def keep(target: list[torch.Tensor]) -> None:
        target.append((inputs * 2).sum())

    for _ in range(20):
        keep(constant)
    page = torch_ltc.explain(lambda: keep(losses))
    (finding,) = [finding for finding in page.findings if finding.kind == "memory"]
    assert "each step leaves 1 more tensor alive" in finding.sentence
    assert "held by the list 'losses'" in finding.sentence, finding.sentence
