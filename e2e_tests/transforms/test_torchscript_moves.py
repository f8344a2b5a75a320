"""TorchScript modules can be moved to device `lazy` and back, also through files."""

from __future__ import annotations

import io
from collections.abc import Callable

import pytest
import torch
from torch import nn

MAKERS: dict[str, Callable] = {
    "script": torch.jit.script,
    "trace": lambda module: torch.jit.trace(module, torch.randn(2, 3)),
}


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(3, 3, bias=False)
        self.second = nn.Linear(3, 3)
        self.second.weight = self.first.weight
        self.norm = nn.BatchNorm1d(3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(self.second(self.first(x)))


def made(kind: str) -> tuple[torch.jit.ScriptModule, torch.Tensor]:
    torch.manual_seed(0)
    module = Tied().eval()
    expected = module(torch.ones(2, 3)).detach()
    return MAKERS[kind](module), expected


def check(module: torch.jit.ScriptModule, expected: torch.Tensor) -> None:
    device = module.norm.running_mean.device
    result = module(torch.ones(2, 3, device=device)).detach().cpu()
    torch.testing.assert_close(result, expected)


@pytest.mark.parametrize("kind", MAKERS)
def test_moves(kind: str) -> None:
    module, expected = made(kind)
    assert module.to("lazy") is module
    assert {p.device.type for p in module.parameters()} == {"lazy"}
    assert module.first.weight is module.second.weight
    check(module, expected)
    optimizer = torch.optim.SGD(module.parameters(), 0.1)
    module(torch.ones(2, 3, device="lazy")).sum().backward()
    optimizer.step()
    module.to("cpu")
    assert module.norm.running_mean.device.type == "cpu"
    assert not torch.equal(module(torch.ones(2, 3)), expected)


@pytest.mark.parametrize("kind", MAKERS)
def test_file(kind: str) -> None:
    module, expected = made(kind)
    module.to("lazy")
    file = io.BytesIO()
    torch.jit.save(module, file)
    for place in (None, "cpu", "lazy"):
        file.seek(0)
        loaded = torch.jit.load(file, map_location=place)
        assert loaded.norm.running_mean.device.type == (place or "cpu")
        check(loaded, expected)
    check(module, expected)


@pytest.mark.parametrize("is_transposed", [False, True])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_convolutions_traced_on_the_device(rank: int, is_transposed: bool) -> None:
    """A trace contains `_convolution`, which eager's `convolution` calls, and has the
    module's results on both devices."""
    kind = f"Conv{'Transpose' if is_transposed else ''}{rank}d"
    module = nn.Sequential(getattr(nn, kind)(2, 3, 3, stride=2), nn.ReLU()).to("lazy")
    x = torch.randn(1, 2, *[7] * rank, device="lazy")
    traced = torch.jit.trace(module, x)
    assert "aten::_convolution" in str(traced.inlined_graph)
    torch.testing.assert_close(traced(x).cpu(), module(x).cpu())
    other = x + 1
    torch.testing.assert_close(traced(other).cpu(), module(other).cpu())
    script = torch.jit.load(io.BytesIO(_saved(traced)), map_location="cpu")
    torch.testing.assert_close(script(other.cpu()), module(other).cpu())


def test_indices_in_scripts() -> None:
    """TorchScript's interpreter passes lists of indices with another element type."""

    @torch.jit.script
    def program(x: torch.Tensor, i: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        y = x.clone()
        y[i] = 7.0
        y[mask] += 1.0
        return torch.cat([x[i], x[:, i], x[mask], y, y[i, i][None]])

    results = []
    for device in ("cpu", "lazy"):
        x = torch.arange(9.0, device=device).reshape(3, 3)
        i = torch.tensor([2, 0, 1], device=device)
        mask = torch.tensor([True, False, True], device=device)
        results.append(program(x, i, mask).cpu())
    assert torch.equal(*results)


def _saved(module: torch.jit.ScriptModule) -> bytes:
    file = io.BytesIO()
    torch.jit.save(module, file)
    return file.getvalue()
