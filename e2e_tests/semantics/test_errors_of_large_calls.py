"""Calls that eager's kernels reject raise eager's error at the call, for operands of any
size: checks that run eager's kernels do so with small sizes."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

Call = Callable[[Tensor], Tensor]

#: The dtype of the operand, and a call that eager rejects.
CALLS: dict[str, tuple[torch.dtype, Call]] = {
    "logcumsumexp": (torch.int32, lambda x: x.logcumsumexp(0)),
    "softmax": (torch.int32, lambda x: x.softmax(0)),
    "frac": (torch.int32, torch.frac),
    "floor": (torch.bool, torch.floor),
    "fractional alpha": (torch.int32, lambda x: torch.add(x, x, alpha=1.5)),
    "negative power": (torch.int64, lambda x: x**-1),
    "lerp": (torch.int64, lambda x: torch.lerp(x, x, 0.5)),
    "bits": (torch.float16, lambda x: x & x),
    "matrix product": (torch.bool, lambda x: x.view(10, -1) @ x.view(-1, 10)),
    "bounds": (torch.uint8, lambda x: x.clamp(0, 300)),
    "put of another dtype": (torch.float32, lambda x: x.put(_positions(x), x.double())),
    "put of few elements": (torch.float32, lambda x: x.put(_positions(x), x[:10])),
    "index_reduce of few rows": (
        torch.float32,
        lambda x: x.index_reduce(0, _positions(x), x[1:], "amax"),
    ),
}


def _positions(x: Tensor) -> Tensor:
    return torch.arange(len(x), device=x.device)


def error_of(call: Call, x: Tensor) -> str:
    with pytest.raises((RuntimeError, IndexError)) as raised:
        call(x)
    return f"{raised.type.__name__}: {str(raised.value).split(' [aten::')[0]}"


@pytest.mark.filterwarnings("ignore:index_reduce")
@pytest.mark.parametrize("size", [60, 9000])
@pytest.mark.parametrize("name", CALLS)
def test_errors(name: str, size: int) -> None:
    dtype, call = CALLS[name]
    x = torch.ones(size, dtype=dtype)
    assert error_of(call, x.to("lazy")) == error_of(call, x)
