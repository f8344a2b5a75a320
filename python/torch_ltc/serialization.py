"""torch.save, torch.load and pickle of lazy tensors.

A lazy tensor is saved as the storage of its CPU copy with the location tag
"lazy:0", as tensors of other devices are. So `map_location="cpu"` reads the
file where torch_ltc isn't installed, `map_location="lazy"` moves any file's
tensors here, and without it lazy tensors come back as lazy tensors.

torch 2.13 has no hook for a device whose tensors have no storage: `Tensor`'s
reduction and the functions that rebuild a tensor from a storage are wrapped.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
import torch._utils
import torch.serialization

# Set on a storage (CPU memory) that stands for a lazy tensor's; its value is
# the location tag.
_TAG = "_torch_ltc_location"

# torch.load and torch.save ask packages in the order of this number; the
# CPU's is 10 and claims every CPU storage.
_PRIORITY = 5


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
        torch.utils.hooks.warn_if_has_hooks(self)
        copy = self.detach().cpu().requires_grad_(self.requires_grad)
        rebuild, arguments = original(copy, protocol)
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
        # A copy: the file's storage may be mapped or shared with other tensors.
        moved = tensor.detach().clone().to(location)
        return moved.requires_grad_(tensor.requires_grad)

    return rebuild


def _tag(storage: Any) -> str | None:
    return getattr(_untyped(storage), _TAG, None)


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
    """Teaches torch.save and torch.load about lazy tensors."""
    torch.serialization.register_package(_PRIORITY, _tag, _deserialize)
    torch.Tensor._reduce_ex_internal = _wrap_reduction(torch.Tensor._reduce_ex_internal)
    # _rebuild_tensor_v2 and the older forms call the first; dtypes that have
    # no typed storage (uint16, float8, ...) use the second.
    torch._utils._rebuild_tensor = _wrap_rebuild(torch._utils._rebuild_tensor)
    torch._utils._rebuild_tensor_v3 = _wrap_rebuild(torch._utils._rebuild_tensor_v3)
