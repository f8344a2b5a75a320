"""Features of torch.distributed built on collectives: device meshes, differentiable and
functional collectives, DTensor, tensor parallelism, sharded optimizers, uneven inputs,
pipelines."""

from __future__ import annotations

import pytest
from distributed.launching import run_ranks
from distributed.parallel_cases import compare


@pytest.mark.parametrize(
    "tier, backend", [("compile", "cpu:gloo,lazy:gloo"), ("auto", None)]
)
def test_two_ranks(tier, backend):
    run_ranks(compare, 2, tier, backend=backend)


def test_four_ranks():
    run_ranks(compare, 4, "interpret")
