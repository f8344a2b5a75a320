"""The compiler lowers or rejects randomly changed test modules, without a crash."""

from __future__ import annotations

import random
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TOOL = ROOT / "build" / "bin" / "ltc-opt"
MODULES = sorted((ROOT / "mlir_lowering" / "test").rglob("*.mlir"))
PIPELINES = [
    ["--ltc-torch-to-contract", "--ltc-torch-to-linalg", "--ltc-linalg-to-kernels"],
    ["--ltc-torch-to-linalg"],
    ["--ltc-torch-to-tosa"],
    ["--ltc-torch-to-stablehlo"],
    ["--ltc-linalg-to-kernels"],
]
#: Patterns for sizes, types, values and ops. A mutation replaces one match of a pattern
#: with another match.
KINDS = [
    r"(?<![\w%#.])-?\d+(?![\w.])",
    r"\b(?:f32|f64|si64|i1|ui8|bf16|i64|unk)\b",
    r"%[\w#]+",
    r"torch\.aten\.[\w.]+",
    r"!torch\.\w+(?:<\[[^\]]*\],\w+>)?",
    r"\[[\d,?]*\]",
]


def mutated(seed: int) -> str:
    draw = random.Random(seed)
    text = draw.choice(draw.choice(MODULES).read_text().split("// -----"))
    for _ in range(draw.randint(1, 3)):
        found = list(re.finditer(draw.choice(KINDS), text))
        if found:
            place, other = draw.choice(found), draw.choice(found)
            text = text[: place.start()] + other.group() + text[place.end() :]
    return text


@pytest.mark.skipif(not TOOL.exists(), reason="the tools aren't built")
@pytest.mark.parametrize("first", range(0, 100, 25))
def test_no_crash(first: int) -> None:
    for seed in range(first, first + 25):
        pipeline = PIPELINES[seed % len(PIPELINES)]
        done = subprocess.run(
            [TOOL, *pipeline], input=mutated(seed), capture_output=True, text=True
        )
        assert done.returncode in (0, 1), f"seed {seed}: {done.stderr[:2000]}"
