"""Makes `torch.autograd.graph.allow_mutation_on_saved_tensors` support lazy tensors.

PyTorch's context manager (2.13) uses addresses to find the saved tensors that a write
affects. Reading a lazy tensor's address would cut the graph, and the next write to the
tensor may change the address. Instead, a saved lazy tensor is copied at once. Traced values
are immutable, so the copy costs one traced op, and no memory as long as nothing is written.
The context manager's dispatch mode, which copies saved tensors before they are written,
therefore finds no lazy tensors. Versions show which tensors were written. Below a dispatch
mode, ops on lists don't increase the versions, so the mode increases them.
"""

from __future__ import annotations

import functools
from typing import Any

import torch
from torch.autograd import graph


class _LazyHandle(graph._Handle):
    """Represents a saved lazy tensor by a copy of its value; the context holds the tensor
    itself."""

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


def _with_versions_of_lists(dispatch: Any) -> Any:
    @functools.wraps(dispatch)
    def wrapper(
        self: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        result = dispatch(self, func, types, args, kwargs)
        for argument, value in zip(func._schema.arguments, args):
            info = argument.alias_info
            if info is not None and info.is_write and isinstance(value, list):
                graph.increment_version([t for t in value if t.device.type == "lazy"])
        return result

    return wrapper


def install() -> None:
    saved, mode = graph._swap_with_cloned, graph._CloneArgBeforeMutateMode
    saved.__init__ = _with_lazy_tensors(saved.__init__)
    mode.__torch_dispatch__ = _with_versions_of_lists(mode.__torch_dispatch__)
