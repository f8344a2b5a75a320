"""Supports `torch.utils.swap_tensors` with lazy tensors.

PyTorch (2.13) doesn't exchange tensors to which C++ code holds weak references. The
backend has such references to views and to named tensors, and torch's profiler to the
operands of the ops that it records.
"""

from __future__ import annotations

import torch

from torch_ltc import _C

_EXCHANGE = torch._C._swap_tensor_impl


def install() -> None:
    """Replaces `torch._C._swap_tensor_impl`."""
    torch._C._swap_tensor_impl = _exchange


def _exchange(first: torch.Tensor, second: torch.Tensor) -> None:
    lazy = [tensor for tensor in (first, second) if tensor.device.type == "lazy"]
    if not lazy:
        _EXCHANGE(first, second)
        return
    names = [_C.tensor_name(tensor) for tensor in lazy]
    for tensor in lazy:
        _C.remove_tensor_name(tensor)
    _C.exchange_tensors(first, second)
    for tensor, name in zip(lazy, names):
        if name and tensor.device.type == "lazy":
            _C.set_tensor_name(tensor, name)
