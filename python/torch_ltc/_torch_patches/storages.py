"""Supports storages of lazy tensors: a tensor and its views share a storage.

The address of a storage is that of its values in host memory, so programs that detect
shared tensors by `data_ptr()` (safetensors, transformers, accelerate) work. An address is
valid until the next write to the tensor or the next end of a step, after which the value
may be elsewhere. The elements are in row-major order, whatever the tensor's strides are.

PyTorch's own functions (2.13) treat the null pointer in a lazy tensor's storage as an
error. Below functionalization, Python kernels of custom ops get values without a storage,
for which PyTorch's functions would dereference a null pointer; an error is raised instead.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from torch_ltc._backend import bindings

#: Methods that raise an error, because they change a storage's size or expose its memory.
#: `resize_` only accepts 0 and the full size.
_REJECTED = (
    "_share_fd_cpu_",
    "_share_filename_cpu_",
    "byteswap",
    "pin_memory",
    "resize_",
    "share_memory_",
)


def _is_of_device(tensor: torch.Tensor) -> bool:
    return not tensor.is_cpu and tensor.device.type == "lazy"


def _wrap_untyped_storage(original: Callable) -> Callable:
    @functools.wraps(original)
    def untyped_storage(self: torch.Tensor) -> torch.UntypedStorage:
        if _is_of_device(self) and not torch._is_functional_tensor(self):
            keys, of = torch._C._dispatch_keys(self), torch._C.DispatchKey
            # Fake tensors, which have the key Python, have a storage.
            if keys.has(of.Lazy) and not keys.has(of.Python):
                raise RuntimeError(
                    "a traced value on device 'lazy' has no storage: "
                    "move the tensor with .to('cpu') first"
                )
        return original(self)

    return untyped_storage


def _wrap_tensor_address(original: Callable) -> Callable:
    @functools.wraps(original)
    def data_ptr(self: torch.Tensor) -> int:
        if not _is_of_device(self) or not torch._is_functional_tensor(self):
            return original(self)
        if self.numel() == 0:
            return 0
        start = bindings().storage_address(self.untyped_storage())
        return start + self.storage_offset() * self.element_size()

    return data_ptr


def _wrap_storage_address(original: Callable) -> Callable:
    @functools.wraps(original)
    def data_ptr(self: torch.UntypedStorage) -> int:
        if self.device.type != "lazy":
            return original(self)
        return bindings().storage_address(self)

    return data_ptr


def _wrap_reading(original: Callable) -> Callable:
    """Makes `original` read a CPU copy of a lazy storage."""

    @functools.wraps(original)
    def read(self: torch.UntypedStorage, *args: Any, **kwargs: Any) -> Any:
        if self.device.type == "lazy":
            self = bindings().read_storage(self).untyped_storage()
        return original(self, *args, **kwargs)

    return read


def _wrap_rejected(name: str, original: Callable) -> Callable:
    @functools.wraps(original)
    def reject(self: torch.UntypedStorage, *args: Any, **kwargs: Any) -> Any:
        if self.device.type == "lazy":
            # FSDP resizes storages to release memory that it fills again later.
            if name == "resize_" and bindings().resize_storage(self, args[0]):
                return self
            raise RuntimeError(
                f"UntypedStorage.{name} isn't supported for a tensor on device 'lazy', "
                "whose storage can't be resized or shared with other processes: "
                "resize the tensor, or share a copy (x.cpu())."
            )
        return original(self, *args, **kwargs)

    return reject


def _bytes_of(storage: torch.UntypedStorage) -> torch.Tensor:
    """Returns a lazy uint8 tensor of all bytes of the storage. Writes to it also write to
    the storage's tensors."""
    return torch.empty(0, dtype=torch.uint8, device="lazy").set_(storage)


def _wrap_fill(original: Callable) -> Callable:
    @functools.wraps(original)
    def fill_(self: torch.UntypedStorage, value: int) -> torch.UntypedStorage:
        if self.device.type != "lazy":
            return original(self, value)
        _bytes_of(self).fill_(value)
        return self

    return fill_


def _wrap_set_item(original: Callable) -> Callable:
    @functools.wraps(original)
    def set_item(self: torch.UntypedStorage, index: Any, value: int) -> None:
        if self.device.type != "lazy":
            return original(self, index, value)
        _bytes_of(self)[index] = value

    return set_item


def _wrap_copy(original: Callable) -> Callable:
    """Makes `copy_` copy between a lazy storage and a lazy or CPU storage."""

    @functools.wraps(original)
    def copy_(
        self: torch.UntypedStorage,
        source: torch.UntypedStorage,
        non_blocking: bool | None = None,
    ) -> torch.UntypedStorage:
        if "lazy" not in (self.device.type, source.device.type):
            return original(self, source, non_blocking)
        if self.nbytes() != source.nbytes():
            raise RuntimeError("size does not match, self was "
                               f"{self.nbytes()} bytes but src was {source.nbytes()} bytes")  # fmt: skip
        if source.device.type == "lazy":
            source = source.cpu()
        data = torch.empty(0, dtype=torch.uint8).set_(source)
        if self.device.type == "lazy":
            _bytes_of(self).copy_(data)
        else:
            torch.empty(0, dtype=torch.uint8).set_(self).copy_(data)
        return self

    return copy_


def _wrap_new(original: Callable) -> Callable:
    @functools.wraps(original)
    def new(cls: type, *args: Any, device: Any = None, **kwargs: Any) -> Any:
        if device is None or torch.device(device).type != "lazy":
            if device is not None:
                kwargs["device"] = device
            return original(cls, *args, **kwargs)
        content = args[0] if args else 0
        if isinstance(content, int):
            made = torch.empty(content, dtype=torch.uint8, device="lazy")
        else:
            made = torch.tensor(list(content), dtype=torch.uint8, device="lazy")
        return made.untyped_storage()

    return new


def _wrap_is_shared(original: Callable) -> Callable:
    @functools.wraps(original)
    def is_shared(self: torch.UntypedStorage) -> bool:
        return self.device.type != "lazy" and original(self)

    return is_shared


def install() -> None:
    tensor: Any = torch.Tensor
    tensor.untyped_storage = _wrap_untyped_storage(tensor.untyped_storage)
    tensor.data_ptr = _wrap_tensor_address(tensor.data_ptr)
    storage: Any = torch.UntypedStorage
    storage.data_ptr = _wrap_storage_address(storage.data_ptr)
    storage.is_shared = _wrap_is_shared(storage.is_shared)
    for name in ("__getitem__", "cpu", "tolist"):
        setattr(storage, name, _wrap_reading(getattr(storage, name)))
    storage.fill_ = _wrap_fill(storage.fill_)
    storage.copy_ = _wrap_copy(storage.copy_)
    storage.__setitem__ = _wrap_set_item(storage.__setitem__)
    storage.__new__ = staticmethod(_wrap_new(storage.__new__))
    for name in _REJECTED:
        setattr(storage, name, _wrap_rejected(name, getattr(storage, name)))
