"""`torch._lazy.debug` and LazyTensorCore's environment variables work as torch
documents."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch
import torch._lazy.debug
import torch_ltc
from subprocesses import run_python


def pending() -> torch.Tensor:
    x = torch.ones(3, 2).to("lazy")
    return (x * 2 + torch.ones(2).to("lazy")).exp().sum(0, keepdim=True)


def test_render_ir_graph() -> None:
    text = torch._lazy.debug.render_ir_graph([pending()])
    assert text.startswith("digraph") and "aten::exp" in text and "->" in text


@pytest.mark.parametrize(
    ("form", "sign"), [("text", "aten::exp"), ("backend", "torch.aten.exp")]
)
def test_dump_ir(form: str, sign: str) -> None:
    assert sign in torch._lazy.debug.dump_ir([pending()], form)


def test_our_own_drawing() -> None:
    text = torch_ltc.debug.dump(pending(), stage="dot")
    assert text.startswith("digraph") and "aten::exp" in text
    kept = pending()
    torch_ltc.mark_step()
    assert torch_ltc.debug.dump(-1, stage="dot").count("->") >= 5
    assert kept.shape == (1, 2)


PROGRAM = """
import torch
x = torch.ones(3, 2).to("lazy")
print((x * 2).exp().sum().item())
"""


@pytest.mark.parametrize(
    ("form", "sign"),
    [("text", "= Float"), ("dot", "digraph"), ("backend", "func.func @step_")],
)
def test_save_tensors_file(form: str, sign: str, tmp_path: Path) -> None:
    path = tmp_path / "graphs"
    run_python(PROGRAM, LTC_SAVE_TENSORS_FILE=str(path), LTC_SAVE_TENSORS_FMT=form)
    text = path.read_text()
    assert sign in text and len(re.findall(r"^\[program \w+\]$", text, re.M)) == 1


def test_ir_debug_adds_lines(tmp_path: Path) -> None:
    path = tmp_path / "graphs"
    script = tmp_path / "user_script.py"
    script.write_text(PROGRAM)
    run_python(
        f"import runpy; runpy.run_path({str(script)!r})",
        LTC_SAVE_TENSORS_FILE=str(path),
        LTC_IR_DEBUG="1",
    )
    assert "user_script.py:4" in path.read_text()


def test_sync_multi() -> None:
    """torch::lazy's own pipeline, which torch._lazy doesn't use, but other code may use,
    works with torch_ltc's lowering context."""
    x = torch.arange(3.0).to("lazy")
    doubled = x * 2
    more = doubled + 0.5
    torch._C._lazy._sync_multi([doubled, more], [], True, False)
    assert doubled.tolist() == [0, 2, 4]
    assert more.tolist() == [0.5, 2.5, 4.5]
    assert torch_ltc.step_log()[-1]["ops"] == 2
