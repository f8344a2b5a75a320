"""Modules that share a parameter still share it on device lazy."""

from __future__ import annotations

import copy

import torch
from comparison import assert_close
from torch import nn


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(5, 3)
        self.head = nn.Linear(3, 5, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.head(self.embedding(tokens))


def test_there_and_back() -> None:
    model = Tied()
    weight = model.embedding.weight.detach().clone()
    for device in ("lazy", "cpu", "lazy"):
        model.to(device)
        assert model.head.weight is model.embedding.weight
        assert model.head.weight.device.type == device
        assert len(list(model.parameters())) == 1
    assert torch.equal(model.head.weight.cpu(), weight)
    assert model.double().head.weight is model.embedding.weight


def test_gradient_moves_along() -> None:
    model = Tied()
    model(torch.tensor([1, 2])).sum().backward()
    wanted = model.embedding.weight.grad.clone()
    model.to("lazy")
    assert torch.equal(model.head.weight.grad.cpu(), wanted)


def test_layer_used_twice() -> None:
    layer = nn.Linear(2, 2)
    model = nn.Sequential(layer, nn.ReLU(), layer).to("lazy")
    assert model[0] is model[2]
    assert len(list(model.parameters())) == 2


def test_recurrent_layers_read_the_tied_weight() -> None:
    layers = nn.ModuleList([nn.LSTM(3, 3), nn.LSTM(3, 3)])
    layers[1].weight_hh_l0 = layers[0].weight_hh_l0
    layers.to("lazy")
    assert any(w is layers[0].weight_hh_l0 for w in layers[1]._flat_weights)


def test_trains_as_on_the_cpu() -> None:
    model = Tied()
    results = {}
    for device in ("cpu", "lazy"):
        moved = copy.deepcopy(model).to(device)
        optimizer = torch.optim.SGD(moved.parameters(), lr=0.5)
        for _ in range(3):
            optimizer.zero_grad()
            tokens = torch.tensor([0, 3], device=device)
            nn.functional.cross_entropy(moved(tokens), tokens).backward()
            optimizer.step()
        results[device] = moved.head.weight.detach().cpu()
    assert_close(results["lazy"], results["cpu"])


def test_lazy_modules_get_their_sizes_on_the_device() -> None:
    torch.manual_seed(3)
    cpu = nn.Sequential(nn.LazyLinear(4), nn.LazyBatchNorm1d())
    lazy = nn.Sequential(nn.LazyLinear(4), nn.LazyBatchNorm1d()).to("lazy")
    x = torch.randn(5, 3)
    torch.manual_seed(4)
    expected = cpu(x)
    torch.manual_seed(4)
    result = lazy(x.to("lazy"))
    assert_close(result, expected)
    assert lazy[0].weight.shape == (4, 3) and lazy[0].weight.device.type == "lazy"
