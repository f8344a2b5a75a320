"""Tests the benchmark as a user runs it, and its reports of noise, targets that are missed,
and training losses that differ."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

from contenders import ALL, Failed, Process, Settings
from library_calls import RunArguments
from race import Result
from verdict import geometric_mean, judge, wrong_losses

SHORT = ["--rounds", "1", "--seconds", "0.02"]


def bench(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "benchmarks" / "bench.py"), *SHORT]
    return subprocess.run(
        [*command, *arguments, "--folder", str(folder)],
        capture_output=True,
        text=True,
        timeout=300,
    )


def test_eager_and_lazy(tmp_path: Path) -> None:
    contenders = ["--contender", "eager", "lazy"]
    run = bench(tmp_path, "--model", "perceptron 3", "--minima", *contenders)
    assert run.returncode == 0, run.stdout + run.stderr
    models = json.loads((tmp_path / "bench.json").read_text())["models"]
    eager, lazy = models["perceptron 3x64"]
    assert eager["contender"] == "eager" and lazy["contender"] == "lazy"
    assert lazy["late"] == {
        "compilations": 0,
        "fallback_calls": 0,
        "implicit_syncs": 0,
    }
    assert lazy["counts"]["compilations"] > 0  # its disk cache was empty
    assert 0 < lazy["first_warm"] < lazy["first_cold"]
    assert lazy["loss_difference"] < 1e-4 and len(lazy["losses"]) == 5
    assert lazy["ops"] > 10 and lazy["peak"] > lazy["base"] > 0
    assert "perceptron 3x64" in (tmp_path / "bench.svg").read_text()


def test_missing_contender_is_named(tmp_path: Path) -> None:
    run = bench(
        tmp_path, "--model", "perceptron 3", "--minima",
        "--contender", "eager", "jax", "--jax-python", "nowhere/python",
    )  # fmt: skip
    assert run.returncode == 0
    assert "jax: not installed; see docs/benchmarks.md" in run.stdout


def test_library_calls_pass_the_runtime_s_arguments() -> None:
    """RunArguments has the fields of LtcRunArguments, because a missing field would shift
    all later ones."""
    header = (ROOT / "runtime/include/torch_ltc-c/runtime.h").read_text()
    body = header[: header.index("} LtcRunArguments;")].rpartition("typedef struct {")[
        2
    ]
    declarations = re.sub(r"///.*", "", body).split(";")[:-1]
    names = [re.search(r"\(\*(\w+)\)|(\w+)\s*$", d) for d in declarations]
    fields = [name[1] or name[2] for name in names if name]
    assert len(fields) > 5
    assert [name for name, _ in RunArguments._fields_] == fields


def test_unknown_model(tmp_path: Path) -> None:
    run = bench(tmp_path, "--model", "alexnet")
    assert run.returncode != 0 and "perceptron 3x64" in run.stderr


def test_a_contender_that_ends_gives_its_reason(tmp_path: Path) -> None:
    process = Process(ALL[0], "perceptron 3x64", Settings(threads=1), tmp_path)
    try:
        with pytest.raises(Failed, match=r"AttributeError: .*no attribute 'sing'"):
            process.ask("sing")
    finally:
        process.close()


def result(name: str, rounds: list[float], load: float = 0.0, **fields) -> Result:
    return Result(name, rounds=rounds, loads=[load] * len(rounds), **fields)


def test_noise() -> None:
    assert result("lazy", [1.0, 1.0, 1.0], load=0.5).is_noisy
    quiet = result("lazy", [1.0, 2.0, 4.0])
    assert not quiet.is_noisy
    assert quiet.seconds(minima=False) == 2.0 and quiet.seconds(minima=True) == 1.0
    quiet.rounds.append(100.0)
    quiet.loads.append(0.9)  # isn't clean, so isn't in the median
    assert quiet.seconds(minima=False) == 2.0


def test_verdict() -> None:
    table = {
        name: {
            "lazy": result("lazy", [time]),
            "eager fused": result("eager fused", [1.0]),
        }
        for name, time in [("a", 0.5), ("b", 0.9)]
    }
    (line,) = judge(table, lambda r: r.seconds(True))
    assert line.startswith("met ") and "worst 0.90 (b;" in line and "0.67" in line
    table["b"]["lazy"].rounds = [1.5]
    assert judge(table, lambda r: r.seconds(True))[0].startswith("MISS")
    assert geometric_mean([1.0, 4.0]) == pytest.approx(2.0)


def test_losses_are_compared() -> None:
    table = {
        "a": {
            "lazy": result("lazy", [1.0], losses=[1.0], loss_difference=2e-3),
            "jax": result("jax", [1.0], losses=[1.0], loss_difference=1e-5),
            "compile": result(
                "compile", [1.0], losses=[float("nan")], loss_difference=float("nan")
            ),
        }
    }
    assert [line.split(" (")[0] for line in wrong_losses(table)] == [
        "a: lazy",
        "a: compile",
    ]
