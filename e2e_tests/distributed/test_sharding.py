"""FSDP2 (`fully_shard`) and FSDP1 on device lazy: losses and parameters equal eager's, a step is
one program, and parameters are gathered and gradients are reduced without a cut."""

from __future__ import annotations

import pytest
import torch
from distributed.flat_sharding_cases import CASES as FLAT_CASES
from distributed.flat_sharding_cases import restore_whole_state
from distributed.launching import run_ranks
from distributed.parallel_cases import compare
from distributed.sharding_cases import (
    CASES,
    bind_device,
    choose_mesh,
    count_bytes,
    count_programs,
    overlap,
)


@pytest.mark.parametrize("ranks, tier", [(2, "compile"), (2, "auto"), (4, "interpret")])
def test_training(ranks, tier):
    run_ranks(compare, ranks, tier, CASES)


def test_the_default_mesh():
    run_ranks(choose_mesh, 2)


def test_a_group_for_the_device():
    run_ranks(bind_device, 2, device_id=torch.device("lazy", 0))


def test_a_step_is_one_program():
    run_ranks(count_programs, 2)


def test_exchanges_overlap_with_computing():
    run_ranks(overlap, 2)


def test_a_rank_holds_parts():
    run_ranks(count_bytes, 2)


@pytest.mark.parametrize("tier", ["compile", "auto"])
def test_training_with_flat_parameters(tier):
    run_ranks(compare, 2, tier, FLAT_CASES)


def test_the_whole_state_of_flat_parameters():
    run_ranks(restore_whole_state, 2)
