"""Hooks of all kinds, and autograd.Functions that mark operands and results, behave as in
eager."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from comparison import compare
from torch import nn


def x34() -> torch.Tensor:
    return torch.linspace(-1, 2, 12).reshape(3, 4)


def model(device: torch.device) -> nn.Sequential:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 2)).to(device)


def of_modules(x: torch.Tensor) -> list:
    net, seen = model(x.device), []
    net[0].register_forward_pre_hook(lambda m, a, k: ((a[0] * 2,), k), with_kwargs=True)
    net[0].register_forward_hook(
        lambda m, a, k, out: out + 1, with_kwargs=True, prepend=True
    )
    net[1].register_full_backward_pre_hook(lambda m, g: (g[0] * 2,))
    net[1].register_full_backward_hook(lambda m, gi, go: (gi[0] + 1,))
    net[2].register_forward_hook(
        lambda m, a, out: seen.append(out.detach()), always_call=True
    )
    net[2].register_full_backward_hook(lambda m, gi, go: seen.extend([*gi, *go]))
    inputs = x.detach().requires_grad_()
    net(inputs).sum().backward()
    return [*seen, inputs.grad, *(p.grad for p in net.parameters())]


def of_all_modules(x: torch.Tensor) -> list:
    seen: list = []
    of = nn.modules.module
    handles = [
        of.register_module_forward_hook(lambda m, a, out: seen.append(out.detach())),
        of.register_module_full_backward_hook(lambda m, gi, go: seen.append(go[0])),
        of.register_module_forward_pre_hook(lambda m, a: (a[0] * 1.5,)),
    ]
    try:
        model(x.device)(x).sum().backward()
    finally:
        for handle in handles:
            handle.remove()
    return seen


def of_tensors(x: torch.Tensor) -> list:
    inputs, seen = x.detach().requires_grad_(), []
    y = inputs * 2
    y.register_hook(lambda g: g * 3)
    y.retain_grad()
    y.mul_(3)
    y.register_hook(seen.append)
    z = y.exp()
    z.grad_fn.register_hook(lambda gi, go: seen.append(go[0]))
    z.grad_fn.register_prehook(lambda g: (g[0] * 3,))
    torch.autograd.graph.register_multi_grad_hook((inputs, z), seen.extend)
    z.sum().backward()
    return [*seen, inputs.grad, y.grad]


def step_in_backward(x: torch.Tensor) -> list:
    net = model(x.device)
    optimizers = {p: torch.optim.SGD([p], 0.1, momentum=0.9) for p in net.parameters()}

    def step(p: torch.Tensor) -> None:
        optimizers[p].step()
        optimizers[p].zero_grad()

    for p in net.parameters():
        p.register_post_accumulate_grad_hook(step)
    for _ in range(3):
        net(x).square().sum().backward()
    return [p.detach() for p in net.parameters()]


def order_of_parameters(x: torch.Tensor) -> list:
    """Returns the order in which parameters get their gradients."""
    layers = {
        "linear": model(x.device),
        "rows": nn.Sequential(nn.Unflatten(1, (2, 2)), nn.Linear(2, 3)),
        "without bias": nn.Linear(4, 2, bias=False),
        "transformer": nn.TransformerEncoderLayer(4, 2, 8, 0.0),
        "GRU": nn.GRU(4, 3, 2),
        "GRU cell": nn.GRUCell(4, 3),
        "LSTM cell": nn.LSTMCell(4, 3),
    }
    order: list = []
    for name, layer in layers.items():
        for parameter_name, p in layer.to(x.device).named_parameters():
            place = f"{name}: {parameter_name}"
            p.register_post_accumulate_grad_hook(lambda _, n=place: order.append(n))
        result = layer(x)
        (result[0] if isinstance(result, tuple) else result).square().sum().backward()
    return order


def of_optimizers(x: torch.Tensor) -> list:
    net, calls = model(x.device), []
    optimizer = torch.optim.Adam(net.parameters())
    optimizer.register_step_pre_hook(lambda *_: calls.append("before"))
    optimizer.register_step_post_hook(lambda *_: calls.append("after"))
    net(x).sum().backward()
    optimizer.step()
    other = torch.optim.Adam(net.parameters())
    other.load_state_dict(optimizer.state_dict())
    other.step()
    return [*calls, *(p.detach() for p in net.parameters())]


def saved_on_the_cpu(x: torch.Tensor) -> list:
    inputs = x.detach().requires_grad_()
    with torch.autograd.graph.save_on_cpu():
        y = (inputs @ inputs.t()).exp().sum()
    y.backward()
    return [inputs.grad]


class RowMaximum(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: torch.Tensor, scale: float):
        values, places = x.max(1)
        ctx.save_for_backward(places)
        ctx.mark_non_differentiable(places)
        ctx.set_materialize_grads(False)
        ctx.shape, ctx.scale = x.shape, scale
        return values * scale, places

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, gradient: torch.Tensor, _):
        (places,) = ctx.saved_tensors
        result = gradient.new_zeros(ctx.shape)
        return result.scatter_(1, places[:, None], gradient[:, None] * ctx.scale), None


class AddInPlace(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: torch.Tensor, y: torch.Tensor):
        ctx.mark_dirty(x.add_(y))
        return x, x * 2

    @staticmethod
    def backward(ctx, first: torch.Tensor, second: torch.Tensor):
        return first + 2 * second, first + 2 * second


def function_with_positions(x: torch.Tensor) -> list:
    inputs = x.detach().requires_grad_()
    values, places = RowMaximum.apply(inputs, 2.0)
    values.sum().backward()
    return [values.detach(), places, inputs.grad]


def once_differentiable_twice(x: torch.Tensor) -> list:
    inputs = x.detach().requires_grad_()
    values, _ = RowMaximum.apply(inputs * inputs, 2.0)
    (gradient,) = torch.autograd.grad(values.sum(), inputs, create_graph=True)
    gradient.sum().backward()
    return [inputs.grad]


def function_that_writes(x: torch.Tensor) -> list:
    inputs = x.detach().requires_grad_()
    y = inputs * 1
    first, second = AddInPlace.apply(y, inputs)
    (first * second).sum().backward()
    return [first.detach(), first is y, y._version, inputs.grad]


def function_that_writes_a_view(x: torch.Tensor) -> list:
    inputs = x.detach().requires_grad_()
    y = inputs * 1
    first, second = AddInPlace.apply(y[0], inputs[1])
    (first * second).sum().backward()
    return [y.detach(), inputs.grad]


def function_that_writes_a_leaf(x: torch.Tensor) -> list:
    inputs = x.detach().requires_grad_()
    return [AddInPlace.apply(inputs, inputs)]


PROGRAMS: list[Callable] = [
    of_modules,
    of_all_modules,
    of_tensors,
    step_in_backward,
    order_of_parameters,
    of_optimizers,
    saved_on_the_cpu,
    function_with_positions,
    once_differentiable_twice,
    function_that_writes,
    function_that_writes_a_view,
    function_that_writes_a_leaf,
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_as_eager(program: Callable) -> None:
    compare(program, x34())
