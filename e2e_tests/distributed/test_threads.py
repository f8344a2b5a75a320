"""While a thread trains with collectives, other threads may compute with its tensors: each
collective runs once, and each value is eager's."""

from __future__ import annotations

import pytest
from distributed.launching import run_ranks
from distributed.thread_cases import compute_losses, watch_parameters


@pytest.mark.parametrize("use", [compute_losses, watch_parameters])
def test_other_threads(use):
    run_ranks(use, 2)
