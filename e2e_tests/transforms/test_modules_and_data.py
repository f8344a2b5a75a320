"""nn.utils, data loaders and TorchScript modules work with lazy tensors."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from comparison import TOLERANCE, assert_close, compare
from torch import nn
from torch.nn.utils import parametrizations, parametrize
from torch.utils.data import DataLoader, TensorDataset


def x34() -> torch.Tensor:
    return torch.linspace(-1, 2, 12).reshape(3, 4)


def layer(device: torch.device) -> nn.Module:
    torch.manual_seed(1)
    return nn.Linear(4, 4).to(device)


def clipped(x: torch.Tensor) -> list[torch.Tensor]:
    net = layer(x.device)
    net(x).square().sum().backward()
    norm = nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    nn.utils.clip_grad_value_(net.parameters(), 0.2)
    return [norm, *(p.grad for p in net.parameters())]


def vectors(x: torch.Tensor) -> list[torch.Tensor]:
    net = layer(x.device)
    vector = nn.utils.parameters_to_vector(net.parameters()).detach() * 2
    nn.utils.vector_to_parameters(vector, net.parameters())
    return [vector, net(x).detach()]


def weight_norm(x: torch.Tensor) -> list[torch.Tensor]:
    net = parametrizations.weight_norm(layer(x.device))
    net(x).square().sum().backward()
    return [p.grad for p in net.parameters()]


def spectral_norm(x: torch.Tensor) -> list[torch.Tensor]:
    net = parametrizations.spectral_norm(layer(x.device))
    y = net(x)
    y.square().sum().backward()
    return [y.detach(), *(p.grad for p in net.parameters())]


def orthogonal(x: torch.Tensor) -> list[torch.Tensor]:
    net = parametrizations.orthogonal(layer(x.device))
    y = net(x)
    y.square().sum().backward()
    return [y.detach().abs()]


class Symmetric(nn.Module):
    def forward(self, weight: torch.Tensor) -> torch.Tensor:
        return weight.triu() + weight.triu(1).t()


def own_parametrization(x: torch.Tensor) -> list[torch.Tensor]:
    net = layer(x.device)
    parametrize.register_parametrization(net, "weight", Symmetric())
    with parametrize.cached():
        net(net(x)).sum().backward()
    return [net.parametrizations.weight.original.grad, net.weight.detach()]


def fused_batch_norm(x: torch.Tensor) -> list[torch.Tensor]:
    torch.manual_seed(1)
    conv = nn.Conv2d(1, 2, 2).to(x.device).eval()
    norm = nn.BatchNorm2d(2).to(x.device).eval()
    return [nn.utils.fuse_conv_bn_eval(conv, norm)(x.view(1, 1, 3, 4)).detach()]


@pytest.mark.parametrize(
    "program",
    [
        clipped,
        vectors,
        weight_norm,
        spectral_norm,
        orthogonal,
        own_parametrization,
        fused_batch_norm,
    ],
    ids=lambda p: p.__name__,
)
def test_utilities(program: Callable) -> None:
    compare(program, x34())


class Branching(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor, deep: bool) -> torch.Tensor:
        if deep:
            for _ in range(2):
                x = torch.relu(self.linear(x))
        return x[:, 1:].sum(1)


def test_scripted_modules() -> None:
    torch.manual_seed(1)
    module = torch.jit.script(Branching())
    expected = [module(x34(), True), module(x34(), False)]
    module.to("lazy")
    x = x34().to("lazy")
    for _ in range(3):  # the profiling executor changes after the first calls
        actual = [module(x, True), module(x, False)]
    assert_close(actual, expected, **TOLERANCE)
    actual[0].sum().backward()
    assert next(module.parameters()).grad.device.type == "lazy"


def test_traced_modules() -> None:
    torch.manual_seed(1)
    module = nn.Sequential(nn.Linear(4, 3), nn.GELU(), nn.LayerNorm(3))
    traced = torch.jit.trace(module, x34())
    expected = traced(x34())
    moved = traced.to("lazy")
    for _ in range(3):
        actual = moved(x34().to("lazy"))
    assert_close(actual, expected, **TOLERANCE)
    lazy_module = nn.Linear(4, 2).to("lazy")
    retraced = torch.jit.trace(lazy_module, x34().to("lazy"))
    x = x34().to("lazy") * 2
    assert_close(retraced(x), lazy_module(x), **TOLERANCE)


@pytest.mark.filterwarnings("ignore:.*pin_memory")
def test_data_loader() -> None:
    data = TensorDataset(torch.arange(12.0).reshape(6, 2), torch.arange(6))
    loader = DataLoader(data, batch_size=2, num_workers=2, pin_memory=True)
    totals = []
    for inputs, labels in loader:
        moved = inputs.to("lazy", non_blocking=True)
        totals.append((moved.sum(1) * labels.to("lazy")).sum())
    assert [t.item() for t in totals] == [5.0, 57.0, 173.0]
