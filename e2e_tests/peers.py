"""Finds Python environments in which other projects (IREE, JAX, torch-mlir) are installed:
those that `./dev peers` creates, or those that variables name."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Peer:
    name: str
    variable: str

    def find(self) -> str | None:
        """Returns the path that `variable` contains or, if it isn't set, the interpreter of
        the environment that `./dev peers` creates; None if this file doesn't exist."""
        named = os.environ.get(self.variable, "")
        path = Path(named or ROOT / f".venv-{self.name}" / "bin" / "python")
        return str(path) if path.exists() else None

    def python(self) -> str:
        """Returns the peer's interpreter; skips the test if there is none."""
        found = self.find()
        if found is None:
            pytest.skip(
                f"{self.name} isn't installed: run './dev peers', or set "
                f"{self.variable} to the Python of an environment that has it"
            )
        return found

    def python_path(self) -> str:
        """Returns a PYTHONPATH with which this Python can import the peer's packages."""
        where = "import sysconfig; print(sysconfig.get_paths()['purelib'])"
        answer = subprocess.run(
            [self.python(), "-c", where], capture_output=True, text=True, check=True
        )
        # The peer's packages come last: they must not replace those in PYTHONPATH.
        paths = [os.environ.get("PYTHONPATH", ""), answer.stdout.strip()]
        return os.pathsep.join(path for path in paths if path)


IREE = Peer("iree", "TORCH_LTC_IREE_PYTHON")
JAX = Peer("jax", "TORCH_LTC_JAX_PYTHON")
TORCH_MLIR = Peer("torch-mlir", "TORCH_LTC_PARSER_PYTHON")
