"""`Tensor.new` of sparse tensors, which torch.optim.SparseAdam calls: torch's C++
knows the devices that have it (2.13), and lazy isn't one."""

from __future__ import annotations

import functools
from typing import Any

import torch


def _wrap_new(new: Any) -> Any:
    @functools.wraps(new)
    def wrapped(self: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
        if self.device.type != "lazy" or self.layout != torch.sparse_coo:
            return new(self, *args, **kwargs)
        # What the caller has is a sparse tensor already: no word about checks.
        options = {
            "dtype": self.dtype,
            "device": self.device,
            "check_invariants": False,
        }
        if not args:
            args = ((0,),)
        if isinstance(args[0], int):
            args = (args,)
        return torch.sparse_coo_tensor(*args, **options | kwargs)

    return wrapped


def install() -> None:
    torch.Tensor.new = _wrap_new(torch.Tensor.new)  # type: ignore[method-assign]
