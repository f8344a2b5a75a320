"""Each example backend trains a perceptron and a convolutional network to
eager's losses. Peers live in environments of their own; where one is missing,
its tests are skipped and say so."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
import torch
from subprocesses import run_python
from training.running import tasks, train

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "examples" / "backends"

# Backend: example, variable with the peer's Python, whether it must be
# importable in our process.
BACKENDS = {
    "eager-interpreter": ("eager_interpreter", "", False),
    "torch-mlir": ("torch_mlir_linalg", "TORCH_LTC_PARSER_PYTHON", False),
    "iree": ("iree_compiler", "TORCH_LTC_IREE_PYTHON", True),
    "jax": ("jax_stablehlo", "TORCH_LTC_JAX_PYTHON", True),
    "iree-linalg": ("iree_compiler", "TORCH_LTC_IREE_PYTHON", True),
}

PROGRAM = """
import json, sys
sys.path[:0] = [{folder!r}, {tests!r}]
import torch, torch_ltc, {module}
from training.running import tasks, train
with torch_ltc.use_backend({backend!r}):
    outcome = train(tasks.TASKS["test"][{task!r}], "adamw", "lazy", steps=4)
print(json.dumps([loss.item() for loss in outcome.losses]))
"""


# The benchmarks' environment has JAX too.
PLACES = {"TORCH_LTC_JAX_PYTHON": ROOT / ".venv-jax" / "bin" / "python"}


def peer(variable: str, importable: bool) -> dict[str, str]:
    """Environment of a process that can use the peer."""
    python = os.environ.get(variable, "") or str(PLACES.get(variable, ""))
    if not python or not Path(python).exists():
        pytest.skip(f"'./dev peers' makes what {variable} names")
    if not importable:
        return {"TORCH_MLIR_PYTHON": python}
    where = "import sysconfig; print(sysconfig.get_paths()['purelib'])"
    answer = subprocess.run(
        [python, "-c", where], capture_output=True, text=True, check=True
    )
    # After our own: the peer's numpy and the like must not replace ours.
    paths = [os.environ.get("PYTHONPATH", ""), answer.stdout.strip()]
    return {"PYTHONPATH": os.pathsep.join(path for path in paths if path)}


# The transformers are missing for IREE: its runtime (3.13) refuses a dispatch with
# more than 32 buffers, and the norm of all their gradients is one.
SMALL = ["perceptron", "lenet"]
TRAINED = [(backend, task) for backend in BACKENDS for task in SMALL] + [
    ("iree", task) for task in ("resnet", "lstm", "gru")
]


@pytest.mark.parametrize(("backend", "task"), TRAINED)
def test_trains_as_eager(backend: str, task: str) -> None:
    module, variable, importable = BACKENDS[backend]
    environment = peer(variable, importable) if variable else {}
    program = PROGRAM.format(
        folder=str(FOLDER),
        tests=str(ROOT / "e2e_tests"),
        module=module,
        backend=backend,
        task=task,
    )
    losses = json.loads(run_python(program, **environment).stdout.splitlines()[-1])
    eager = train(tasks.TASKS["test"][task], "adamw", "cpu", steps=4).losses
    torch.testing.assert_close(
        torch.tensor(losses), torch.stack(eager), rtol=1e-4, atol=0
    )


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.py")), ids=lambda p: p.stem)
def test_examples_are_short(path: Path) -> None:
    assert len(path.read_text().splitlines()) < 60
