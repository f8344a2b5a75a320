"""TorchScript modules can be moved to device `lazy` and back, also through files."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from comparison import assert_close
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
    assert_close(result, expected)


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


def to_stream(module: torch.jit.ScriptModule, path: Path) -> None:
    with open(path, "wb") as file:
        torch.jit.save(module, file)


WRITERS: dict[str, Callable[[torch.jit.ScriptModule, Path], object]] = {
    "torch.jit.save": lambda module, path: torch.jit.save(module, str(path)),
    "torch.jit.save to a stream": to_stream,
    "module.save": lambda module, path: module.save(str(path)),
    "module.save_to_buffer": lambda module, path: path.write_bytes(module.save_to_buffer()),
}  # fmt: skip


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
@pytest.mark.parametrize("kind", MAKERS)
def test_file(kind: str, write: Callable, tmp_path: Path) -> None:
    module, expected = made(kind)
    module.to("lazy")
    path = tmp_path / "module.pt"
    write(module, path)
    for place in (None, "cpu", "lazy"):
        loaded = torch.jit.load(path, map_location=place)
        assert loaded.norm.running_mean.device.type == (place or "lazy")
        check(loaded, expected)
    check(module, expected)


@pytest.mark.parametrize("is_positional", [False, True])
def test_file_with_tensors_on_two_devices(is_positional: bool) -> None:
    module, _ = made("script")
    module.norm.to("lazy")
    file = io.BytesIO()
    extra = {"note.txt": "text"}
    if is_positional:
        torch.jit.save(module, file, extra)
    else:
        torch.jit.save(module, file, _extra_files=extra)
    file.seek(0)
    extra = {"note.txt": ""}
    if is_positional:
        loaded = torch.jit.load(file, None, extra, False)
    else:
        loaded = torch.jit.load(file, _extra_files=extra)
    assert extra == {"note.txt": b"text"}
    devices = {name: x.device.type for name, x in loaded.state_dict().items()}
    assert devices == {name: x.device.type for name, x in module.state_dict().items()}
    assert set(devices.values()) == {"cpu", "lazy"}


def test_file_of_a_module_on_the_cpu() -> None:
    module, expected = made("script")
    file = io.BytesIO()
    torch.jit.save(module, file)
    file.seek(0)
    check(torch.jit.load(file), expected)


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
    assert_close(traced(x), module(x))
    other = x + 1
    assert_close(traced(other), module(other))
    script = torch.jit.load(io.BytesIO(_saved(traced)), map_location="cpu")
    assert_close(script(other.cpu()), module(other))


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
