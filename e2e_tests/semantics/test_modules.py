"""Shared parameters stay shared when modules are moved between devices or copied; tensors
that share memory still do when they are loaded from a file."""

from __future__ import annotations

import copy
from pathlib import Path

import torch
from comparison import assert_close, assert_same


class Tied(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = torch.nn.Embedding(10, 4)
        self.norm = torch.nn.BatchNorm1d(4)
        self.head = torch.nn.Linear(4, 10, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.head(self.norm(self.embedding(tokens)))


def losses(model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> list[float]:
    device = next(model.parameters()).device
    result = []
    for step in range(4):
        tokens = (torch.arange(6) * (step + 1) % 10).to(device)
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(tokens), tokens)
        loss.backward()
        optimizer.step()
        result.append(loss.item())
    return result


def test_moving_keeps_parameters() -> None:
    torch.manual_seed(0)
    model = Tied()
    twin = copy.deepcopy(model)
    before = dict(model.named_parameters(remove_duplicate=False))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.05)
    assert model.to("lazy") is model
    after = dict(model.named_parameters(remove_duplicate=False))
    assert all(after[name] is before[name] for name in before)
    assert model.head.weight is model.embedding.weight
    assert all(p.device.type == "lazy" for p in model.parameters())
    assert model.norm.running_mean.device.type == "lazy"
    expected = losses(twin, torch.optim.AdamW(twin.parameters(), lr=0.05))
    assert_close(losses(model, optimizer), expected, rtol=1e-4, atol=0)
    model.cpu()
    assert all(after[name] is before[name] for name in before)
    assert model.head.weight is model.embedding.weight
    assert all(p.device.type == "cpu" for p in model.parameters())
    assert all(p.grad.device.type == "cpu" for p in model.parameters())
    assert_same(list(model.parameters()), list(twin.parameters()))


def test_moving_while_a_graph_is_alive() -> None:
    model = torch.nn.Linear(3, 2)
    kept = model(torch.ones(1, 3))
    model.to("lazy")
    model(torch.ones(1, 3).to("lazy")).sum().backward()
    assert model.weight.grad.tolist() == [[1] * 3] * 2
    assert kept.requires_grad


def test_moving_parts() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2))
    first, second = model[0].weight, model[1].weight
    model[1].to("lazy")
    assert (first.device.type, second.device.type) == ("cpu", "lazy")
    model.to("lazy", torch.float64)
    assert model[0].weight is first and first.dtype == torch.float64
    assert model[1].weight is second and second.dtype == torch.float64
    empty = torch.nn.Linear(2, 2, device="meta").to_empty(device="lazy")
    assert empty.weight.device.type == "lazy"


def test_files_keep_shared_memory(tmp_path: Path) -> None:
    base = torch.arange(6.0).reshape(2, 3).to("lazy")
    path = tmp_path / "shared.pt"
    torch.save({"base": base, "row": base[1], "same": base, "t": base.t()}, path)
    for location in ("lazy", "cpu"):
        loaded = torch.load(path, map_location=location)
        loaded["base"][1, 0] = 50
        assert loaded["row"].tolist() == [50, 4, 5]
        assert loaded["t"].tolist() == [[0, 50], [1, 4], [2, 5]]
        assert loaded["same"].tolist() == loaded["base"].tolist()
        assert loaded["t"].stride() == (1, 3)


def test_state_dict_of_tied_parameters(tmp_path: Path) -> None:
    model = Tied().to("lazy")
    path = tmp_path / "model.pt"
    torch.save(model.state_dict(), path)
    state = torch.load(path)
    state["head.weight"].zero_()
    assert state["embedding.weight"].abs().sum().item() == 0
    other = Tied().to("lazy")
    other.load_state_dict(torch.load(path))
    assert_same(list(other.parameters()), [p.cpu().detach().requires_grad_() for p in model.parameters()])  # fmt: skip


def test_deepcopy_keeps_sharing() -> None:
    model = copy.deepcopy(Tied().to("lazy"))
    assert model.head.weight is model.embedding.weight
