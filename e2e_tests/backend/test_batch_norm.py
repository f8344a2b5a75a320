"""Batch norm updates its running statistics as in eager."""

from __future__ import annotations

import copy

import pytest
import torch
import torch_ltc
from comparison import assert_close
from torch import nn


def test_running_statistics_follow_eager() -> None:
    cpu = nn.BatchNorm2d(3)
    lazy = copy.deepcopy(cpu).to("lazy")
    for seed in range(3):
        x = torch.randn(4, 3, 5, 5, generator=torch.Generator().manual_seed(seed))
        expected, got = cpu(x), lazy(x.to("lazy"))
        torch_ltc.mark_step()
        assert_close(got, expected, rtol=1e-4, atol=1e-5)
    for name, value in cpu.state_dict().items():
        assert_close(lazy.state_dict()[name], value, rtol=1e-4, atol=1e-5)


def test_evaluation_reads_and_does_not_write() -> None:
    cpu = nn.BatchNorm1d(3).eval()
    lazy = copy.deepcopy(cpu).to("lazy")
    x = torch.randn(6, 3)
    assert_close(lazy(x.to("lazy")), cpu(x), rtol=1e-4, atol=1e-5)
    assert lazy.running_mean.tolist() == [0] * 3


def test_without_statistics() -> None:
    cpu = nn.BatchNorm1d(3, track_running_stats=False)
    lazy = copy.deepcopy(cpu).to("lazy")
    x = torch.randn(6, 3)
    assert_close(lazy(x.to("lazy")), cpu(x), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("tier", ["interpret", "compile"])
@pytest.mark.parametrize("training", [False, True])
def test_gradients_without_a_weight(training: bool, tier: str) -> None:
    """The op of the gradients has results that aren't computed."""

    def gradient(device: str) -> torch.Tensor:
        x = torch.arange(24.0).reshape(3, 2, 4).to(device).requires_grad_()
        statistics = torch.zeros(2, device=device), torch.ones(2, device=device)
        y = torch.nn.functional.batch_norm(x, *statistics, training=training)
        (y * x.detach().sin()).sum().backward()
        return x.grad

    with torch_ltc.config(tier=tier):
        assert_close(gradient("lazy"), gradient("cpu"))
