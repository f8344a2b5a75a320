"""What PyTorch (2.13) decides by the name of a device, and lazy isn't one it knows.

`Tensor.new` of a sparse tensor, which torch.optim.SparseAdam calls, and the dtype
that the chunked `linear_cross_entropy` adds in, which is the CPU's here.
"""

from __future__ import annotations

import functools
from typing import Any

import torch
from torch.nn.modules.linear_cross_entropy_options import LinearCrossEntropyOptions


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


def _wrap_adjust(adjust: Any) -> Any:
    @functools.wraps(adjust)
    def wrapped(self: LinearCrossEntropyOptions, *args: Any, **kwargs: Any) -> Any:
        def name_cpu(value: Any) -> Any:
            of_lazy = isinstance(value, torch.device) and value.type == "lazy"
            return torch.device("cpu") if of_lazy else value

        kwargs = {name: name_cpu(value) for name, value in kwargs.items()}
        return adjust(self, *map(name_cpu, args), **kwargs)

    return wrapped


def install() -> None:
    options = LinearCrossEntropyOptions
    options._adjust = _wrap_adjust(options._adjust)  # type: ignore[method-assign]
    torch.Tensor.new = _wrap_new(torch.Tensor.new)  # type: ignore[method-assign]
