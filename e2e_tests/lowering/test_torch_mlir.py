"""torch-mlir's own parser and verifier accept the torch stage of each model's
training step."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import torch
import torch_ltc
from peers import TORCH_MLIR
from training.running import optimizers, tasks, train
from zoo import catalogue

LOWER = Path(__file__).with_name("lower_torch_stage.py")
SCRIPT = Path(__file__).with_name("parse_torch_stage.py")


@pytest.fixture(scope="module")
def parser() -> str:
    python = TORCH_MLIR.find()
    if python is None:
        pytest.fail("torch-mlir isn't installed: './dev test e2e' does that")
    return python


def accept(parser: str, folder: Path, least: int) -> None:
    files = sorted(str(path) for path in folder.rglob("torch*.mlir"))
    assert len(files) >= least
    result = subprocess.run(
        [parser, str(SCRIPT), *files], capture_output=True, text=True
    )
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize("name", tasks.NAMES)
def test_training_steps(name: str, parser: str, tmp_path: Path) -> None:
    with torch_ltc.debug.dump_to(tmp_path):
        train(tasks.TASKS["test"][name], "adamw", "lazy", steps=3)
        torch_ltc.wait_device_ops()
    accept(parser, tmp_path, least=2)


@pytest.mark.parametrize("name", tasks.NAMES)
def test_programs_of_a_backend_lower(name: str, parser: str, tmp_path: Path) -> None:
    """Programs for registered backends contain nothing that torch-mlir doesn't lower,
    although the torch stage for torch_ltc's own compiler may (GAPS)."""
    texts: list[str] = []

    def compile(program):
        texts.append(program.text)
        return torch_ltc.compile_mlir(program.text)

    torch_ltc.register_backend("other", compile, stage="torch")
    try:
        torch_ltc.use_backend("other")
        train(tasks.TASKS["test"][name], "adamw", "lazy", steps=2)
        torch_ltc.wait_device_ops()
    finally:
        torch_ltc.use_backend(None)
        torch_ltc.unregister_backend("other")
    assert len(texts) > 1
    for number, text in enumerate(texts):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "torch.mlir").write_text(text)
    lower(parser, tmp_path, gaps=[])


# Ops that torch-mlir 20261001 has no linalg lowering for, and the models that train
# with them.
GAPS = {
    "torch.aten.avg_pool2d_backward": {"lenet"},
    "torch.aten.max_pool2d_with_indices_backward": {"lenet"},
    "torch.aten.embedding_dense_backward": {
        "encoder", "encoder-sdpa", "decoder", "decoder-sdpa",
        "bert", "gpt2", "opt", "llama", "t5", "lstm",
    },
    # In the weight gradient of a depthwise convolution, torch-mlir gives the filter an
    # extra dimension.
    "torch.aten.convolution_backward": {"mobilenet"},
    "torch.aten.select_backward": {"lstm", "gru", "vit"},
}  # fmt: skip


@pytest.mark.parametrize("name", tasks.NAMES)
def test_training_steps_lower(name: str, parser: str, tmp_path: Path) -> None:
    """torch-mlir lowers the torch stage of training steps to linalg, except for ops in
    GAPS."""
    gaps = [op for op, models in GAPS.items() if name in models]
    with torch_ltc.debug.dump_to(tmp_path):
        train(tasks.TASKS["test"][name], "adamw", "lazy", steps=2)
        torch_ltc.wait_device_ops()
    lower(parser, tmp_path, gaps)


def lower(parser: str, folder: Path, gaps: list[str]) -> None:
    files = sorted(str(path) for path in folder.rglob("torch.mlir"))
    result = subprocess.run(
        [parser, str(LOWER), *files], capture_output=True, text=True, check=True
    )
    outcomes = dict(line.split(" ") for line in result.stdout.splitlines())
    assert files and sorted(outcomes) == files
    for path, outcome in outcomes.items():
        text = Path(path).read_text()
        assert outcome == "ok" or any(op in text for op in gaps), path


@pytest.mark.full("takes a minute")
@pytest.mark.parametrize("name", catalogue.ENTRIES)
def test_the_zoo(name: str, parser: str, tmp_path: Path) -> None:
    """torch-mlir parses the zoo's training steps, and lowers them except for ops in GAPS."""
    gaps = [op for op, models in GAPS.items() if name in models]
    with torch_ltc.debug.dump_to(tmp_path):
        catalogue.train(name, "lazy", 2)
        torch_ltc.wait_device_ops()
    accept(parser, tmp_path, least=2)
    lower(parser, tmp_path, gaps)


@pytest.mark.parametrize("optimizer", optimizers.ALL)
def test_optimizers(optimizer: str, parser: str, tmp_path: Path) -> None:
    with torch_ltc.debug.dump_to(tmp_path):
        train(tasks.TASKS["test"]["perceptron"], optimizer, "lazy", steps=3)
        torch_ltc.wait_device_ops()
    accept(parser, tmp_path, least=2)


def test_with_locations(parser: str, tmp_path: Path) -> None:
    with torch_ltc.debug.dump_to(tmp_path), torch_ltc.config(source_info=True):
        kept = torch.ones(3, device="lazy").exp() @ torch.ones(3, device="lazy")
        torch_ltc.mark_step(wait=True)
    assert kept.ndim == 0
    accept(parser, tmp_path, least=1)


def test_the_parser_rejects_nonsense(parser: str, tmp_path: Path) -> None:
    (tmp_path / "torch.mlir").write_text("func.func @f() { torch.aten.nonsense }")
    with pytest.raises(AssertionError):
        accept(parser, tmp_path, least=1)
