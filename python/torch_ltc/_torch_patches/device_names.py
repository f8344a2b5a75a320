"""Replaces functions in which PyTorch (2.13) has a list of devices that lacks "lazy".

These are `Tensor.new` of a sparse tensor, which torch.optim.SparseAdam calls, and the
choice of the dtype in which the chunked `linear_cross_entropy` accumulates; device lazy
uses the CPU's dtype. `new` and `new_tensor` of dense tensors derive the device from the
tensor's dispatch keys, and lazy tensors have a key that belongs to no device
(eager_semantics/locked_ops.cpp). Therefore the new tensor is created on the CPU and moved.

`torch.norm`, `nn.TransformerEncoder`, its layers and `nn.MultiheadAttention` use the CPU's
code for a list of devices, which ends with the name of the backend that has the key
PrivateUse1. For other devices their results differ from the CPU's: padded positions aren't
zero, and strides and errors are different. Therefore "lazy" is set as that name if no
backend uses the key.
"""

from __future__ import annotations

import functools
import warnings
from typing import Any

import torch
from torch.nn.modules.linear_cross_entropy_options import LinearCrossEntropyOptions


def _wrap_new(new: Any) -> Any:
    @functools.wraps(new)
    def wrapped(self: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
        if self.device.type != "lazy":
            return new(self, *args, **kwargs)
        if self.layout != torch.sparse_coo:
            if args and isinstance(args[0], torch.Tensor) and len(args) == 1:
                return args[0].detach()
            return new(_on_cpu(self), *args, **kwargs).to(self.device)
        # Avoids the warning about invariant checks: the caller already has a sparse tensor.
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


def _on_cpu(tensor: torch.Tensor) -> torch.Tensor:
    return torch.empty(0, dtype=tensor.dtype, device="cpu")


#: torch's warning (2.13).
_COPIES_TENSOR = (
    "To copy construct from a tensor, it is recommended to use "
    "sourceTensor.detach().clone() or sourceTensor.detach().clone().requires_grad_(True), "
    "rather than tensor.new_tensor(sourceTensor)."
)


def _wrap_new_tensor(new_tensor: Any) -> Any:
    @functools.wraps(new_tensor)
    def wrapped(
        self: torch.Tensor,
        data: Any,
        *,
        dtype: torch.dtype | None = None,
        device: Any = None,
        requires_grad: bool = False,
        **kwargs: Any,
    ) -> torch.Tensor:
        options = {"dtype": dtype, "requires_grad": requires_grad}
        if self.device.type != "lazy":
            return new_tensor(self, data, device=device, **options, **kwargs)
        place = self.device if device is None else device
        if isinstance(data, torch.Tensor):
            warnings.warn(_COPIES_TENSOR, stacklevel=2)
            made = data.detach().to(place, dtype or self.dtype, copy=True)
        else:
            made = new_tensor(_on_cpu(self), data, dtype=dtype, **kwargs).to(place)
        return made.requires_grad_(requires_grad)

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
    lists = torch.utils.backend_registration
    if lists._privateuse1_backend_name == "privateuseone":  # no backend uses the key
        lists._privateuse1_backend_name = "lazy"
    options = LinearCrossEntropyOptions
    options._adjust = _wrap_adjust(options._adjust)  # type: ignore[method-assign]
    torch.Tensor.new = _wrap_new(torch.Tensor.new)  # type: ignore[method-assign]
    torch.Tensor.new_tensor = _wrap_new_tensor(torch.Tensor.new_tensor)
