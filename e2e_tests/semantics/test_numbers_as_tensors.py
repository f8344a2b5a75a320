"""Tensors that torch creates from Python numbers behave like all other tensors."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from comparison import compare

MAKERS: dict[str, Callable[[torch.device], torch.Tensor]] = {
    "tensor": lambda d: torch.tensor([1.0, 2.0], device=d),
    "tensor of rank 0": lambda d: torch.tensor(5.0, device=d),
    "as_tensor": lambda d: torch.as_tensor([1.0, 2.0], device=d),
    "as_tensor of rank 0": lambda d: torch.as_tensor(5.0, device=d),
    "of numpy": lambda d: torch.as_tensor(np.ones(2, np.float32), device=d),
    "asarray": lambda d: torch.asarray([1.0, 2.0], device=d),
    "new_tensor": lambda d: torch.ones(2, device=d).new_tensor([3.0, 4.0]),
    "scalar_tensor": lambda d: torch.scalar_tensor(3.0, device=d),
}


@pytest.mark.parametrize("name", MAKERS)
def test_is_written_by_others(name: str) -> None:
    def program(x: torch.Tensor) -> list[torch.Tensor]:
        made = MAKERS[name](x.device)
        view = made.view(-1)
        made.add_(x.sum()).mul_(made)
        view[:1] = x[0]
        made.copy_(made + x.new_ones(made.shape))
        torch._foreach_add_([made], [x.sum().expand_as(made)])
        torch.add(made, 1, out=made)
        return [made, view, made.clone().fill_(x.max())]

    compare(program, torch.arange(3.0))


@pytest.mark.filterwarnings("ignore:An output with one or more")
@pytest.mark.parametrize("name", sorted({*MAKERS} - {"of numpy"}))
def test_grows_as_out(name: str) -> None:
    def program(x: torch.Tensor) -> list[torch.Tensor]:
        made, detached = (
            MAKERS[name](x.device),
            torch.empty(0, device=x.device).detach(),
        )
        torch.sum(x.expand(4, 3), 1, out=made)
        torch.cat([x, x], out=detached)
        detached.add_(1)
        return [made, made.resize_(2), detached]

    compare(program, torch.arange(3.0))


def test_is_a_leaf_that_trains() -> None:
    def program(x: torch.Tensor) -> list[torch.Tensor]:
        weight = torch.tensor([1.0, 2.0, 3.0], device=x.device, requires_grad=True)
        optimizer = torch.optim.Adam([weight], lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            (weight * x).square().sum().backward()
            optimizer.step()
        return [weight.detach(), weight.grad]

    compare(program, torch.arange(3.0))


def test_a_copy_of_a_tensor_warns() -> None:
    x = torch.ones(2, device="lazy")
    with pytest.warns(UserWarning, match=r"rather than tensor.new_tensor") as caught:
        x.new_tensor(x)
    assert caught[0].filename == __file__
