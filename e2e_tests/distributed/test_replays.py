"""Captured steps replay each of their collectives exactly once, in order."""

from __future__ import annotations

import pytest
from distributed.launching import run_ranks
from distributed.start_cases import compare_data_parallel, compare_replays


@pytest.mark.parametrize("tier", ["compile", "auto"])
def test_collectives_of_the_function(tier):
    run_ranks(compare_replays, 2, tier)


@pytest.mark.parametrize("tier", ["compile", "auto"])
def test_data_parallel(tier):
    run_ranks(compare_data_parallel, 2, tier)
