"""Functions, modules and whole training steps are exported as MLIR files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
import torch_ltc
from comparison import assert_close
from torch import nn
from torch_ltc import replay
from torch_ltc._export.manifest import manifest_from_bytes, read_manifest
from training.running import tasks

DIALECTS = ["torch", "linalg"]


def small_model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(1, 3, 3, padding=1, bias=False),  # a bias's gradient would be noise
        nn.BatchNorm2d(3),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(48, 4),
    )


IMAGES = torch.linspace(-1, 1, 32).reshape(2, 1, 4, 4)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_module_with_parameters_and_buffers(dialect: str) -> None:
    model = small_model().eval()
    exported = torch_ltc.export(model, (IMAGES,), dialect=dialect)
    (result,) = exported.run()
    assert_close(result, model(IMAGES), rtol=1e-4, atol=1e-5)
    roles = {row["name"]: row["role"] for row in exported.inputs}
    assert roles["0.weight"] == "parameter" and roles["1.running_mean"] == "buffer"
    assert roles["arg0"] == "argument"
    assert [row["role"] for row in exported.outputs] == ["result"]
    sign = "!torch.vtensor" if dialect == "torch" else "linalg."
    assert sign in exported.text and f"@{exported.entry}(" in exported.text
    assert next(model.parameters()).device.type == "cpu", "the model isn't changed"


def test_buffers_that_are_written_are_outputs() -> None:
    model = small_model().train()
    exported = torch_ltc.export(model, (IMAGES,))
    updates = {r["name"]: r["updates"] for r in exported.outputs if r["updates"] >= 0}
    assert set(updates) == {
        "1.running_mean",
        "1.running_var",
        "1.num_batches_tracked",
    }
    for name, number in updates.items():
        assert exported.inputs[number]["name"] == name


def test_a_scripted_and_a_traced_module() -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.GELU(), nn.Linear(4, 2)).eval()
    x = torch.ones(5, 3)
    expected = model(x)
    for compiled in (torch.jit.script(model), torch.jit.trace(model, (x,))):
        exported = torch_ltc.export(compiled, (x,))
        assert_close(exported.run()[0], expected)
        assert {row["name"] for row in exported.inputs} >= {"0.weight", "2.bias"}


def test_a_function_and_other_values() -> None:
    def scale(x, *, factor):
        return {"sum": (x * factor).sum(), "same": x.neg()}

    exported = torch_ltc.export(scale, (torch.ones(3),), {"factor": torch.tensor(2.0)})
    assert {row["name"] for row in exported.inputs} == {"arg0", "factor"}
    values = [
        torch.tensor(5.0) if row["name"] == "factor" else torch.arange(3.0)
        for row in exported.inputs
    ]
    results = exported.run(values)
    by_shape = {tuple(result.shape): result for result in results}
    assert by_shape[()].item() == 15.0
    assert torch.equal(by_shape[(3,)], -torch.arange(3.0))


def eager_step(model: nn.Module, optimizer: torch.optim.Optimizer):
    def step(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return step


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_training_step(dialect: str) -> None:
    x, y = IMAGES, torch.tensor([1, 3])
    lazy, eager = small_model().to("lazy"), small_model()
    optimizers = [
        torch.optim.AdamW(model.parameters(), lr=0.01, foreach=False)
        for model in (lazy, eager)
    ]
    lazy_step, own_step = map(eager_step, (lazy, eager), optimizers)
    exported = torch_ltc.export_step(
        lazy_step, (x, y), module=lazy, optimizer=optimizers[0], dialect=dialect
    )
    own_step(x, y)
    loss = own_step(x, y)
    outputs = dict(zip((row["name"] for row in exported.outputs), exported.run()))
    assert_close(outputs["result"], loss, rtol=1e-4, atol=1e-6)
    for name, parameter in eager.named_parameters():
        assert_close(outputs[name], parameter, rtol=1e-3, atol=1e-5)
    state = optimizers[1].state[eager[4].weight]
    assert_close(outputs["4.weight.exp_avg"], state["exp_avg"], rtol=1e-3, atol=1e-6)
    for row in exported.outputs:
        if row["role"] != "result":
            assert exported.inputs[row["updates"]]["name"] == row["name"]
    # Training continues after the exported step, whose ops run when the next step ends.
    lazy_step(x.to("lazy"), y.to("lazy"))
    own_step(x, y)
    assert_close(lazy[4].weight, eager[4].weight, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("name", ["perceptron", "lenet", "encoder", "decoder-sdpa"])
def test_example_models(name: str) -> None:
    task = tasks.TASKS["test"][name]
    model = task.model().to("lazy")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step(*batch: torch.Tensor) -> torch.Tensor:
        optimizer.zero_grad()
        loss = task.loss(model, batch)
        loss.backward()
        optimizer.step()
        return loss

    exported = torch_ltc.export_step(
        step, task.batch(0), module=model, optimizer=optimizer, dialect="linalg"
    )
    assert "ltc." not in exported.text.replace("torch_ltc.", "")
    updated = {r["name"] for r in exported.outputs if r["role"] == "parameter"}
    assert updated == {name for name, _ in model.named_parameters()}
    # The exported values include the dropout masks of the trace, so the exported program
    # computes the traced step.
    results = dict(zip((row["name"] for row in exported.outputs), exported.run()))
    torch_ltc.mark_step()
    for name, parameter in model.named_parameters():
        assert_close(results[name], parameter, rtol=1e-4, atol=1e-5)


def test_images_of_bytes() -> None:
    """The runner calls PyTorch's kernel, which no formula replaces."""
    images = torch.arange(96, dtype=torch.uint8).reshape(2, 3, 4, 4)

    def resize(x: torch.Tensor) -> torch.Tensor:
        return nn.functional.interpolate(x, scale_factor=2, mode="bilinear")

    exported = torch_ltc.export(resize, (images,), dialect="torch")
    assert torch.equal(exported.run()[0], resize(images))


def test_files(tmp_path: Path) -> None:
    exported = torch_ltc.export(small_model().eval(), (IMAGES,))
    folder = exported.save(tmp_path / "a" / "b")
    assert (folder / "program.mlir").read_text() == exported.text
    module = torch_ltc.compile_mlir((folder / "program.mlirbc").read_bytes())
    assert_close(module(*exported.values)[0], exported.run()[0])
    manifest = read_manifest(folder)
    assert manifest == json.loads(json.dumps(exported.manifest()))
    message = manifest_from_bytes((folder / "manifest.pb").read_bytes())
    assert message["entry"] == manifest["entry"]
    for ours, theirs in zip(manifest["inputs"], message["inputs"], strict=True):
        assert {key: theirs[key] for key in ours} == ours
    saved = torch.load(folder / "inputs.pt")
    assert len(saved["inputs"]) == len(manifest["inputs"])


def test_proto_file_is_the_messages() -> None:
    from torch_ltc._export import manifest

    text = Path(manifest.__file__).resolve().with_suffix(".proto").read_text()
    for fields in manifest.MESSAGES.values():
        for number, (name, kind) in enumerate(fields, start=1):
            assert f"{kind} {name} = {number};" in text


def test_manifest_of_another_version(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"no manifest\.json"):
        read_manifest(tmp_path)
    (tmp_path / "manifest.json").write_text('{"version": 99}')
    with pytest.raises(ValueError, match="version 99, but this torch_ltc reads"):
        read_manifest(tmp_path)
    (tmp_path / "program.mlir").write_text("module {}")
    with pytest.raises(ValueError, match="version 99, but this torch_ltc reads"):
        replay.replay(tmp_path)
    (tmp_path / "manifest.json").write_text("{")
    with pytest.raises(ValueError, match="isn't JSON"):
        read_manifest(tmp_path)


def test_what_cannot_be_exported_is_a_sentence(tmp_path: Path) -> None:
    x = torch.ones(3)
    with pytest.raises(ValueError, match=r"Unknown dialect 'onnx'.*torch, linalg"):
        torch_ltc.export(torch.neg, (x,), dialect="onnx")
    with pytest.raises(ValueError, match=r"_local_scalar_dense.*test_export.py"):
        torch_ltc.export(lambda x: x * x.exp().sum().item(), (x,))
    with pytest.raises(ValueError, match=r"_linalg_eigh.*test_export.py"):
        torch_ltc.export(lambda x: torch.linalg.eigvalsh(x), (torch.eye(2),))
    with pytest.raises(TypeError, match=r"a tuple, as in \(x,\), but got an object of"):
        torch_ltc.export(torch.neg, x)
    with pytest.raises(TypeError, match="a function or a module, but got an object"):
        torch_ltc.export(5, (x,))
    with pytest.raises(ValueError, match="returns no tensor"):
        torch_ltc.export(lambda x: 3, (x,))
    with pytest.raises(ValueError, match=r"move it with .to\('lazy'\)"):
        torch_ltc.export_step(lambda: None, module=nn.Linear(2, 2))
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="can't be written"):
        torch_ltc.export(torch.neg, (x,)).save(tmp_path / "file" / "folder")


def test_a_transformers_model() -> None:
    transformers = pytest.importorskip("transformers")
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = transformers.BertConfig(vocab_size=30, intermediate_size=32, **sizes)
    torch.manual_seed(0)
    model = transformers.BertModel(config).eval()
    tokens = torch.randint(30, (2, 7))
    expected = model(tokens).last_hidden_state.detach()
    exported = torch_ltc.export(model, (tokens,))
    shapes = [tuple(row["shape"]) for row in exported.outputs]
    result = exported.run()[shapes.index(tuple(expected.shape))]
    assert_close(result, expected, rtol=1e-3, atol=1e-4)
