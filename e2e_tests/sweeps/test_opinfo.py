"""OpInfo entries on device `lazy`: none fails or differs from eager.

Each run compares the function and the gradients (in a separate program) of the first
float32 sample of each entry. `--full` compares all samples, in-place and out variants, and
the other dtypes. A part that `results.json` records as native must not fall back.
"""

from __future__ import annotations

import json

import pytest
import torch
from sweeps import opinfo
from sweeps.page import RESULTS

RECORDED = json.loads(RESULTS.read_text())


def _ids(dtype: torch.dtype) -> list:
    return [pytest.param(op, id=opinfo.entry_name(op)) for op in opinfo.entries(dtype)]


def _is_native(op, part: str, dtype: torch.dtype) -> bool:
    """Whether the recorded sweep ran this part of an entry without fallbacks."""
    row = RECORDED.get(opinfo.entry_name(op), {})
    recorded = row.get(str(dtype).removeprefix("torch."), {})
    part = "gradient" if part == opinfo.CUT_GRADIENT else part
    return recorded.get(part) == "agrees"


def _check(op, dtype: torch.dtype, parts: tuple[str, ...], limit: int | None) -> None:
    for part in parts:
        outcome = opinfo.sweep_part(op, part, dtype, limit)
        assert outcome.status not in ("wrong", "error"), f"{part}: {outcome.detail}"
        assert outcome.status != "fallback" or not _is_native(op, part, dtype), (
            f"{part}: {', '.join(outcome.fallbacks)} ran eagerly; results.json records "
            "this part as native"
        )


@pytest.mark.parametrize("op", _ids(torch.float32))
def test_float32(op, request) -> None:
    if request.config.getoption("--full"):
        _check(op, torch.float32, (*opinfo.PARTS, opinfo.CUT_GRADIENT), None)
    else:
        # The tests in `ops/` run each op and its gradient in one program.
        _check(op, torch.float32, ("function", opinfo.CUT_GRADIENT), 1)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Creates the two thousand cases of the other dtypes, with `--full` only."""
    if metafunc.function is not test_other_dtypes:
        return
    cases = [
        pytest.param(
            dtype,
            *case.values,
            id=f"{str(dtype).removeprefix('torch.')}-{case.id}",
        )
        for dtype in opinfo.FORWARD_DTYPES
        for case in _ids(dtype)
        if metafunc.config.getoption("--full")
    ]
    metafunc.parametrize(("dtype", "op"), cases)


def test_other_dtypes(dtype: torch.dtype, op) -> None:
    _check(op, dtype, ("function",), None)
