"""Each lowering to linalg has eager torch's results: values, NaNs, dtypes."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from comparison import assert_close
from lowering.linalg import (
    cases_elementwise,
    cases_indexing,
    cases_movement,
    cases_reduction,
    cases_window,
    native,
)
from lowering.linalg.case_functions import Case, make_function

FAMILIES = {
    "elementwise": cases_elementwise.CASES,
    "reduction": cases_reduction.CASES,
    "movement": cases_movement.CASES,
    "indexing": cases_indexing.CASES,
    "window": cases_window.CASES,
}


def describe(case: Case) -> str:
    def short(value: object) -> str:
        if isinstance(value, torch.Tensor):
            return f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}"
        return str(value)

    named = [f"{k}={short(v)}" for k, v in case.kwargs.items()]
    return f"{case.op}({', '.join([short(v) for v in case.args] + named)})"


def compare(case: Case, number: int, actual: torch.Tensor, expected: torch.Tensor):
    tolerance = case.tolerance
    if tolerance is None or not expected.is_floating_point():
        rtol = atol = 0.0
    else:
        # The tolerance is at least one unit in the last place of 16-bit floats.
        narrow = {torch.bfloat16: 2**-7, torch.float16: 2**-10}
        rtol = max(tolerance, narrow.get(expected.dtype, 0.0))
        atol = rtol * 1e-1
    what = (
        f"{describe(case)}, result {number}: {actual.flatten()[:16].tolist()} instead of "
        f"{expected.flatten()[:16].tolist()}"
    )
    assert_close(actual, expected, rtol, atol, what, equal_nan=True)


@pytest.mark.parametrize("family", FAMILIES)
def test_values(family: str, tmp_path: Path) -> None:
    cases = FAMILIES[family]
    functions = [make_function(case, f"case_{i}") for i, case in enumerate(cases)]
    source = "\n".join(function.text for function in functions)
    (tmp_path / "torch.mlir").write_text(source)
    library = native.compile_module(source, tmp_path)
    failures = []
    for i, (case, function) in enumerate(zip(cases, functions, strict=True)):
        actual = native.call(library, f"case_{i}", function)
        for number, pair in enumerate(zip(actual, function.expected, strict=True)):
            try:
                compare(case, number, *pair)
            except AssertionError as error:
                failures.append(str(error))
    assert not failures, f"{len(failures)} results differ\n" + "\n".join(failures)
