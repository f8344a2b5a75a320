"""Runs the test suites one after the other, and repeats their summaries at the end."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import environment
from environment import PYTHON, VENV
from steps import ROOT, StepFailed, exclusive, say

import build


@dataclass
class Suite:
    """A test suite. `summary` is a pattern for the lines of the runner's summary."""

    name: str
    about: str
    command: Callable[[], Sequence[str]]
    summary: str
    needs_build: bool = True
    #: Arguments that are used if no files or folders are given.
    paths: tuple[str, ...] = ()


#: Makes glibc overwrite allocated and freed memory, so that reading uninitialized or
#: freed memory changes results in every run, not only occasionally.
STRICT_MEMORY = {"MALLOC_PERTURB_": "165"}


def _pytest(*arguments: str) -> list[str]:
    return [str(PYTHON), "-m", "pytest", "-q", *arguments]


def _workers() -> list[str]:
    return ["-n", str(min(environment.processors(), 4)), "--dist", "worksteal"]


SUITES = [
    Suite(
        "lint",
        "formatting, Python checks, house rules",
        lambda: [str(PYTHON), "tools/lint"],
        r"^lint: ",
        needs_build=False,
    ),
    Suite(
        "runtime",
        "GoogleTest of runtime/ (and C++ tests elsewhere)",
        lambda: [
            str(VENV / "bin" / "ctest"), "--test-dir", "build", "--output-on-failure",
            "-j", str(environment.processors()),
        ],
        r"tests passed|tests failed|No tests were found",
    ),
    Suite(
        "sanitize",
        "a sample of the runtime's tests with AddressSanitizer and UBSan",
        lambda: [sys.executable, str(ROOT / "tools" / "dev"), "sanitize", "address", "--sample"],
        r"^\[  (PASSED|FAILED)  \]|ERROR: AddressSanitizer|runtime error:",
        needs_build=False,
    ),
    Suite(
        "lowering",
        "lit tests of mlir_lowering/",
        lambda: [str(VENV / "bin" / "ninja"), "-C", "build", "check-mlir-lowering"],
        r"^\s+(Passed|Failed|Unsupported|Excluded|Expectedly Failed|Unresolved)\s*:|^Testing Time",
    ),
    Suite(
        "e2e",
        "programs compared with eager PyTorch",
        lambda: _pytest(*_workers(), "--ignore=e2e_tests/test_docs.py"),
        r"\d+ (passed|failed|error|skipped|xfailed|deselected).* in [\d.]+s|^(FAILED|ERROR) ",
        paths=("e2e_tests",),
    ),
    Suite(
        "docs",
        "code blocks of README and docs/",
        _pytest,
        r"\d+ (passed|failed|error|skipped).* in [\d.]+s|^(FAILED|ERROR) ",
        paths=("e2e_tests/test_docs.py",),
    ),
]  # fmt: skip


def _is_path(argument: str) -> bool:
    return not argument.startswith("-") and (ROOT / argument.split("::")[0]).exists()


def _run(suite: Suite, extra: Sequence[str]) -> tuple[int, list[str]]:
    """Runs a suite and prints its output meanwhile; returns the exit code and the summary
    lines."""
    named = any(_is_path(argument) for argument in extra)
    command = [*suite.command(), *(() if named else suite.paths), *extra]
    say(f"{suite.name}: {suite.about}")
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env={**os.environ, **environment.environment(), **STRICT_MEMORY},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    summary = []
    for line in process.stdout:
        sys.stdout.write(line)
        sys.stdout.flush()
        if re.search(suite.summary, line):
            summary.append(line.rstrip())
    return process.wait(), summary


def run_suites(names: Sequence[str], extra: Sequence[str], full: bool = False) -> int:
    """Runs the named suites (all if none is named), even after a failure; returns an exit
    code. `full`: sweeps test every sample, which takes hours. Raises StepFailed for an
    unknown suite."""
    known = {suite.name: suite for suite in SUITES}
    for name in names:
        if name not in known:
            raise StepFailed(
                f"there is no test suite '{name}'; there are: {', '.join(known)}"
            )
    chosen = [known[name] for name in names] or SUITES
    if any(suite.needs_build for suite in chosen):
        build.build(tests=True)
        if any(suite.name in ("e2e", "lowering") for suite in chosen):
            with exclusive("setup"):
                environment.peer_environment(environment.TORCH_MLIR)
    else:
        build.prepare_environment(tests=True)
    results = []
    for suite in chosen:
        started = time.monotonic()
        more = ["--full", *extra] if full and suite.name == "e2e" else extra
        code, summary = _run(suite, more)
        results.append((suite, code, summary, time.monotonic() - started))
    print("\n== Summary of the test runners ==")
    for suite, code, summary, seconds in results:
        state = "passed" if code == 0 else f"FAILED (exit code {code})"
        print(f"{suite.name}: {state} in {seconds:.0f} s")
        for line in summary or ["(the runner printed no summary)"]:
            print(f"  {line}")
    sys.stdout.flush()
    return 1 if any(code for _, code, _, _ in results) else 0
