"""List ops whose tensors share memory run one element after the other, as in eager."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from comparison import assert_close
from torch import Tensor


def _the_same_twice(x: Tensor, y: Tensor) -> None:
    torch._foreach_add_([x, x], 1)


def _overlapping_views(x: Tensor, y: Tensor) -> None:
    torch._foreach_add_([x[:3], x[1:]], 1)


def _exchanged(x: Tensor, y: Tensor) -> None:
    torch._foreach_add_([x, y], [y, x])


def _scaled(x: Tensor, y: Tensor) -> None:
    torch._foreach_mul_([x, x], torch.tensor(3.0, device=x.device))


def _with_numbers(x: Tensor, y: Tensor) -> None:
    torch._foreach_mul_([x, y, x], [2.0, 3.0, 4.0])


def _quotients(x: Tensor, y: Tensor) -> None:
    torch._foreach_addcdiv_([x, x], [x, y], [y, x], 0.5)


def _clipped(x: Tensor, y: Tensor) -> None:
    weight = torch.nn.Parameter(y)
    weight.grad = x
    torch.nn.utils.clip_grad_norm_([weight, weight], 1.0)


CALLS = [
    _the_same_twice,
    _overlapping_views,
    _exchanged,
    _scaled,
    _with_numbers,
    _quotients,
    _clipped,
]


@pytest.mark.parametrize("grad", [True, False])
@pytest.mark.parametrize("call", CALLS)
def test_shared_elements(call: Callable, grad: bool) -> None:
    results = []
    for device in ("cpu", "lazy"):
        x = torch.tensor([1.0, 2.0, 3.0, 4.0], device=device)
        y = torch.tensor([5.0, 6.0, 7.0, 8.0], device=device)
        with torch.set_grad_enabled(grad):
            call(x, y)
        results.append([x.cpu(), y.cpu()])
    assert_close(*results)
