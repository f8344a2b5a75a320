"""Kernels that the backend registers at the autograd key act in torch.inference_mode, too,
where the dispatcher skips that key."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from comparison import compare
from torch.nn import functional as F

WRITES: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "copy_": lambda x: torch.zeros(5, 5).copy_(x),
    "copy_ with another dtype": lambda x: torch.zeros(5, 5).copy_(x.double()),
    "copy_ into a view": lambda x: torch.zeros(6, 5)[1:].copy_(x),
    "slice": lambda x: _assigned(torch.zeros(5, 5), slice(1, 3), x[:2]),
    "integers": lambda x: _assigned(
        torch.zeros(5).long(), slice(1, 3), x.argmax(1)[:2]
    ),
    "fill": lambda x: _assigned(torch.zeros(4), 1, x[0, 0]),
    "foreach": lambda x: _foreach_copy([torch.zeros(5), torch.zeros(5)], [x[0], x[1]]),
}


def _assigned(tensor: torch.Tensor, index: object, value: torch.Tensor) -> torch.Tensor:
    tensor[index] = value
    return tensor


def _foreach_copy(targets: list, sources: list) -> list:
    torch._foreach_copy_(targets, sources)
    return targets


def _row(x: torch.Tensor) -> torch.Tensor:
    return torch.zeros(1, dtype=torch.int64, device=x.device)


def _batch_norm_out(x: torch.Tensor) -> tuple:
    x = x.contiguous()  # eager writes undefined statistics for a view with gaps
    mean, variance = x.new_zeros(5), x.new_ones(5)
    out = [x.new_empty(0) for _ in range(3)]
    return torch.ops.aten._native_batch_norm_legit.out(
        x, None, None, mean, variance, True, 0.1, 1e-5,
        out=out[0], save_mean=out[1], save_invstd=out[2],
    ), mean, variance  # fmt: skip


CALLS: dict[str, Callable] = {
    "index_put": lambda x: x.index_put((_row(x),), x[:1]),
    "index_fill": lambda x: x.index_fill(0, _row(x), 3.0),
    "index_fill of a tensor": lambda x: x.index_fill(0, _row(x), x[0, 0]),
    "_unsafe_index_put": lambda x: torch.ops.aten._unsafe_index_put(
        x, [_row(x)], x[:1]
    ),
    "put": lambda x: x.put(_row(x), x[0, :1]),
    "_unsafe_masked_index_put_accumulate": lambda x: (
        torch.ops.aten._unsafe_masked_index_put_accumulate(
            x, torch.ones_like(_row(x), dtype=torch.bool), [_row(x)], x[:1]
        )
    ),
    "as_strided_copy.out": lambda x: torch.as_strided_copy(
        x, (3, 2), (2, 1), out=x.new_zeros(0)
    ),
    "permute_copy.out": lambda x: torch.permute_copy(x, (1, 0), out=x.new_zeros(0)),
    "inference tensors": lambda x: [
        y.is_inference()
        for y in (F.linear(x, x), F.linear(x[0], x), F.max_pool1d(x, 2))
    ],
    "bernoulli.p": lambda x: torch.bernoulli(x.t(), 0.4),
    "matrix_rank": lambda x: torch.linalg.matrix_rank(x, out=_row(x)[0] + 7),
    "polygamma_": lambda x: x.clone().polygamma_(1),
    "batch_norm.out": _batch_norm_out,
    "group_norm": lambda x: F.group_norm(
        x.reshape(1, 5, 5, 1).expand(2, 5, 5, 4).to(memory_format=torch.channels_last),
        5,
    ),
}


def _view(x: torch.Tensor) -> torch.Tensor:
    return x[1:6, 1:6]


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
@pytest.mark.parametrize("name", WRITES | CALLS)
def test_kernels_of_the_autograd_key(name: str, mode: Callable) -> None:
    call = (WRITES | CALLS)[name]

    def program(x: torch.Tensor) -> object:
        torch.manual_seed(0)
        with mode():
            return call(_view(x))

    compare(program, torch.arange(1.0, 50).view(7, 7) + 0.5 * torch.eye(7))
