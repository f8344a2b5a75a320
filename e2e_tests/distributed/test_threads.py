"""While a thread uses collectives, other threads may compute with its tensors, or use
collectives in groups of their own: each collective runs once, and each value is eager's."""

from __future__ import annotations

import pytest
from distributed import thread_group_cases
from distributed.launching import run_ranks
from distributed.thread_cases import compute_losses, watch_parameters


@pytest.mark.parametrize("use", [compute_losses, watch_parameters])
def test_other_threads(use):
    run_ranks(use, 2)


@pytest.mark.parametrize(
    "use",
    [
        "reduce_in_threads",
        "replay_in_threads",
        "train_in_threads",
        "reduce_next_to_training",
        "hand_over_group",
        "share_weights",
        "fail_in_one_thread",
    ],
)
def test_groups_of_threads(use):
    run_ranks(getattr(thread_group_cases, use), 2)
