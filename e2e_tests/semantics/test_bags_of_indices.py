"""`embedding_bag` has eager's results and gradients for all dtypes of indices and offsets."""

from __future__ import annotations

import pytest
import torch
import torch_ltc
from comparison import assert_close
from torch import Tensor
from torch.nn import functional as F

MODES = {"sum": 0, "mean": 1, "max": 2}


def run(
    device: str,
    mode: str,
    indices: torch.dtype,
    offsets: torch.dtype,
    padding: int | None,
    is_scaled: bool,
) -> list[Tensor]:
    weight = torch.arange(15.0).sin().reshape(5, 3).to(device).requires_grad_()
    at = torch.tensor([1, 2, 3, 4, 1], dtype=indices, device=device)
    starts = torch.tensor([0, 2, 2], dtype=offsets, device=device)  # one bag is empty
    scale = None
    if is_scaled:
        scale = torch.linspace(0.5, 1.5, 5).to(device).requires_grad_()
    bags = F.embedding_bag(
        at, weight, starts, mode=mode, padding_idx=padding, per_sample_weights=scale
    )
    leaves = [weight] if scale is None else [weight, scale]
    grads = torch.autograd.grad(bags.square().sum(), leaves)
    details = torch.ops.aten._embedding_bag(
        weight.detach(),
        at,
        starts,
        False,
        MODES[mode],
        False,
        None if scale is None else scale.detach(),
        False,
        -1 if padding is None else padding,
    )
    return [x.detach().cpu() for x in (bags, *grads, *details)]


@pytest.mark.parametrize("tier", ["compile", "interpret"])
@pytest.mark.parametrize("padding", [None, 1])
@pytest.mark.parametrize("offsets", [torch.int32, torch.int64])
@pytest.mark.parametrize("indices", [torch.int32, torch.int64])
@pytest.mark.parametrize("mode", [*MODES, "scaled sum"])
def test_dtypes(
    mode: str,
    indices: torch.dtype,
    offsets: torch.dtype,
    padding: int | None,
    tier: str,
) -> None:
    is_scaled = mode == "scaled sum"
    arguments = ("sum" if is_scaled else mode, indices, offsets, padding, is_scaled)
    with torch_ltc.config(tier=tier):
        results = run("lazy", *arguments)
    assert_close(results, run("cpu", *arguments))
