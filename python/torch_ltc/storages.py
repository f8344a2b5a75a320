"""Storages of traced values.

Below functionalisation, where a `TorchDispatchMode` sees them, lazy tensors are values
without a storage, and PyTorch (2.13) reads a null pointer when it is asked for.
"""

from __future__ import annotations

import functools
from typing import Any

import torch


def _wrap(original: Any) -> Any:
    @functools.wraps(original)
    def untyped_storage(self: torch.Tensor) -> torch.UntypedStorage:
        if self.device.type == "lazy" and not torch._is_functional_tensor(self):
            keys, of = torch._C._dispatch_keys(self), torch._C.DispatchKey
            # Fake tensors have a storage, and a key of their own.
            if keys.has(of.Lazy) and not keys.has(of.Python):
                raise RuntimeError(
                    "a traced value on device 'lazy' has no storage: "
                    "move the tensor with .to('cpu') first"
                )
        return original(self)

    return untyped_storage


def install() -> None:
    torch.Tensor.untyped_storage = _wrap(torch.Tensor.untyped_storage)  # type: ignore[method-assign]
