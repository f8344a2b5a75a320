"""Each row of the op tables at random sizes, by one program for all sizes where there is
one, compared with eager."""

from __future__ import annotations

import dataclasses

import general_graphs
import pytest
import torch
import torch_ltc
from ops.program import Row
from ops.test_general_graphs import _first_dtypes
from ops.test_ops import check_results, run

DRAWS = 6
#: Larger tensors than the row's; a wrong program differs by much more.
TOLERANCE = 1e-4


class _Grown:
    """A row with other sizes."""

    def __init__(self, row: Row, seed: int) -> None:
        self.growth = general_graphs.Growth(seed)
        self.row, self.function, self.grad = row, row.function, row.grad

    def tensors(self, dtype: torch.dtype) -> list[torch.Tensor]:
        return [self.growth.tensor(tensor) for tensor in self.row.tensors(dtype)]


@pytest.mark.parametrize(("row", "dtype"), _first_dtypes())
def test_row(row: Row, dtype: torch.dtype) -> None:
    with torch_ltc.config(tier="compile", varying_sizes="auto", cache=False):
        torch.lazy.empty_cache()
        for seed in range(DRAWS):
            grown = _Grown(row, seed)
            try:
                expected = run(grown, dtype, "cpu")
            except (RuntimeError, IndexError, ValueError):
                continue  # constants of the row's function don't fit these sizes
            tolerance = max(row.tolerance or 0, TOLERANCE)
            wanted = dataclasses.replace(row, tolerance=tolerance)
            check_results(wanted, run(grown, dtype, "lazy"), expected)
