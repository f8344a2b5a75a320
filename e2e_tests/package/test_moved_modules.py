"""A module that moves to device lazy or back keeps its Parameter objects with all that
belongs to them, as between the CPU and CUDA."""

from __future__ import annotations

import copy
import gc
import sys
import weakref

import pytest
import torch
import torch_ltc
from torch import nn


class Tagged(nn.Parameter):
    """A parameter with attributes, like geoopt's ManifoldParameter."""

    def __new__(cls, data: torch.Tensor, requires_grad: bool = True, tag: str = ""):
        parameter = torch.Tensor._make_subclass(cls, data, requires_grad)
        parameter.tag = tag
        return parameter


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tagged = Tagged(torch.ones(2, 2), tag="sphere")
        self.plain = nn.Parameter(torch.ones(2))
        self.plain._no_weight_decay = True
        self.frozen = nn.Parameter(torch.ones(2), requires_grad=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x @ self.tagged * self.plain + self.frozen


def _gradients(model: Model) -> list[list[float]]:
    model.zero_grad()
    x = torch.tensor([[1.0, 3.0]], device=model.plain.device)
    model(x).square().sum().backward()
    return [p.grad.tolist() for p in model.parameters() if p.requires_grad]


@pytest.mark.parametrize("way", ["to", "cpu and back", "dtype", "half way"])
def test_classes_and_attributes(way: str) -> None:
    model = Model()
    parameters = list(model.parameters())
    if way == "dtype":
        model.to("lazy", torch.float64)
    elif way == "half way":
        model.tagged = Tagged(torch.ones(2, 2).to("lazy"), tag="sphere")
        parameters = list(model.parameters())
        model.to("lazy")
    else:
        model.to("lazy")
    if way == "cpu and back":
        model.cpu().to("lazy")
    assert all(a is b for a, b in zip(model.parameters(), parameters, strict=True))
    assert {p.device.type for p in model.parameters()} == {"lazy"}
    assert type(model.tagged) is Tagged and model.tagged.tag == "sphere"
    assert type(model.plain) is nn.Parameter and model.plain._no_weight_decay
    assert not model.frozen.requires_grad
    assert model.plain.requires_grad and model.tagged.requires_grad
    assert all(p.is_leaf for p in parameters)
    assert type(copy.deepcopy(model).tagged) is Tagged
    if way == "dtype":
        assert model.plain.dtype == torch.float64


def test_hooks() -> None:
    """Hooks that were registered before the move run, and their handles remove them."""
    results = {}
    for device in ("cpu", "lazy"):
        model, calls = Model(), []
        handle = model.plain.register_hook(lambda g: g * 2)
        model.tagged.register_hook(lambda g: g + 1)
        after = model.plain.register_post_accumulate_grad_hook(
            lambda p, calls=calls: calls.append(type(p))
        )
        model.to(device)
        first = _gradients(model)
        handle.remove()
        second = _gradients(model)
        after.remove()
        results[device] = (first, second, _gradients(model), calls)
    assert results["lazy"] == results["cpu"]


def test_gradients_and_references() -> None:
    model = Model()
    wanted = _gradients(model)
    gradient, alive = model.plain.grad, weakref.ref(model.plain)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    model.to("lazy")
    assert model.plain.grad is gradient and gradient.tolist() == wanted[1]
    assert alive() is model.plain
    expected = (torch.ones(2) - 0.5 * gradient.cpu()).tolist()
    optimizer.step()
    assert model.plain.tolist() == expected


@pytest.mark.parametrize("are_saved", [False, True])
def test_backward_of_an_old_graph(are_saved: bool) -> None:
    """An autograd graph of the parameters' CPU values may still be alive when they move."""
    model = Model()
    parameters = list(model.parameters())
    optimizer = torch.optim.SGD(parameters, lr=0.5)
    # The graph saves the parameters if the input needs a gradient.
    x = torch.ones(1, 2, requires_grad=are_saved)
    old = (model(x) * model.frozen).square().sum()
    model.to("lazy")
    assert all(a is b for a, b in zip(model.parameters(), parameters, strict=True))
    with pytest.raises(RuntimeError, match=r"call backward\(\) before to"):
        old.backward()
    before = model.plain.tolist()
    assert len(_gradients(model)) == 2
    optimizer.step()
    assert model.plain.tolist() != before


@pytest.mark.parametrize("is_made", [False, True])
@pytest.mark.parametrize("is_moved", [False, True])
def test_inference_mode(is_made: bool, is_moved: bool) -> None:
    """A move in inference mode doesn't make parameters inference tensors, nor vice versa."""
    with torch.inference_mode(is_made):
        model = Model()
    with torch.inference_mode(is_moved):
        model.to("lazy")
    assert {p.is_inference() for p in model.parameters()} == {is_made}
    if not is_made:
        assert len(_gradients(model)) == 2


def test_moves_while_torchs_profiler_runs() -> None:
    """The profiler holds weak references to the operands of ops."""
    with torch.profiler.profile(record_shapes=True):
        model = Model()
        parameters = list(model.parameters())
        optimizer = torch.optim.SGD(parameters, lr=0.5)
        _gradients(model)
        for device in ("lazy", "cpu", "lazy"):
            model.to(device)
            _gradients(model)
    before = model.plain.tolist()
    optimizer.step()
    assert model.plain.tolist() != before
    assert all(a is b for a, b in zip(model.parameters(), parameters, strict=True))


def test_exchanged_tensors_are_destroyed() -> None:
    counts = []
    for has_view in (False, True):
        first, second = torch.ones(2), torch.zeros(3, device="lazy")
        held = second.view(3) if has_view else None
        weak = [weakref.ref(first), weakref.ref(second)]
        torch._C._swap_tensor_impl(first, second)
        assert first.tolist() == [0.0] * 3 and second.tolist() == [1.0] * 2
        counts.append([sys.getrefcount(first), sys.getrefcount(second)])
        del first, second
        gc.collect()
        assert weak[1]() is None
        assert has_view or weak[0]() is None
        del held
        torch_ltc.mark_step()
        gc.collect()
        assert weak[0]() is None
    assert counts[0] == [2, 2]
