"""The example runs as users run it, and reports what the documentation says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parents[2]


def run(script: str, *arguments: str, folder: Path) -> str:
    result = subprocess.run(
        [sys.executable, str(ROOT / script), *arguments],
        capture_output=True,
        text=True,
        cwd=folder,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def row(report: str, name: str) -> str:
    """Returns the value of a line of the report's table."""
    found = re.search(rf"{re.escape(name)}\s*│\s*(.*?)\s*│", report)
    assert found, report
    return found.group(1)


def test_digits(tmp_path: Path, own_cache: str) -> None:
    report = run("examples/train_digits.py", folder=tmp_path)
    assert float(row(report, "test accuracy").split("%")[0]) >= 97
    assert int(row(report, "steps")) == 12 * (1437 // 64)
    assert row(report, "fallbacks") == "0"
    assert row(report, "implicit syncs") == "0"
    # At most one each for the first, second and steady step, and for evaluation.
    assert 1 <= int(row(report, "compilations")) <= 4
    assert float(row(report, "median step, lazy").split()[0]) > 0
    assert float(row(report, "median step, eager CPU").split()[0]) > 0
    folders = list((tmp_path / "runs" / "digits" / "dumps").iterdir())
    assert any((folder / "torch.mlir").exists() for folder in folders)
    saved = torch.load(tmp_path / "runs/digits/checkpoint.pt", map_location="cpu")
    assert {"model", "optimizer"} <= set(saved)

    again = run("examples/train_digits.py", folder=tmp_path)
    assert row(again, "compilations") == "0"
    assert row(again, "test accuracy") == row(report, "test accuracy")


def test_digits_rejects_bad_options(tmp_path: Path) -> None:
    script = str(ROOT / "examples" / "train_digits.py")
    result = subprocess.run(
        [sys.executable, script, "--epochs", "0"], capture_output=True, text=True
    )
    assert result.returncode == 2
    assert "--epochs must be at least 1" in result.stderr
