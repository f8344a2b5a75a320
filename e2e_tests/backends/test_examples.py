"""Each example backend trains a perceptron and a convolutional network to eager's
losses. With --full, each backend also trains the other models of the examples, and IREE and
JAX train the zoo. If a backend's compiler isn't installed, its tests are skipped with a
message."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from comparison import assert_close
from peers import IREE, JAX, TORCH_MLIR, Peer
from subprocesses import run_python
from training.running import tasks, train
from zoo import catalogue

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "examples" / "backends"

# For each backend: its example, the peer whose compiler it uses, and whether our process
# must be able to import the peer.
BACKENDS: dict[str, tuple[str, Peer | None, bool]] = {
    "eager-interpreter": ("eager_interpreter", None, False),
    "torch-mlir": ("torch_mlir_linalg", TORCH_MLIR, False),
    "iree": ("iree_compiler", IREE, True),
    "jax": ("jax_stablehlo", JAX, True),
    "iree-linalg": ("iree_compiler", IREE, True),
}

PROGRAM = """
import json, sys
sys.path[:0] = [{folder!r}, {tests!r}]
import torch, torch_ltc, {module}
from training.running import tasks, train
from zoo import catalogue
with torch_ltc.use_backend({backend!r}):
    outcome = {training}
print(json.dumps([loss.item() for loss in outcome.losses]))
"""

SMALL = ["perceptron", "lenet"]
COMPILERS = ["iree", "iree-linalg", "jax"]
TRAINED = [(backend, name) for backend in COMPILERS for name in catalogue.ENTRIES]


def variables(peer: Peer | None, importable: bool) -> dict[str, str]:
    """Returns the environment variables that a process needs to use the peer."""
    if peer is None:
        return {}
    if importable:
        return {"PYTHONPATH": peer.python_path()}
    return {"TORCH_MLIR_PYTHON": peer.python()}


def losses_of(backend: str, training: str) -> torch.Tensor:
    module, peer, importable = BACKENDS[backend]
    program = PROGRAM.format(
        folder=str(FOLDER),
        tests=str(ROOT / "e2e_tests"),
        module=module,
        backend=backend,
        training=training,
    )
    done = run_python(program, timeout=1800, **variables(peer, importable))
    return torch.tensor(json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    ("backend", "task"),
    [(backend, task) for backend in BACKENDS for task in tasks.NAMES],
)
def test_trains_as_eager(
    backend: str, task: str, request: pytest.FixtureRequest
) -> None:
    if task not in SMALL and not request.config.getoption("--full"):
        pytest.skip("takes a minute: needs --full")
    losses = losses_of(
        backend, f'train(tasks.TASKS["test"][{task!r}], "adamw", "lazy", steps=4)'
    )
    eager = train(tasks.TASKS["test"][task], "adamw", "cpu", steps=4).losses
    assert_close(losses, torch.stack(eager), rtol=1e-4, atol=0)


@pytest.mark.full("takes a minute")
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(("backend", "name"), TRAINED)
def test_compilers_train_the_zoo(backend: str, name: str) -> None:
    losses = losses_of(backend, f'catalogue.train({name!r}, "lazy", 2)')
    eager = catalogue.train(name, "cpu", 2).losses
    assert_close(losses, torch.stack(eager), rtol=1e-4, atol=0)


PADDING = """
import sys
sys.path[:0] = [{folder!r}]
import torch, torch_ltc, iree_compiler
from torch.nn import functional as F

def gradient(mode, device):
    x = torch.linspace(0, 1, 60).reshape(1, 3, 4, 5).to(device).requires_grad_()
    F.pad(x, (1, 2, 2, 1), mode=mode).square().sum().backward()
    return x.grad.cpu()

for mode in ("reflect", "replicate"):
    with torch_ltc.use_backend({backend!r}):
        result = gradient(mode, "lazy")
    torch.testing.assert_close(result, gradient(mode, "cpu"))
try:
    with torch_ltc.use_backend({backend!r}), torch_ltc.config(source_info=True):
        x = torch.ones(6, device="lazy")
        print(torch.as_strided_scatter(x * 2, x[:2] * 3, (2,), (2,), 1).tolist())
except RuntimeError as error:
    print(error)
"""


@pytest.mark.parametrize("backend", ["iree", "iree-linalg"])
def test_what_iree_cannot_runs_eagerly_or_is_named(backend: str) -> None:
    program = PADDING.format(folder=str(FOLDER), backend=backend)
    said = run_python(program, PYTHONPATH=IREE.python_path()).stdout.splitlines()
    if backend == "iree-linalg":
        assert said == ["[2.0, 3.0, 2.0, 3.0, 2.0, 2.0]"]
    else:
        assert "'iree' doesn't support torch.aten.as_strided_scatter" in said[0]
        assert "<string>:" in said[0]


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.py")), ids=lambda p: p.stem)
def test_examples_are_short(path: Path) -> None:
    assert len(path.read_text().splitlines()) < 60
