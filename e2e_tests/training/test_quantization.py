"""Quantization-aware training has eager's numbers, without fallbacks: the observers, the fake
quantization and their gradients are ops of the step."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import pytest
import torch
import torch_ltc
from comparison import assert_close
from torch import nn
from torch.ao import quantization


class Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.quant = quantization.QuantStub()
        self.layers = nn.Sequential(
            nn.Conv2d(1, 4, 3),
            nn.BatchNorm2d(4),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(144, 5),
        )
        self.dequant = quantization.DeQuantStub()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.dequant(self.layers(self.quant(x)))


def _prepared(backend: str) -> nn.Module:
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch.ao.quantization moves to torchao
        model = Network().train()
        model.qconfig = quantization.get_default_qat_qconfig(backend)
        return quantization.prepare_qat(model)


def _losses(model: nn.Module, device: str) -> Iterator[torch.Tensor]:
    model = model.to(device)
    optimizer = torch.optim.SGD(model.parameters(), 0.05)
    generator = torch.Generator().manual_seed(1)
    while True:
        x = torch.randn(8, 1, 8, 8, generator=generator).to(device)
        y = torch.randint(5, (8,), generator=generator).to(device)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        yield loss.detach().cpu()


@pytest.mark.parametrize("tier", ["interpret", "compile"])
@pytest.mark.parametrize("backend", ["qnnpack", "fbgemm"])  # per tensor, per channel
def test_training(backend: str, tier: str) -> None:
    expected = _losses(_prepared(backend), "cpu")
    with torch_ltc.config(tier=tier):
        losses = _losses(_prepared(backend), "lazy")
        # Observers of channels have no state before the first step, which runs eagerly.
        assert_close(next(losses), next(expected))
        torch_ltc.reset_metrics()
        for _ in range(3):
            assert_close(next(losses), next(expected), rtol=1e-3, atol=1e-4)
    assert torch_ltc.metrics()["fallback_calls"] == 0


def test_observers_are_traced() -> None:
    observed = quantization.FusedMovingAvgObsFakeQuantize().to("lazy")
    on_cpu = quantization.FusedMovingAvgObsFakeQuantize()
    torch_ltc.reset_metrics()
    for step in range(3):
        x = torch.linspace(-step, 2 * step + 1, 12)
        assert_close(observed(x.to("lazy")), on_cpu(x))
    assert_close(observed.state_dict(), on_cpu.state_dict())
    assert torch_ltc.metrics()["fallback_calls"] == 0
