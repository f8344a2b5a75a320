"""`torch.autograd.graph.allow_mutation_on_saved_tensors` for lazy tensors.

PyTorch's context manager finds out by addresses which saved tensors a write
reaches, and lazy tensors have none (torch 2.13). What a lazy tensor holds is a
value that no write changes, so a copy of it costs one traced op and no memory
of its own as long as nothing is written.
"""

from __future__ import annotations

import functools
from typing import Any

import torch
from torch.autograd import graph


class _LazyHandle(graph._Handle):
    """What stands for a saved tensor; the context holds the tensor itself."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.version = tensor._version
        with torch.no_grad():
            self.value = tensor.detach().clone()


def _with_lazy_tensors(init: Any) -> Any:
    @functools.wraps(init)
    def wrapper(self: Any, context: Any) -> None:
        init(self, context)
        pack, unpack = self.pack_hook, self.unpack_hook

        def pack_hook(tensor: torch.Tensor) -> Any:
            if tensor.device.type != "lazy":
                return pack(tensor)
            handle = _LazyHandle(tensor)
            context.original[handle] = tensor
            return handle

        def unpack_hook(handle: Any) -> torch.Tensor:
            tensor = unpack(handle)
            if isinstance(handle, _LazyHandle) and tensor._version != handle.version:
                return handle.value
            return tensor

        self.pack_hook, self.unpack_hook = pack_hook, unpack_hook

    return wrapper


def _only_elsewhere(function: Any) -> Any:
    """Below the hooks a write to a lazy tensor needn't be noticed."""

    @functools.wraps(function)
    def dispatch(self: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None):
        values = torch.utils._pytree.tree_leaves((args, kwargs))
        if any(isinstance(v, torch.Tensor) and v.device.type == "lazy" for v in values):
            return func(*args, **(kwargs or {}))
        return function(self, func, types, args, kwargs)

    return dispatch


def install() -> None:
    saved, mode = graph._swap_with_cloned, graph._CloneArgBeforeMutateMode
    saved.__init__ = _with_lazy_tensors(saved.__init__)
    mode.__torch_dispatch__ = _only_elsewhere(mode.__torch_dispatch__)
