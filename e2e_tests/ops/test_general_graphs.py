"""Each row of the op tables at random sizes: the general form of two traces is exactly
the trace at a third size, or refuses it."""

from __future__ import annotations

import contextlib

import general_graphs
import pytest
import torch
from ops.program import Row
from ops.test_ops import _cases

DRAWS = 7


def _first_dtypes():
    seen, first = set(), []
    for case in _cases():
        row, dtype = case.values
        if id(row) not in seen and not row.reason:
            seen.add(id(row))
            first.append(pytest.param(row, dtype, id=case.id))
    return first


def _traced(row: Row, dtype: torch.dtype, seed: int):
    growth = general_graphs.Growth(seed)
    inputs = [growth.tensor(tensor) for tensor in row.tensors(dtype)]

    def call():
        torch.manual_seed(11)
        lazy = [tensor.to("lazy") for tensor in inputs]
        wanted = [t for t in lazy if row.grad and t.is_floating_point()]
        for tensor in wanted:
            tensor.requires_grad_()
        answer = row.function(*lazy)
        results = list(answer) if isinstance(answer, (tuple, list)) else [answer]
        roots = [r for r in results if r.requires_grad]
        if wanted and roots:
            ones = [torch.ones_like(r) for r in roots]
            results += torch.autograd.grad(roots, wanted, ones, allow_unused=True)
        return results

    with contextlib.suppress(RuntimeError, IndexError, ValueError):
        return general_graphs.trace(call)
    return None  # the row's function has constants that don't fit other sizes


@pytest.mark.parametrize(("row", "dtype"), _first_dtypes())
def test_row(row: Row, dtype: torch.dtype) -> None:
    programs = [_traced(row, dtype, seed) for seed in range(DRAWS)]
    general_graphs.check([p for p in programs if p is not None])
