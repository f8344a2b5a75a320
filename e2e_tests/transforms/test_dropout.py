"""Dropout inside the transforms of `torch.func` draws eager's masks."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
import torch
import torch.nn.functional as F
from comparison import compare
from torch.func import grad, hessian, jacfwd, jvp, linearize, vmap


def cube() -> torch.Tensor:
    return torch.linspace(1, 2, 60).reshape(4, 3, 5)


def rows(x: torch.Tensor) -> torch.Tensor:
    return x[:2, :, 0]


def drop(x: torch.Tensor) -> torch.Tensor:
    return F.dropout(x, 0.5)


def numbered(x: torch.Tensor) -> torch.Tensor:
    """Returns a sum in which each element has another weight."""
    return (x * torch.arange(1.0, x.numel() + 1, device=x.device).view(x.shape)).sum()


#: Programs by the `vmap` that they call, which has a randomness.
BATCHED: dict[str, Callable[[Callable, torch.Tensor], object]] = {
    "first dim": lambda vmap, x: vmap(drop)(x),
    "inner dim": lambda vmap, x: vmap(drop, in_dims=1, out_dims=2)(x),
    "last dim": lambda vmap, x: vmap(drop, in_dims=2)(x),
    "transposed": lambda vmap, x: vmap(drop)(x.mT),
    "transposed element": lambda vmap, x: vmap(lambda v: drop(v.t()))(x),
    "expanded": lambda vmap, x: vmap(drop, in_dims=1)(x[:1].expand(3, 3, 5)),
    "captured tensor": lambda vmap, x: vmap(lambda v: drop(rows(x)) + v.sum())(x),
    "nested": lambda vmap, x: vmap(vmap(drop, in_dims=1), in_dims=1)(x),
    "captured by the inner one": lambda vmap, x: vmap(
        lambda u: vmap(lambda v: drop(u) + v.sum())(rows(x)), in_dims=2
    )(x),
    "gradient inside": lambda vmap, x: vmap(
        grad(lambda v: numbered(drop(v.t()))), in_dims=1
    )(x),
    "gradient outside": lambda vmap, x: grad(
        lambda x: numbered(vmap(drop, in_dims=1)(x))
    )(x),
    "bfloat16": lambda vmap, x: vmap(drop, in_dims=1)(x.bfloat16()),
    "integers": lambda vmap, x: vmap(drop, in_dims=1)(x.long()),
    "complex": lambda vmap, x: vmap(drop, in_dims=1)(x + 0j),
    "empty": lambda vmap, x: vmap(drop, in_dims=1)(x[:0]),
    "everything": lambda vmap, x: vmap(lambda v: F.dropout(v, 1.0), in_dims=1)(x),
    "written": lambda vmap, x: vmap(
        lambda v: F.dropout(v.clone(), 0.5, inplace=True), in_dims=1
    )(x),
}  # fmt: skip


@pytest.mark.parametrize("randomness", ["different", "same", "error"])
@pytest.mark.parametrize("name", BATCHED)
def test_batches(name: str, randomness: str) -> None:
    def program(x: torch.Tensor) -> list:
        result = BATCHED[name](partial(vmap, randomness=randomness), x)
        return [result, torch.get_rng_state()]

    compare(program, cube())


DERIVATIVES: dict[str, Callable[[torch.Tensor], object]] = {
    "grad": lambda x: grad(lambda x: numbered(drop(x.mT)))(x),
    "grad of grad": lambda x: grad(
        lambda x: numbered(grad(lambda x: numbered(drop(x.mT) ** 3))(x))
    )(x),
    "jvp": lambda x: jvp(lambda x: drop(x.movedim(0, 2)), (x,), (x,)),
    "hessian": lambda x: hessian(lambda x: numbered(drop(x.t()) ** 3))(rows(x)),
    "jacfwd": lambda x: jacfwd(lambda x: drop(x.t()), randomness="same")(rows(x)),
    "linearize": lambda x: linearize(lambda x: drop(x.t()) ** 2, rows(x))[1](rows(x)),
}


@pytest.mark.parametrize("name", DERIVATIVES)
def test_derivatives(name: str) -> None:
    compare(lambda x: [DERIVATIVES[name](x), torch.get_rng_state()], cube())
