"""Each row of the op tests has eager's results at random sizes, from one program for all
sizes if there is such a program."""

from __future__ import annotations

import dataclasses

import pytest
import torch
import torch_ltc
from ops.grown_rows import UNFIT, GrownRow, first_dtypes
from ops.program import Row
from ops.test_ops import check_results, run

DRAWS = 6
#: Errors grow with the tensors, but the results of a wrong program differ by much more.
TOLERANCE = 1e-4


@pytest.mark.parametrize(("row", "dtype"), first_dtypes())
def test_row(row: Row, dtype: torch.dtype) -> None:
    with torch_ltc.config(tier="compile", varying_sizes="auto", cache=False):
        torch.lazy.empty_cache()
        for seed in range(DRAWS):
            grown = GrownRow(row, seed)
            try:
                expected = run(grown, dtype, "cpu")
            except UNFIT:
                continue  # constants of the row's function don't fit these sizes
            tolerance = max(row.tolerance or 0, TOLERANCE)
            wanted = dataclasses.replace(row, tolerance=tolerance)
            check_results(wanted, run(grown, dtype, "lazy"), expected)
