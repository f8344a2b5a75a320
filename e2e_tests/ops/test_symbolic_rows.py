"""For each row of the op tests, the torch stage of the program for all sizes, specialized
to certain sizes, is exactly that of the program of these sizes."""

from __future__ import annotations

import contextlib
from typing import Any

import general_graphs
import pytest
import torch
from ops.grown_rows import UNFIT, GrownRow, first_dtypes
from ops.program import Row
from ops.test_ops import run
from symbolic_texts import normal_form
from torch_ltc._backend import bindings

DRAWS = 6

#: Rows whose programs for all sizes compute the mean in double precision, unlike those
#: for constant sizes.
OWN_FORMS = {"standardise-by-hand", "var", "var-dim", "std", "var_mean", "std_mean"}


def _traced(row: Row, dtype: torch.dtype, seed: int) -> Any:
    with contextlib.suppress(*UNFIT):
        return general_graphs.trace(lambda: run(GrownRow(row, seed), dtype, "lazy"))
    return None


def check(programs: list[Any], draws: int = 2) -> bool:
    """Returns whether the programs have a symbolic form. With sizes near the stand-ins, it
    must equal the program that is traced at these sizes: passes that decide by size decide
    the same for both."""
    try:
        general = bindings().GeneralGraph(programs)
        symbolic = bindings().SymbolicProgram(general, [], "torch", [], False)
    except RuntimeError as error:
        assert str(error)  # rejected, with a reason
        return False
    text = symbolic.module().decode()
    names = [name for name, _, _ in symbolic.symbols()]
    for draw in range(1, draws + 1):
        values = [
            value + 5 * draw + 3 * i * draw
            for i, value in enumerate(general.stand_ins()[draw % 3])
        ]
        try:
            static = general.instantiate(values, "sizes")
        except RuntimeError:
            continue
        if symbolic.problem_at(values):
            continue
        ours = bindings().specialize_module(text, list(zip(names, values)))
        wanted = bindings().specialize_module(static.text("torch", [], False), [])
        assert normal_form(ours) == normal_form(wanted)
    return True


@pytest.mark.parametrize(("row", "dtype"), first_dtypes())
def test_row(row: Row, dtype: torch.dtype) -> None:
    programs = [_traced(row, dtype, seed) for seed in range(DRAWS)]
    groups: dict[str, list[Any]] = {}
    for program in programs:
        if program is not None:
            groups.setdefault(bindings().skeleton(program), []).append(program)
    for group in groups.values():
        if len(group) > 1:
            check(group[:4], draws=0 if row.name in OWN_FORMS else 2)
