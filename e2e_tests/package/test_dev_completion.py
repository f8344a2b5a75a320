"""`./dev completion` prints a script that bash accepts and that completes words."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def completions(*words: str) -> set[str]:
    """Returns bash's suggestions for the last word."""
    function = "_torch_ltc_dev" if words[0] == "./dev" else "_torch_ltc_tool"
    quoted = " ".join(f"'{word}'" for word in words)
    program = f"""
        source <(./dev completion)
        COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}
        {function}; printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    result = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", program],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    return set(result.stdout.split())


def test_commands_and_suites() -> None:
    assert completions("./dev", "te") == {"test"}
    assert completions("./dev", "test", "low") == {"lowering"}
    assert {"build", "bench", "doctor", "help"} <= completions("./dev", "")


def test_options_of_a_tool() -> None:
    tool = ROOT / "build" / "bin" / "ltc-opt"
    if not tool.exists():
        pytest.skip("ltc-opt isn't built in this folder")
    found = completions(str(tool), "--ltc-torch-to")
    stages = (
        "contract", "linalg", "operators", "portable-linalg", "stablehlo", "tosa",
    )  # fmt: skip
    assert found == {f"--ltc-torch-to-{stage}" for stage in stages}
