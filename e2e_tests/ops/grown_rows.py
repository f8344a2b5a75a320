"""Rows of the op tests with larger tensors."""

from __future__ import annotations

import general_graphs
import pytest
import torch
from ops.program import Row
from ops.test_ops import all_cases

#: Errors that a row's function raises if its constants don't fit the sizes.
UNFIT = (RuntimeError, IndexError, ValueError)


class GrownRow:
    """A row with larger tensors."""

    def __init__(self, row: Row, seed: int) -> None:
        self.row, self.function, self.grad = row, row.function, row.grad
        self.seed = seed

    def tensors(self, dtype: torch.dtype) -> list[torch.Tensor]:
        growth = general_graphs.Growth(self.seed)
        return [growth.tensor(tensor) for tensor in self.row.tensors(dtype)]


def first_dtypes():
    """Returns each row that needs no fallback and no sync, with its first dtype."""
    seen, first = set(), []
    for case in all_cases():
        row, dtype = case.values
        if id(row) not in seen and not row.reason:
            seen.add(id(row))
            first.append(pytest.param(row, dtype, id=case.id))
    return first
