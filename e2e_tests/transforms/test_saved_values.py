"""Ops save the same values for their gradients as eager: a second backward, or a write
to a result or an operand in between, succeeds or fails as in eager."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from comparison import assert_close
from torch.utils._pytree import tree_leaves


def _resized(rank: int, mode: str, **options: Any) -> tuple[tuple[int, ...], Callable]:
    return (1, 2, *[4] * rank), lambda x: F.interpolate(
        x, scale_factor=2.0, mode=mode, **options
    )


#: For each op: the sizes of its operand, and the function that calls it.
OPS: dict[str, tuple[tuple[int, ...], Callable]] = {
    "nearest 1d": _resized(1, "nearest"),
    "nearest 2d": _resized(2, "nearest"),
    "nearest 3d": _resized(3, "nearest"),
    "exact 1d": _resized(1, "nearest-exact"),
    "exact 3d": _resized(3, "nearest-exact"),
    "linear": _resized(1, "linear"),
    "bilinear": _resized(2, "bilinear"),
    "bilinear, corners": _resized(2, "bilinear", align_corners=True),
    "bicubic": _resized(2, "bicubic"),
    "trilinear": _resized(3, "trilinear"),
    "avg_pool3d": ((1, 2, 4, 4, 4), lambda x: F.avg_pool3d(x, 2)),
    "adaptive_avg_pool3d": (
        (1, 2, 5, 4, 4),
        lambda x: F.adaptive_avg_pool3d(x, (2, 3, 1)),
    ),
    "unfold": ((1, 2, 4, 4), lambda x: F.unfold(x, 2)),
    "fold": ((1, 8, 9), lambda x: F.fold(x, (4, 4), 2)),
    "max_pool3d": ((1, 2, 4, 4, 4), lambda x: F.max_pool3d(x, 2, return_indices=True)),
    "overlapping max_pool3d": (
        (2, 5, 5, 5),
        lambda x: F.max_pool3d(x, 3, 1, padding=1, return_indices=True),
    ),
    "adaptive_max_pool3d": (
        (1, 2, 5, 4, 4),
        lambda x: F.adaptive_max_pool3d(x, 2, return_indices=True),
    ),
    "max_pool2d": ((1, 2, 4, 4), lambda x: F.max_pool2d(x, 2, return_indices=True)),
    "topk": ((3, 4), lambda x: x.topk(2)),
    "gather": ((3, 4), lambda x: x.gather(1, torch.zeros_like(x).long())),
    "exp": ((3,), lambda x: x.exp()),
    "square": ((3,), lambda x: x.square()),
    "sum": ((3, 2), lambda x: x.sum(0)),
    "permute": ((3, 2), lambda x: x.t().clone()),
    "softmax": ((3, 2), lambda x: x.softmax(1)),
    "cumsum": ((3, 2), lambda x: x.cumsum(1)),
}


def _outcome(device: str, name: str, between: Callable) -> Any:
    sizes, op = OPS[name]
    x = torch.linspace(-1, 1, torch.Size(sizes).numel()).sin().reshape(sizes)
    x = x.to(device).requires_grad_()
    operand = x * 1
    outputs = tree_leaves(op(operand))
    result = outputs[0]
    gradient = torch.linspace(0, 1, result.numel()).reshape(result.shape).to(device)
    try:
        between(result, gradient, operand, outputs)
        result.backward(gradient)
    except RuntimeError as error:
        return str(error)[:40]
    return x.grad.cpu()


def _backward_before(result: torch.Tensor, gradient: torch.Tensor, operand: torch.Tensor, _: list) -> None:  # fmt: skip
    torch.autograd.grad(result, operand, gradient)


def _write_operand(result: torch.Tensor, gradient: torch.Tensor, operand: torch.Tensor, _: list) -> None:  # fmt: skip
    operand.detach().add_(1)


def _write_result(_: torch.Tensor, gradient: torch.Tensor, operand: torch.Tensor, outputs: list) -> None:  # fmt: skip
    outputs[-1].detach().add_(1)


BETWEEN = {
    "a backward before": _backward_before,
    "the operand written": _write_operand,
    "the last result written": _write_result,
    "nothing": lambda *_: None,
}


@pytest.mark.parametrize("between", BETWEEN.values(), ids=BETWEEN)
@pytest.mark.parametrize("name", OPS)
def test_as_eager(name: str, between: Callable) -> None:
    expected, actual = (_outcome(device, name, between) for device in ("cpu", "lazy"))
    if isinstance(expected, str) or isinstance(actual, str):
        assert isinstance(actual, type(expected)) and actual == expected
    else:
        assert_close(actual, expected, rtol=1e-4, atol=1e-5)
