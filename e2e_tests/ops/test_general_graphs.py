"""For each row of the op tests at random sizes, the general graph of two traces yields
exactly the trace at a third size, or rejects that size.
"""

from __future__ import annotations

import contextlib

import general_graphs
import pytest
import torch
from ops.grown_rows import UNFIT, GrownRow, first_dtypes
from ops.program import Row
from ops.test_ops import run

DRAWS = 7


def _traced(row: Row, dtype: torch.dtype, seed: int):
    with contextlib.suppress(*UNFIT):
        return general_graphs.trace(lambda: run(GrownRow(row, seed), dtype, "lazy"))
    return None


@pytest.mark.parametrize(("row", "dtype"), first_dtypes())
def test_row(row: Row, dtype: torch.dtype) -> None:
    programs = [_traced(row, dtype, seed) for seed in range(DRAWS)]
    general_graphs.check([p for p in programs if p is not None])
