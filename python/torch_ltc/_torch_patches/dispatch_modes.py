"""Passes the user's tensors to the Python code of a TorchDispatchMode.

torch calls a mode after functionalization, which has replaced each lazy tensor by its
value, each view by a copy and each in-place op by a functional op. Therefore the first mode
that is entered registers kernels that make ops under a mode bypass functionalization. The
mode of fake tensors doesn't need these kernels.
"""

from __future__ import annotations

import functools
from typing import Any

import torch
from torch.utils import _python_dispatch

from torch_ltc._backend import bindings


def install() -> None:
    push = _python_dispatch._push_on_torch_dispatch_stack
    fake = torch._C._TorchDispatchModeKey.FAKE

    @functools.wraps(push)
    def first_push(mode: Any) -> None:
        if getattr(mode, "_mode_key", None) != fake:
            bindings().pass_functionalization()
            _python_dispatch._push_on_torch_dispatch_stack = push
        push(mode)

    _python_dispatch._push_on_torch_dispatch_stack = first_push
    if torch._C._len_torch_dispatch_stack():
        bindings().pass_functionalization()
