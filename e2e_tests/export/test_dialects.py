"""Training steps exported as TOSA run on torch_ltc's runtime, and those exported as
StableHLO run in JAX; both give eager's results."""

from __future__ import annotations

from pathlib import Path

import jax_peer
import pytest
import torch
import torch_ltc
from comparison import assert_close
from peers import JAX
from subprocesses import run_python
from torch_ltc._export.manifest import read_manifest
from torch_ltc.program import MODULE_STAGES
from torch_ltc.replay import replay
from training.running import tasks, train
from zoo import catalogue

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "backends"

# Models of the examples; the last three are like ResNet, BERT and OPT.
MODELS = ["perceptron", "lenet", "resnet", "encoder", "decoder"]


def training_step(task: tasks.Task, device: str):
    """Returns the task's model, an AdamW optimizer, and the function of a step."""
    model = task.model(seed=2).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, foreach=False)

    def step(*batch: torch.Tensor) -> torch.Tensor:
        optimizer.zero_grad()
        loss = task.loss(model, batch)
        loss.backward()
        optimizer.step()
        return loss

    return model, optimizer, step


def run(exported: torch_ltc.ExportedProgram) -> list[torch.Tensor]:
    if exported.dialect != "stablehlo":
        return exported.run()
    kinds = {"int": torch.int64, "float": torch.float64}
    numbers = [
        torch.tensor(s["value"], dtype=kinds[s["kind"]]) for s in exported.scalars
    ]
    return jax_peer.run([(exported.text, exported.values + numbers)])[0]


@pytest.mark.parametrize("dialect", ["tosa", "stablehlo"])
@pytest.mark.parametrize("name", MODELS)
def test_a_training_step_is_eagers(name: str, dialect: str) -> None:
    if dialect == "stablehlo":
        JAX.python()
    task = tasks.TASKS["test"][name]
    lazy, optimizer, step = training_step(task, "lazy")
    eager, _, eager_step = training_step(task, "cpu")
    torch.manual_seed(1)
    exported = torch_ltc.export_step(
        step, task.batch(0), module=lazy, optimizer=optimizer, dialect=dialect
    )
    assert f"{dialect}." in exported.text
    for other in ("torch.aten", "linalg.", "arith.", "math."):
        assert other not in exported.text
    torch.manual_seed(1)
    eager_step(*task.batch(0))
    loss = eager_step(*task.batch(0))
    results = dict(zip((row["name"] for row in exported.outputs), run(exported)))
    assert_close(results["result"], loss, rtol=1e-4, atol=1e-5)
    for parameter, value in eager.named_parameters():
        assert_close(results[parameter], value, rtol=1e-3, atol=2e-4)


JAX_PROGRAM = """
import sys
sys.path[:0] = {folders!r}
import torch, torch_ltc, jax_stablehlo
from zoo import catalogue
with torch_ltc.use_backend("jax"):
    outcome = catalogue.train({name!r}, "lazy", 2)
torch.save((outcome.losses, outcome.parameters), {path!r})
"""


@pytest.mark.full("takes a minute")
@pytest.mark.parametrize("dialect", ["tosa", "stablehlo"])
@pytest.mark.parametrize("name", ["resnet18", "bert", "opt"])
def test_published_architectures(name: str, dialect: str, tmp_path: Path) -> None:
    if dialect == "tosa":
        with torch_ltc.use_backend("tosa"):
            outcome = catalogue.train(name, "lazy", 2)
        losses, parameters = outcome.losses, outcome.parameters
    else:
        path = str(tmp_path / "outcome.pt")
        folders = [str(EXAMPLES), str(EXAMPLES.parents[1] / "e2e_tests")]
        program = JAX_PROGRAM.format(folders=folders, name=name, path=path)
        run_python(program, PYTHONPATH=JAX.python_path())
        losses, parameters = torch.load(path)
    eager = catalogue.train(name, "cpu", 2)
    assert_close(losses, eager.losses, rtol=1e-4, atol=1e-5)
    for key, value in eager.parameters.items():
        assert_close(parameters[key], value, rtol=1e-3, atol=1e-4)


def test_numbers_are_tensors() -> None:
    x = torch.tensor([1.0, 2.0])
    for dialect, kind in (("tosa", "f32"), ("stablehlo", "f64")):
        exported = torch_ltc.export(lambda x: x * 0.1, (x,), dialect=dialect)
        assert exported.manifest()["scalars"] == [
            {"kind": "float", "value": 0.1, "type": f"tensor<{kind}>"}
        ]
        assert f"tensor<2xf32>, %arg1: tensor<{kind}>" in exported.text
        assert dialect == "tosa" or exported.manifest()["entry"] == "main"
    exported = torch_ltc.export(lambda x: x * 0.1, (x,), dialect="tosa")
    assert_close(exported.run()[0], x * 0.1)
    module = torch_ltc.compile_mlir(exported.bytecode)
    assert_close(module(x, 0.5)[0], x * 0.5)


def test_what_a_dialect_cannot_say_is_a_sentence() -> None:
    def runs(x: torch.Tensor) -> torch.Tensor:
        return x.cummax(0).values

    for dialect in ("tosa", "stablehlo"):
        exported = torch_ltc.export(runs, (torch.ones(3),), dialect=dialect)
        with pytest.raises(RuntimeError, match=r"aten.cummax.*test_dialects\.py:\d+"):
            print(exported.text)
    exported = torch_ltc.export(torch.neg, (torch.ones(2).double(),), dialect="tosa")
    with pytest.raises(RuntimeError, match="dtype 'f64', which the conversion to TOSA"):
        print(exported.text)
    exported = torch_ltc.export(torch.neg, (torch.ones(2),), dialect="stablehlo")
    with pytest.raises(ValueError, match="own compiler doesn't read StableHLO"):
        exported.run()


def test_saved_programs(tmp_path: Path) -> None:
    x = torch.tensor([1.0, 2.0])
    folder = torch_ltc.export(lambda x: x * 0.5, (x,), dialect="tosa").save(tmp_path)
    assert read_manifest(folder)["dialect"] == "tosa"
    assert_close(replay(folder)[0], x * 0.5)
    stablehlo = torch_ltc.export(torch.exp, (x,), dialect="stablehlo")
    with pytest.raises(RuntimeError, match="StableHLO is for other compilers"):
        torch_ltc.compile_mlir(
            stablehlo.save(tmp_path / "b").joinpath("program.mlirbc").read_bytes()
        )


def test_dumps() -> None:
    assert {"tosa", "stablehlo"} <= set(torch_ltc.debug.STAGES) & set(MODULE_STAGES)
    x = torch.ones(3, device="lazy").exp()
    assert "tosa.exp" in torch_ltc.debug.dump(x, stage="tosa")
    assert '"stablehlo.exponential"' in torch_ltc.debug.dump(x, stage="stablehlo")


@pytest.mark.parametrize("name", ["perceptron", "lenet"])
def test_backend_tosa_trains_as_eager(name: str) -> None:
    task = tasks.TASKS["test"][name]
    with torch_ltc.use_backend("tosa"):
        losses = train(task, "adamw", "lazy", steps=4).losses
    eager = train(task, "adamw", "cpu", steps=4).losses
    assert_close(torch.stack(losses), torch.stack(eager), rtol=1e-4, atol=0)


def test_backend_tosa_names_unsupported_ops() -> None:
    with (
        pytest.raises(RuntimeError, match=r"aten.cummax.*test_dialects\.py:\d+"),
        torch_ltc.use_backend("tosa"),
        torch_ltc.config(source_info=True),
    ):
        torch.ones(3, device="lazy").cummax(0).values.cpu()
