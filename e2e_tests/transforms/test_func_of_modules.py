"""Transforms of `torch.func` have eager's results for modules with convolutions, norms,
attention, buffers and random ops."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from comparison import compare
from torch import nn
from torch.func import functional_call, grad, hessian, jacfwd, jacrev, jvp, vjp, vmap


def image() -> torch.Tensor:
    return torch.linspace(-1, 2, 32).reshape(2, 1, 4, 4)


def network(device: torch.device) -> nn.Module:
    torch.manual_seed(1)
    layers = [nn.Conv2d(1, 4, 3, padding=1), nn.GroupNorm(2, 4), nn.ReLU()]
    return nn.Sequential(
        *layers, nn.MaxPool2d(2), nn.Flatten(), nn.Linear(16, 3)
    ).to(device)  # fmt: skip


def encoder(device: torch.device) -> nn.Module:
    torch.manual_seed(1)
    return nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, batch_first=True).to(device)


def parameters_of(module: nn.Module) -> dict[str, torch.Tensor]:
    return {name: p.detach() for name, p in module.named_parameters()}


def gradients_per_sample(x: torch.Tensor) -> list:
    net = network(x.device)

    def loss(
        parameters: dict, sample: torch.Tensor, label: torch.Tensor
    ) -> torch.Tensor:
        scores = functional_call(net, parameters, (sample[None],))
        return F.cross_entropy(scores, label[None])

    labels = torch.tensor([0, 2]).to(x.device)
    return [*vmap(grad(loss), (None, 0, 0))(parameters_of(net), x, labels).values()]


def jacobians(x: torch.Tensor) -> list:
    net = network(x.device)
    return [jacrev(net)(x[:1]).detach(), jacfwd(net)(x[:1]).detach()]


def directions(x: torch.Tensor) -> list:
    results = jvp(network(x.device), (x,), (x.cos(),))
    value, pull = vjp(encoder(x.device), x[:, 0])
    return [t.detach() for t in (*results, value, *pull(value))]


def second_derivatives_of_parameters(x: torch.Tensor) -> list:
    torch.manual_seed(1)
    net = nn.Sequential(nn.Linear(4, 2), nn.Softplus(), nn.Linear(2, 1)).to(x.device)
    loss = lambda p: functional_call(net, p, (x[0, 0],)).square().sum()  # noqa: E731
    result = hessian(loss)(parameters_of(net))
    return [second for first in result.values() for second in first.values()]


def buffers(x: torch.Tensor) -> list:
    norm = nn.BatchNorm1d(4).to(x.device)
    given = {name: b.clone() for name, b in norm.named_buffers()}
    y = functional_call(norm, (parameters_of(norm), given), (x[0, 0],))
    return [y, *given.values(), *(b.clone() for b in norm.buffers())]


def random_ops(x: torch.Tensor) -> list:
    return [
        vmap(lambda row: row + torch.rand_like(row), randomness="different")(x),
        vmap(lambda row: row * torch.randn(4, device=row.device), randomness="same")(x),
        vmap(lambda row: F.dropout(row, 0.5), randomness="different")(x),
    ]


def batched_ops(x: torch.Tensor) -> list:
    x = x.unsqueeze(1)
    return [
        vmap(F.conv2d)(x, x[..., :2, :2]),
        vmap(lambda v: F.layer_norm(v, (4,)))(x),
        vmap(lambda v: F.batch_norm(v, None, None, training=True))(x),
        vmap(lambda v: F.interpolate(v, scale_factor=2.0))(x),
        vmap(lambda v: v.sort(-1)[0])(x),
        vmap(lambda v: F.scaled_dot_product_attention(v, v, v))(x),
        vmap(lambda v: v.clone().add_(1).mul_(v), chunk_size=1)(x),
        vmap(lambda v, i: v[0, 0, i])(x, torch.tensor([2, 0]).to(x.device)),
    ]


def values_in_a_map(x: torch.Tensor) -> list:
    return [vmap(lambda row: row * row.sum().item())(x)]


PROGRAMS: list[Callable] = [
    gradients_per_sample,
    jacobians,
    directions,
    second_derivatives_of_parameters,
    buffers,
    random_ops,
    batched_ops,
    values_in_a_map,
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_as_eager(program: Callable) -> None:
    compare(program, image())
