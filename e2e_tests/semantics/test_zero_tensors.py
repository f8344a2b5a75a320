"""A gradient that is zero by its formula (`_efficientzerotensor`) stays zero when it is
multiplied by infinity or NaN, as in eager."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from comparison import compare

SPECIAL = (math.inf, -math.inf, math.nan, 0.0, 2.0)


def zeros(x: torch.Tensor) -> torch.Tensor:
    return torch._efficientzerotensor(5, device=x.device)


def second_derivative(x: torch.Tensor) -> list[torch.Tensor]:
    x = x.detach().requires_grad_()
    (first,) = torch.autograd.grad(x.abs().mul(x.detach()).sum(), x, create_graph=True)
    return [first, *torch.autograd.grad(first.square().sum(), x)]


def hessian(x: torch.Tensor) -> torch.Tensor:
    return torch.func.hessian(lambda v: (v.sign() * v.abs() * x).sum())(x)


PRODUCTS: dict[str, Callable[[torch.Tensor], object]] = {
    "mul": lambda x: zeros(x) * x,
    "mul by a number": lambda x: zeros(x) * math.inf,
    "div": lambda x: zeros(x) / x,
    "dot": lambda x: [torch.dot(zeros(x), x), torch.dot(x, zeros(x))],
    "vdot": lambda x: torch.vdot(zeros(x), x),
    "view": lambda x: zeros(x).view(5, 1).t().expand(2, 5)[1:] * x,
    "conj": lambda x: zeros(x).to(torch.complex64).conj() * x,
    "detach": lambda x: zeros(x).detach() * x,
    "add": lambda x: [zeros(x) + x, x - zeros(x), zeros(x) + zeros(x)],
    "exp": lambda x: zeros(x).exp() * x,
    "clone": lambda x: zeros(x).clone().add_(1) * x,
    "write": lambda x: zeros(x).add_(1),
    "second derivative": second_derivative,
    "hessian": hessian,
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_products(name: str) -> None:
    compare(PRODUCTS[name], torch.tensor(SPECIAL))


def test_what_is_a_zero_tensor() -> None:
    def answers(device: str) -> list[bool]:
        x = torch.tensor(SPECIAL).to(device)
        zero = zeros(x)
        views = [zero[1:], zero.view(5, 1), zero.unsqueeze(0).t(), zero.conj()]
        results = [zero * x, x / (zero + 1), zero + zero, zero @ x, zero.clone()]
        return [tensor._is_zerotensor() for tensor in [zero, *views, *results]]

    assert answers("lazy") == answers("cpu")
