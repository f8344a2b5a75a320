"""Collectives of lazy tensors: values, dtypes and errors equal eager's in all forms;
they are ops of the trace, in order, and each runs once."""

from __future__ import annotations

import pytest
from distributed.collective_forms import compare
from distributed.launching import run_ranks


@pytest.mark.parametrize("tier", ["compile", "auto", "interpret"])
def test_all_forms(tier):
    run_ranks(compare, 2, tier, False)


def test_sub_groups():
    run_ranks(compare, 4, "interpret", True)
