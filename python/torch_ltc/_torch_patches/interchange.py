"""Passes lazy tensors to other libraries (DLPack) and to other processes.

A lazy tensor's value is host memory that nothing writes to, so it is exported as
read-only CPU memory without a copy: a numpy array of a lazy tensor is read-only, and
keeps its value when the tensor is written. Consumers that don't support read-only memory
(DLPack before version 1, PyTorch itself) get a copy.

Between processes, lazy tensors are passed as CPU tensors in shared memory, and become
lazy tensors with their own memory in the receiving process.
"""

from __future__ import annotations

import functools
import io
from collections.abc import Callable
from multiprocessing.context import get_spawning_popen
from multiprocessing.reduction import ForkingPickler
from typing import Any

import torch
import torch.multiprocessing.reductions as reductions
import torch.utils.dlpack as dlpack

from torch_ltc._backend import bindings


def _is_lazy(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.device.type == "lazy"


def _wrap_export(original: Callable) -> Callable:
    @functools.wraps(original)
    def export(
        self: torch.Tensor,
        *,
        stream: Any = -1,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[Any, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        options = {"stream": stream, "max_version": max_version, "dl_device": dl_device}
        rejected = self.requires_grad or self.is_conj() or self.layout != torch.strided
        if rejected or not _is_lazy(self):
            return original(self, copy=copy, **options)
        takes_read_only = max_version is not None and max_version[0] >= 1
        view = None if copy or not takes_read_only else bindings().host_view(self)
        if view is None and copy is False:
            raise BufferError(
                "A tensor on device 'lazy' is exported without a copy as read-only, "
                "row-major memory, which isn't the requested form: export x.cpu()."
            )
        host = self.cpu() if view is None else view
        if view is not None:
            # The offset in the functional wrapper is only that of its last view (torch
            # 2.13), so the exported tensor gets the lazy tensor's offset.
            host = view.as_strided(self.size(), self.stride(), self.storage_offset())
        capsule = original(host, copy=None, **options)
        if view is not None:
            bindings().mark_read_only(capsule)
        return capsule

    return export


def _wrap_dlpack_device(original: Callable) -> Callable:
    @functools.wraps(original)
    def dlpack_device(self: torch.Tensor) -> tuple[Any, int]:
        if _is_lazy(self):
            return dlpack.DLDeviceType.kDLCPU, 0
        return original(self)

    return dlpack_device


def _wrap_import(original: Callable) -> Callable:
    """Makes `from_dlpack` copy lazy tensors: PyTorch (2.13) ignores DLPack's read-only
    flag."""

    @functools.wraps(original)
    def from_dlpack(
        ext_tensor: Any, *, device: Any = None, copy: bool | None = None
    ) -> torch.Tensor:
        target = None if device is None else torch.device(device)
        if target is not None and target.type == "lazy":
            if copy is False:
                raise ValueError(
                    "from_dlpack can't make a tensor on device 'lazy' without a copy: "
                    "leave out copy=False."
                )
            if _is_lazy(ext_tensor):
                return ext_tensor.clone() if copy else ext_tensor
            return original(ext_tensor).to(target)
        if (
            _is_lazy(ext_tensor)
            and not ext_tensor.requires_grad
            and not ext_tensor.is_conj()
        ):
            if copy is False:
                raise BufferError(
                    "from_dlpack can't share the memory of a tensor on device 'lazy', "
                    "which nothing may write to: leave out copy=False."
                )
            return original(ext_tensor.cpu(), device=device)
        return original(ext_tensor, device=device, copy=copy)

    return from_dlpack


def _wrap_capsule(original: Callable) -> Callable:
    @functools.wraps(original)
    def to_dlpack(tensor: torch.Tensor) -> Any:
        return original(tensor.cpu() if _is_lazy(tensor) else tensor)

    return to_dlpack


def _rebuild(kind: type, copy: torch.Tensor, requires_grad: bool) -> torch.Tensor:
    moved = copy.to("lazy")
    if kind is torch.nn.Parameter:
        return torch.nn.Parameter(moved, requires_grad)
    return moved.requires_grad_(requires_grad)


def _load(data: bytes) -> torch.Tensor:
    return torch.load(io.BytesIO(data), weights_only=True)


def _wrap_reduction(original: Callable) -> Callable:
    @functools.wraps(original)
    def reduce_tensor(tensor: torch.Tensor) -> tuple:
        if not _is_lazy(tensor) or (tensor.requires_grad and not tensor.is_leaf):
            return original(tensor)
        if get_spawning_popen() is not None:
            # For an argument of a new process, the value itself is pickled: the new process
            # would open shared memory only after the copy is gone.
            buffer = io.BytesIO()
            torch.save(tensor, buffer)
            return _load, (buffer.getvalue(),)
        return _rebuild, (type(tensor), tensor.detach().cpu(), tensor.requires_grad)

    return reduce_tensor


def _wrap_new_shared(original: Callable) -> Callable:
    @functools.wraps(original)
    def _new_shared(size: int, *, device: Any = "cpu") -> torch.UntypedStorage:
        if torch.device(device).type == "lazy":
            raise RuntimeError(
                "A DataLoader's worker can't put batches of lazy tensors into shared "
                "memory: create CPU tensors in the dataset, and move the batches with "
                ".to('lazy')."
            )
        return original(size, device=device)

    return _new_shared


def install() -> None:
    tensor: Any = torch.Tensor
    tensor.__dlpack__ = _wrap_export(tensor.__dlpack__)
    tensor.__dlpack_device__ = _wrap_dlpack_device(tensor.__dlpack_device__)
    torch.from_dlpack = dlpack.from_dlpack = _wrap_import(dlpack.from_dlpack)
    torch.to_dlpack = dlpack.to_dlpack = _wrap_capsule(dlpack.to_dlpack)
    storage: Any = torch.UntypedStorage
    storage._new_shared = staticmethod(_wrap_new_shared(storage._new_shared))
    reductions.reduce_tensor = _wrap_reduction(reductions.reduce_tensor)
    for kind in (torch.Tensor, torch.nn.Parameter):
        ForkingPickler.register(kind, reductions.reduce_tensor)
