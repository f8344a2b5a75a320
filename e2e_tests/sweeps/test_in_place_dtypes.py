"""In-place ops on integers, booleans and floats succeed or fail as in eager: they fail if
the result can't be cast to the dtype of the written tensor."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from comparison import assert_close
from sweeps import opinfo
from torch.testing._internal.common_methods_invocations import OpInfo, SampleInput
from torch.utils._pytree import tree_map

DTYPES = (torch.int64, torch.bool, torch.float32)


def _ops() -> list:
    entries = {
        opinfo.entry_name(op): op for dtype in DTYPES for op in opinfo.entries(dtype)
    }
    return [
        pytest.param(op, id=name) for name, op in entries.items() if op.inplace_variant
    ]


def _written(op: OpInfo, sample: SampleInput, operands: str, device: str) -> Any:
    def moved(value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        if operands == "complex" and value.is_floating_point():
            value = value.to(torch.complex64)
        return value.detach().clone().to(device)

    first = sample.input.detach().clone().to(device)
    args, kwargs = tree_map(moved, (sample.args, sample.kwargs))
    torch.manual_seed(1)
    try:
        return op.inplace_variant(first, *args, **kwargs).cpu()
    except Exception as error:
        return type(error)


@pytest.mark.parametrize("op", _ops())
@pytest.mark.filterwarnings("ignore")
def test_in_place_dtypes(op: OpInfo) -> None:
    for dtype in DTYPES:
        if dtype not in op.supported_dtypes("cpu"):
            continue
        for sample in opinfo.samples_of(op, dtype, False, 2):
            for operands in ("given", "complex"):
                if dtype != torch.float32 and operands == "complex":
                    continue
                eager, lazy = (
                    _written(op, sample, operands, device) for device in ("cpu", "lazy")
                )
                assert isinstance(lazy, type) == isinstance(eager, type), (eager, lazy)
                if not isinstance(eager, type):
                    assert_close(lazy, eager, rtol=1e-3, atol=1e-3, equal_nan=True)
