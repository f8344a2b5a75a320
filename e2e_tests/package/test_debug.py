"""`debug` dumps each stage of a tensor, of a step and of a program, also to a folder."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
import torch_ltc
from comparison import assert_close
from torch import nn
from torch_ltc import debug

SIGNS = {
    "ir": "aten::tanh",
    "torch-raw": "torch.aten.tanh",
    "torch": "!torch.vtensor<[3,4],f32>",
    "linalg": "linalg.generic",
    "tosa": "tosa.",
    "stablehlo": "stablehlo.",
    "kernels": "ltc.kernel_call",
    "llvm": "llvm.",
    "asm": ".globl",
}


@pytest.mark.parametrize("stage", debug.STAGES)
def test_pending_tensor(stage: str) -> None:
    before = torch_ltc.metrics()["executions"]
    y = (torch.ones(3, 4, device="lazy") * 2).tanh()
    assert SIGNS[stage] in debug.dump(y, stage=stage)
    assert torch_ltc.metrics()["executions"] == before, "a dump runs nothing"
    assert y[0, 0].item() == pytest.approx(0.9640276)


@pytest.mark.parametrize("stage", debug.STAGES)
def test_last_step_and_program(stage: str) -> None:
    y = (torch.ones(3, 4, device="lazy") * 3).tanh()
    torch_ltc.mark_step(wait=True)
    text = debug.dump(-1, stage=stage)
    assert SIGNS[stage] in text
    step = torch_ltc.step_log()[-1]
    assert debug.dump(step["program"][:16], stage=stage) == text
    assert debug.dump(step["step"], stage=stage) == text
    assert y.shape == (3, 4)


def test_texts_have_locations_unless_switched_off() -> None:
    with torch_ltc.config(source_info=True):
        y = torch.ones(3, device="lazy") + 1
        assert "test_debug.py" in debug.dump(y, "torch")
        with torch_ltc.config(dump_locations=False):
            assert "test_debug.py" not in debug.dump(y, "torch")


def test_the_documentation_lists_every_stage() -> None:
    root = Path(__file__).resolve().parents[2]
    text = (root / "docs" / "architecture.md").read_text()
    table = text.partition("## Stages")[2].partition("## ")[0]
    for stage, file, _ in torch_ltc._backend.bindings().STAGES:
        assert f"`{stage}`" in table, stage
        assert stage in ("tosa", "stablehlo") or f"`{file}`" in table, file


def test_kernels_show_the_buffer_plan() -> None:
    x = torch.randn(64, 64).to("lazy")
    y = (x @ x).exp() @ x
    text = debug.dump(y, stage="kernels")
    assert "#ltc.place<arena 0, bytes = 16384" in text and "#ltc.schedule<" in text
    plan = json.loads(debug.dump(y, stage="plan"))
    (arena,) = [row for row in plan["buffers"] if row["place"] == "arena"]
    assert (arena["offset"], arena["bytes"]) == (0, 16384) == (0, plan["arena_bytes"])
    assert [row["op"] for row in plan["commands"]].count("matmul") == 2


def test_several_tensors_are_one_program() -> None:
    x = torch.ones(3, device="lazy")
    text = debug.dump([x.exp(), x.sin()])
    assert "torch.aten.exp" in text and "torch.aten.sin" in text
    assert text.count("func.func") == 1


def test_inputs_and_outputs_with_parameter_names() -> None:
    model = nn.Linear(3, 2).to("lazy")
    assert torch_ltc.name_parameters(model) == 2
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        model(torch.ones(5, 3).to("lazy")).sum().backward()
        optimizer.step()
    rows = debug.inputs_and_outputs(-1)
    inputs = {row["name"]: row for row in rows if row["role"] == "input"}
    assert inputs["weight"]["sizes"] == [2, 3]
    assert inputs["weight"]["donated"] and inputs["bias"]["donated"]
    assert inputs["weight"]["bytes"] == 24
    outputs = [row["name"] for row in rows if row["role"] == "output"]
    assert {"weight", "bias"} <= set(outputs)


def test_steps_that_a_block_scheduled_are_timed() -> None:
    x = torch.ones(400, 400, device="lazy")

    def step() -> torch.Tensor:
        y = x
        for _ in range(4):
            y = (y @ x).tanh()
        torch_ltc.mark_step()
        return y

    kept = [step()]
    torch_ltc.wait_device_ops()
    with torch_ltc.config(profile_commands=True):
        kept += [step() for _ in range(3)]  # run when the block ends
    torch_ltc.wait_device_ops()
    assert {row["calls"] for row in debug.commands(-1)} == {3}


def test_command_times() -> None:
    with torch_ltc.config(profile_commands=True):
        x = torch.ones(64, 64, device="lazy")
        (x @ x).exp().sum()
        kept = (x @ x).exp()
        torch_ltc.mark_step(wait=True)
        rows = debug.commands(-1)
    assert kept.shape == (64, 64)
    assert rows and all(row["calls"] == 1 and row["seconds"] > 0 for row in rows)
    assert any("mm" in row["name"] or "matmul" in row["name"] for row in rows)


def test_dump_folder(tmp_path) -> None:
    with debug.dump_to(tmp_path), torch_ltc.config(source_info=True):
        model = nn.Sequential(nn.Linear(7, 5), nn.Tanh()).to("lazy")
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        model(torch.ones(2, 7).to("lazy")).sum().backward()
        optimizer.step()
        torch_ltc.wait_device_ops()
    entry = torch_ltc.compile_log()[-1]
    assert entry["dump_directory"], "the log says where the dump is"
    folder = Path(entry["dump_directory"])
    assert folder.parent == tmp_path and entry["program"][:8] in folder.name
    for name in (
        "ir.txt",
        "torch.mlir",
        "linalg.mlir",
        "kernels.mlir",
        "llvm.ll",
        "asm.s",
    ):
        assert (folder / name).read_text().strip(), name
    texts = {path.name: path.read_text() for path in folder.iterdir()}
    tables = [text for name, text in texts.items() if "0.weight" in text]
    assert tables, "a table names the parameters"
    assert "test_debug.py" in texts["torch.mlir"], "locations are the user's lines"
    assert not torch_ltc.config.dump


def test_module_paths_are_locations() -> None:
    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Sequential(nn.Linear(3, 3), nn.Tanh())

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.inner(x) * 2

    model = Block().to("lazy")
    with torch_ltc.config(source_info=True):
        y = model(torch.ones(1, 3).to("lazy"))
        text = debug.dump(y, stage="torch")
    assert "inner.1" in text
    assert "test_debug.py" in text


def test_bad_requests_are_sentences() -> None:
    with pytest.raises(ValueError, match="linalg"):
        debug.dump(torch.ones(1, device="lazy"), stage="assembly")
    with pytest.raises(TypeError, match="'cpu'"):
        debug.dump(torch.ones(1))
    with pytest.raises(TypeError, match="a NoneType"):
        debug.dump(None)
    with pytest.raises(ValueError, match="needs at least one tensor"):
        debug.dump([])
    with pytest.raises(ValueError, match="non-negative number, but got -1"):
        debug.lockstep(-1).__enter__()
    with pytest.raises(ValueError, match="step_log"):
        debug.dump(10**9)
    with pytest.raises(ValueError, match="compile_log"):
        debug.dump("no such program")


def test_torch_lazy_dump_ir() -> None:
    import torch._lazy.debug

    y = torch.ones(3, device="lazy").exp()
    assert "exp" in torch._lazy.debug.dump_ir([y], "text")


def test_module_calls_are_replaced_only_for_source_info() -> None:
    plain = torch.nn.Module.__call__
    model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Tanh())
    x = torch.ones(2, 3)
    with torch_ltc.config(source_info=True):
        assert torch.nn.Module.__call__ is not plain
        compiled = torch.compile(model, backend="eager", fullgraph=True)
        assert_close(compiled(x), model(x))
        lazy = model.to("lazy")
        with pytest.raises(RuntimeError):
            lazy(torch.ones(2, 5, device="lazy"))  # must leave the modules' scopes
        result = lazy(x.to("lazy")).sum()
        text = debug.dump(result, stage="ir")
    assert torch.nn.Module.__call__ is plain
    lines = {line.split("(")[0].split()[-1]: line for line in text.splitlines()}
    assert lines["aten::tanh"].endswith(" 1"), text
    assert not lines["aten::sum"].endswith(" 1")
