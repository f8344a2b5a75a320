"""`tensor.data = other` moves a tensor between the CPU and device lazy, as between the
CPU and a GPU: the Python object stays the same, and its gradient, hooks and optimizers
remain valid."""

from __future__ import annotations

import pytest
import torch
from torch import nn

DIRECTIONS = [("cpu", "lazy"), ("lazy", "cpu")]


def loss(parameter: torch.Tensor) -> torch.Tensor:
    return (parameter * parameter).sum()


@pytest.mark.parametrize("start, end", DIRECTIONS)
def test_parameter(start, end):
    parameter = nn.Parameter(torch.ones(3, device=start))
    optimizer = torch.optim.SGD([parameter], lr=0.25)
    loss(parameter).backward()
    gradient, calls = parameter.grad, []
    parameter.register_hook(lambda _: calls.append("gradient"))
    parameter.register_post_accumulate_grad_hook(lambda _: calls.append("sum"))
    parameter.data = parameter.data.to(end)
    assert type(parameter) is nn.Parameter and parameter.device.type == end
    loss(parameter).backward()
    optimizer.step()
    assert parameter.grad is gradient and gradient.device.type == end
    assert gradient.tolist() == [4, 4, 4] and parameter.tolist() == [0, 0, 0]
    assert calls == ["gradient", "sum"]


@pytest.mark.parametrize("start, end", DIRECTIONS)
def test_value_with_a_graph(start, end):
    parameter = nn.Parameter(torch.ones(3, device=start))
    parameter.data = parameter.to(end)
    loss(parameter).backward()
    assert parameter.grad.tolist() == [2, 2, 2] and parameter.grad.device.type == end


@pytest.mark.parametrize("start, end", DIRECTIONS)
def test_view_and_its_base(start, end):
    x = torch.arange(4.0, device=start)
    part = x[1:3]
    x.data = torch.zeros(2, dtype=torch.float64, device=end)
    assert x.tolist() == [0, 0] and x.dtype == torch.float64
    assert part.tolist() == [1, 2] and part.device.type == start
    part.data = torch.ones(1, device=end)
    assert part.tolist() == [1] and part.device.type == end


def test_module():
    module = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    for tensor in [*module.parameters(), *module.buffers()]:
        tensor.data = tensor.data.to("lazy")
    module(torch.ones(3, 2, device="lazy")).sum().backward()
    assert all(p.grad.device.type == "lazy" for p in module.parameters())
    assert module[1].num_batches_tracked.item() == 1


def test_graph_that_is_used_afterwards():
    """If an autograd graph uses the tensor, the assignment or the later backward pass
    raises an error: the gradient would get lost in the old object."""
    torch.ones((), device="lazy")
    parameter = nn.Parameter(torch.ones(3))
    square = loss(parameter)
    with pytest.raises(RuntimeError, match="while an autograd graph uses the tensor"):
        parameter.data = parameter.data.to("lazy")
    assert square.backward() is None and parameter.grad.tolist() == [2, 2, 2]
    double = (parameter * 2).sum()
    parameter.data = parameter.data.to("lazy")
    with pytest.raises(RuntimeError, match="while an autograd graph uses the tensor"):
        double.backward()


def test_inference_tensors_and_parameters():
    """As with tensors of the CPU, one of the two may be an inference tensor (adapters are
    merged into a model's weights in this way)."""
    parameter = nn.Parameter(torch.ones(3, device="lazy"))
    with torch.inference_mode():
        parameter.data = parameter.data * 2
        made_inside = torch.zeros(3, device="lazy")
    assert parameter.tolist() == [2, 2, 2] and parameter.is_inference()
    parameter.data = torch.ones(3, device="lazy")
    assert not parameter.is_inference()
    loss(parameter).backward()
    assert parameter.grad.tolist() == [2, 2, 2]
    parameter.data = made_inside
    assert parameter.tolist() == [0, 0, 0] and parameter.is_inference()


def test_conjugate_and_negative_bits():
    x = torch.tensor([1 + 2j], device="lazy")
    y = torch.zeros(1, dtype=torch.complex64, device="lazy")
    y.data = x.conj()
    assert y.is_conj() and y.tolist() == [1 - 2j] and (y + 1).tolist() == [2 - 2j]
    y.mul_(2)
    assert x.tolist() == [2 + 4j]
    y.data = x
    assert not y.is_conj() and y.tolist() == [2 + 4j]
    z = torch.zeros(1, device="lazy")
    z.data = x.conj().imag
    assert z.is_neg() and z.tolist() == [-4]


def test_errors_of_torch():
    x = torch.ones(2, device="lazy")
    with pytest.raises(RuntimeError, match="incompatible tensor type"):
        x.data = torch.ones(2, device="meta")
    with pytest.raises(RuntimeError, match="incompatible tensor type"):
        x.data = torch.ones(2, device="lazy").to_sparse()
    assert x.tolist() == [1, 1]
    with pytest.raises(TypeError, match="Variable data has to be a tensor"):
        x.data = 3
