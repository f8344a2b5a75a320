"""DistributedDataParallel on device lazy: losses and parameters equal eager's, a step
is one program, and gradients are reduced without a cut."""

from __future__ import annotations

import pytest
from distributed.data_parallel_cases import (
    compare,
    compare_synchronized,
    count_programs,
    fill_buckets,
    hold_memory,
    show_lanes,
    write_gradients_to_buckets,
)
from distributed.launching import run_ranks


@pytest.mark.parametrize("ranks, tier", [(2, "compile"), (2, "auto"), (4, "interpret")])
def test_training(ranks, tier):
    run_ranks(compare, ranks, tier)


def test_a_step_is_one_program():
    run_ranks(count_programs, 2)


def test_one_kernel_fills_a_bucket():
    run_ranks(fill_buckets, 2)


def test_memory_of_a_rank():
    run_ranks(hold_memory, 2)


def test_kernels_of_gradients_write_a_large_bucket():
    run_ranks(write_gradients_to_buckets, 2)


def test_a_page_shows_what_overlaps():
    run_ranks(show_lanes, 2)


@pytest.mark.parametrize("ranks, tier", [(2, "compile"), (4, "interpret")])
def test_synchronised_batch_norm(ranks, tier):
    run_ranks(compare_synchronized, ranks, tier)
