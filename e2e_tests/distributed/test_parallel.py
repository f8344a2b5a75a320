"""Features of torch.distributed built on collectives: device meshes, differentiable and
functional collectives, DTensor, tensor parallelism, sharded optimizers, uneven inputs,
pipelines; and training as in tutorials."""

from __future__ import annotations

import pytest
from distributed import recipe_cases
from distributed.launching import run_ranks
from distributed.parallel_cases import compare
from subprocesses import run_python


@pytest.mark.parametrize(
    "tier, backend", [("compile", "cpu:gloo,lazy:gloo"), ("auto", None)]
)
def test_two_ranks(tier, backend):
    run_ranks(compare, 2, tier, backend=backend)


def test_four_ranks():
    run_ranks(compare, 4, "interpret")


def test_recipes():
    run_ranks(compare, 2, "compile", recipe_cases.CASES)


def test_recipes_of_four_ranks():
    run_ranks(compare, 4, "auto", recipe_cases.CASES_OF_FOUR_RANKS)


def test_functional_collectives_that_are_imported_late() -> None:
    """Their module defines an op whose result is a subclass. If the module is imported
    after the first lazy tensor, the result must not be functionalized either."""
    result = run_python("""
        import torch, torch_ltc, torch.distributed as dist
        torch.ones(2, device="lazy").sum().item()
        store = dist.HashStore()
        dist.init_process_group("gloo", store=store, rank=0, world_size=1)
        import torch.distributed._functional_collectives as functional
        x = torch.ones(4, 2, device="lazy", requires_grad=True)
        y = functional.all_gather_tensor_autograd(x, 0, dist.group.WORLD)
        print(type(y).__name__, torch.chunk(y, 2)[0].sum().item())
        (y * 3).sum().backward()
        print(x.grad.tolist() == [[3.0, 3.0]] * 4)
        dist.destroy_process_group()
    """)
    assert result.stdout.split() == ["AsyncCollectiveTensor", "4.0", "True"]
