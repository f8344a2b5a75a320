"""Collectives of lazy tensors: values, dtypes and errors equal eager's in all forms;
they are ops of the trace, in order, and each runs once."""

from __future__ import annotations

import pytest
from distributed.collective_forms import compare, drop_works
from distributed.launching import run_ranks


@pytest.mark.parametrize("tier", ["compile", "auto", "interpret"])
def test_all_forms(tier):
    run_ranks(compare, 2, False, {"tier": tier})


@pytest.mark.parametrize("option", ["lockstep", "detect_nan"])
def test_steps_that_run_twice(option):
    """Each collective and message runs once, also if an option runs its step twice."""
    run_ranks(compare, 2, False, {option: True})


def test_sub_groups():
    run_ranks(compare, 4, True, {"tier": "interpret"})


def test_messages_that_nobody_waits_for():
    """The copies of messages whose Work was dropped are released."""
    run_ranks(drop_works, 2)
