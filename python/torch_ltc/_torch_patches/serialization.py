"""Makes torch.save, torch.load, pickle and the copy module support lazy tensors.

A lazy tensor is saved as the storage of its CPU copy with the location tag "lazy:0",
like tensors on other devices. So `map_location="cpu"` reads the file even where torch_ltc
isn't installed, `map_location="lazy"` moves any file's tensors to this device, and
without `map_location` lazy tensors are loaded as lazy tensors.

Tensors that share memory when `torch.save` is called also share it in the file and after
`torch.load`: a file contains the memory of a view's base once.

torch 2.13 has no hook for a device whose storages contain no data, so `Tensor`'s
reduction, its copies and the functions that rebuild a tensor from a storage are wrapped.
"""

from __future__ import annotations

import copy
import functools
import threading
from collections.abc import Callable
from typing import Any

import torch
import torch._utils
import torch.serialization

from torch_ltc._backend import bindings

# Attribute of a CPU storage that represents a lazy tensor's storage; its value is the
# location tag.
_TAG = "_torch_ltc_location"

# torch.load and torch.save query packages in the order of their priorities. The CPU's
# package, which claims every CPU storage, has priority 10.
_PRIORITY = 5


# Attribute that loading sets on a CPU storage: the lazy tensor with a copy of its memory.
_BASE = "_torch_ltc_base"


class _Loading(threading.local):
    """Tensors whose storages the thread's torch.load hasn't read yet, as (lazy tensor, CPU
    tensor): files in the legacy format store the contents after all tensors."""

    unread: list[tuple[torch.Tensor, torch.Tensor]] | None = None


_loading = _Loading()


class _Saving(threading.local):
    """CPU copies, by memory id, of the memory that the thread's torch.save has
    encountered."""

    memory: dict[int, torch.Tensor | None] | None = None


_saving = _Saving()


def _place(memory: torch.Tensor, tensor: torch.Tensor) -> torch.Tensor | None:
    """Returns the view of `memory`, a tensor without gaps, that has the dtype, sizes,
    strides and offset of `tensor`; None if the memory is too small."""
    if memory.dtype != tensor.dtype:
        if memory.nbytes % tensor.element_size():
            return None
        memory = memory.view(-1).view(tensor.dtype)
    end = 1 + tensor.storage_offset()
    for size, stride in zip(tensor.size(), tensor.stride(), strict=True):
        end += (size - 1) * stride
    if end > memory.numel():
        return None
    return memory.as_strided(tensor.size(), tensor.stride(), tensor.storage_offset())


def _cpu_copy(tensor: torch.Tensor) -> torch.Tensor:
    """Returns a CPU copy with the same strides and offset. Within a torch.save, the copies
    of tensors that share memory are views of one CPU tensor."""
    key = bindings().memory_id(tensor)
    if key == 0:
        return tensor.detach().cpu()
    known = {} if _saving.memory is None else _saving.memory
    if key not in known:
        known[key] = bindings().read_memory(tensor)
    memory = known[key]
    view = None if memory is None else _place(memory, tensor)
    if view is None:
        return tensor.detach().cpu()
    if tensor.is_conj():
        view = view.conj()
    return torch._neg_view(view) if tensor.is_neg() else view


def _wrap_save(original: Callable) -> Callable:
    @functools.wraps(original)
    def save(*args: Any, **kwargs: Any) -> None:
        outer, _saving.memory = _saving.memory, {}
        try:
            original(*args, **kwargs)
        finally:
            _saving.memory = outer

    return save


def _untyped(storage: Any) -> torch.UntypedStorage:
    return getattr(storage, "_untyped_storage", storage)


def _wrap_reduction(original: Callable) -> Callable:
    @functools.wraps(original)
    def _reduce_ex_internal(self: torch.Tensor, protocol: int) -> tuple:
        if self.device.type != "lazy":
            return original(self, protocol)
        if torch.serialization._serialization_tls.skip_data:
            raise RuntimeError(
                "Lazy tensors can't be saved under torch.serialization.skip_data; "
                "move them to the CPU first."
            )
        if self.layout != torch.strided:
            return original(self, protocol)  # the parts are lazy tensors
        torch.utils.hooks.warn_if_has_hooks(self)
        on_cpu = _cpu_copy(self).requires_grad_(self.requires_grad)
        rebuild, arguments = original(on_cpu, protocol)
        setattr(_untyped(arguments[0]), _TAG, str(self.device))
        return rebuild, arguments

    return _reduce_ex_internal


def _wrap_rebuild(original: Callable) -> Callable:
    @functools.wraps(original)
    def rebuild(storage: Any, *args: Any, **kwargs: Any) -> torch.Tensor:
        tensor = original(storage, *args, **kwargs)
        location = getattr(_untyped(storage), _TAG, None)
        if location is None:
            return tensor
        moved = _of_memory(_untyped(storage), tensor.detach(), location)
        return moved.requires_grad_(tensor.requires_grad)

    return rebuild


def _wrap_set_metadata(original: Callable) -> Callable:
    """torch turns on the conjugate or negative bit of a tensor whose memory it has read.
    For a lazy tensor, the values must be conjugated or negated as well."""

    @functools.wraps(original)
    def set_tensor_metadata(tensor: torch.Tensor, metadata: dict) -> None:
        if tensor.device.type != "lazy":
            return original(tensor, metadata)
        if metadata.get("conj"):
            tensor.data = tensor.detach().conj()
        if metadata.get("neg"):
            tensor.data = torch._neg_view(tensor.detach())

    return set_tensor_metadata


def _wrap_rebuild_sparse(original: Callable) -> Callable:
    """Rebuilds tensors of compressed layouts (CSR, ...) on the CPU: torch's constructors
    don't accept parts on device lazy."""

    @functools.wraps(original)
    def rebuild(layout: torch.layout, parts: tuple) -> torch.Tensor:
        device = parts[0].device
        if layout == torch.sparse_coo or device.type != "lazy":
            return original(layout, parts)
        on_cpu = (p.cpu() if isinstance(p, torch.Tensor) else p for p in parts)
        return original(layout, tuple(on_cpu)).to(device)

    return rebuild


def _to_lazy(tensor: torch.Tensor, location: str) -> torch.Tensor:
    """Returns a copy on device lazy. If it is made while a legacy file is loaded, it gets
    its values after the file has been read."""
    moved = tensor.clone().to(location)
    if _loading.unread is not None:
        _loading.unread.append((moved, tensor))
    return moved


def _wrap_legacy_load(original: Callable) -> Callable:
    @functools.wraps(original)
    def _legacy_load(*args: Any, **kwargs: Any) -> Any:
        outer, _loading.unread = _loading.unread, []
        try:
            result = original(*args, **kwargs)
            with torch.no_grad():
                for moved, tensor in _loading.unread:
                    moved.detach().copy_(tensor)
            return result
        finally:
            _loading.unread = outer

    return _legacy_load


def _of_memory(
    storage: torch.UntypedStorage, tensor: torch.Tensor, location: str
) -> torch.Tensor:
    """Returns the lazy tensor for `tensor`, a view of `storage`. All lazy tensors for views
    of `storage` share a copy of its memory; a copy, because the file may be mapped."""
    base = getattr(storage, _BASE, None)
    if base is None:
        if tensor.nbytes == storage.nbytes() and tensor.storage_offset() == 0:
            base = _to_lazy(tensor, location)  # the usual case: the tensor isn't a view
            setattr(storage, _BASE, base)
            return base
        count = storage.nbytes() // tensor.element_size()
        base = _to_lazy(tensor.as_strided((count,), (1,), 0), location)
        setattr(storage, _BASE, base)
    if base.requires_grad:  # the base has become a Parameter
        base = base.detach()
    are_contiguous = base.is_contiguous() and tensor.is_contiguous()
    if are_contiguous and base.dtype == tensor.dtype:
        flat = base.view(-1).narrow(0, tensor.storage_offset(), tensor.numel())
        return flat.view(tensor.size())
    view = _place(base, tensor)
    return _to_lazy(tensor, location) if view is None else view


def _shallow_copy(self: torch.Tensor) -> torch.Tensor:
    """Implements `copy.copy` without copying lazy memory. The default implementation, by
    the pickle protocol, would copy it."""
    if self.device.type != "lazy" or type(self) not in (
        torch.Tensor,
        torch.nn.Parameter,
    ):
        return copy._reconstruct(self, None, *self.__reduce_ex__(4))  # type: ignore[attr-defined]
    shared = self.detach()
    if isinstance(self, torch.nn.Parameter):
        shared = torch.nn.Parameter(shared, self.requires_grad)
    shared.requires_grad_(self.requires_grad)
    shared.__dict__.update(self.__dict__)
    return shared


def _wrap_deep_copy(original: Callable) -> Callable:
    """Makes the copies of lazy tensors that share memory share memory, too. `copy.deepcopy`
    does this for CPU tensors by copying each storage once, but torch clones each lazy
    tensor separately."""

    @functools.wraps(original)
    def deep_copy(self: torch.Tensor, memo: dict) -> torch.Tensor:
        is_known = id(self) in memo
        copied = original(self, memo)
        if is_known or self.device.type != "lazy" or type(self) is not torch.Tensor:
            return copied
        if self.layout != torch.strided or self.is_quantized:
            return copied
        if self.is_conj() or self.is_neg():
            return copied  # eager clones these, too
        memory = bindings().memory_id(self)
        if memory == 0:
            return copied
        size = self.untyped_storage().nbytes()
        key = ("memory of lazy tensors", memory)
        if key not in memo:
            if self.nbytes == size and self.is_contiguous():
                memo[key] = copied.detach()  # the usual case: the tensor isn't a view
                return copied
            if size % self.element_size():
                return copied
            whole = self.detach().as_strided((size // self.element_size(),), (1,), 0)
            memo[key] = whole.clone()
        view = _place(memo[key], self)
        if view is not None:
            copied.data = view
        return copied

    return deep_copy


def _tag(storage: Any) -> str | None:
    """Returns the location of a storage, which represents a lazy tensor's storage or is
    one: a program may save the storage of a tensor without the tensor."""
    untyped = _untyped(storage)
    is_lazy = (
        isinstance(untyped, torch.UntypedStorage) and untyped.device.type == "lazy"
    )
    return getattr(untyped, _TAG, "lazy:0" if is_lazy else None)


def _deserialize(storage: Any, location: str) -> Any:
    if location.split(":")[0] != "lazy":
        return None
    if location not in ("lazy", "lazy:0"):
        raise RuntimeError(
            f"The file's tensors belong to '{location}', but there is one lazy "
            "device, 'lazy:0'; pass map_location='lazy' or map_location='cpu'."
        )
    setattr(_untyped(storage), _TAG, "lazy:0")
    return storage


def install() -> None:
    """Registers lazy tensors with torch.save and torch.load."""
    torch.serialization.register_package(_PRIORITY, _tag, _deserialize)
    torch.save = torch.serialization.save = _wrap_save(torch.save)
    torch.Tensor._reduce_ex_internal = _wrap_reduction(torch.Tensor._reduce_ex_internal)
    # _rebuild_tensor_v2 and the older forms call _rebuild_tensor; dtypes without a typed
    # storage (uint16, float8, ...) use _rebuild_tensor_v3.
    torch._utils._rebuild_tensor = _wrap_rebuild(torch._utils._rebuild_tensor)
    torch._utils._rebuild_tensor_v3 = _wrap_rebuild(torch._utils._rebuild_tensor_v3)
    torch._utils.set_tensor_metadata = _wrap_set_metadata(
        torch._utils.set_tensor_metadata
    )
    torch._utils._rebuild_sparse_tensor = _wrap_rebuild_sparse(
        torch._utils._rebuild_sparse_tensor
    )
    torch.serialization._legacy_load = _wrap_legacy_load(
        torch.serialization._legacy_load
    )
    torch.Tensor.__copy__ = _shallow_copy  # type: ignore[attr-defined]
    torch.Tensor.__deepcopy__ = _wrap_deep_copy(torch.Tensor.__deepcopy__)
