"""Tensor subclasses with a `__torch_dispatch__` get the ops on lazy tensors, as on CPU
tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from comparison import assert_close
from torch import nn
from torch.nn import functional as F

aten = torch.ops.aten


class Negated(torch.Tensor):
    """Negates products, and lists the ops that it gets."""

    ops: list[str]

    @classmethod
    def __torch_dispatch__(
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        cls.ops.append(str(func))
        result = super().__torch_dispatch__(func, types, args, kwargs or {})
        if func is aten.detach.default:
            return result.as_subclass(cls)  # as nn.Parameter requires
        return result.neg() if func is aten.mul.Tensor else result


def _plain(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.as_subclass(torch.Tensor).detach()


def _written(x: torch.Tensor) -> torch.Tensor:
    x.add_(1)
    x.view(-1)[1:].mul_(3)
    return x * 2


def _trained(x: torch.Tensor) -> torch.Tensor:
    weight = nn.Parameter(_plain(x).clone().as_subclass(Negated))
    optimizer = torch.optim.Adam([weight], lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        (weight * _plain(x) + F.linear(weight, _plain(x))).square().sum().backward()
        optimizer.step()
    return weight


CASES: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "product": lambda x: x * 2,
    "composite": lambda x: F.linear(x, _plain(x)) * x.softmax(-1) + x * 2,
    "written": _written,
    "list": lambda x: torch.cat([_plain(x), x * 2]) + torch.stack([x, x]).sum(),
    "trained": _trained,
}


@pytest.mark.parametrize("make", ["as_subclass", "_make_subclass"])
@pytest.mark.parametrize("name", CASES)
def test_gets_ops(name: str, make: str) -> None:
    results, ops = [], []
    for device in ("cpu", "lazy"):
        torch.manual_seed(0)
        data = torch.randn(3, 3).to(device)
        if make == "as_subclass":
            x = data.as_subclass(Negated)
        else:
            x = torch.Tensor._make_subclass(Negated, data)
        Negated.ops = []
        y = CASES[name](x)
        ops.append([op for op in Negated.ops if op != "aten.detach.default"])
        results.append(_plain(y).cpu())
    assert_close(results[1], results[0])
    assert ops[0] == ops[1]
    assert "aten.mul.Tensor" in ops[0]
