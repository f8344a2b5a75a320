"""Supports nested tensors on device lazy.

Strided nested tensors are created on the CPU and moved, because their constructor (torch
2.13) asserts a known device. Jagged ones are tensor subclasses (subclasses.py).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch.nested._internal import nested_tensor as jagged

from torch_ltc._backend import bindings
from torch_ltc._torch_patches.subclasses import is_lazy_device


def _is_lazy(value: Any) -> bool:
    if isinstance(value, torch.Tensor):
        return value.device.type == "lazy"
    if isinstance(value, (list, tuple)):
        return any(map(_is_lazy, value))
    return is_lazy_device(value)


def _wrap_jagged(function: Callable[..., Any]) -> Callable[..., Any]:
    """Makes a function for jagged nested tensors register kernels that bypass
    functionalization: the op that it calls has a tensor subclass as an operand."""

    @functools.wraps(function)
    def make(values: Any, *args: Any, **kwargs: Any) -> Any:
        if _is_lazy(values):
            bindings().pass_functionalization()
        return function(values, *args, **kwargs)

    return make


def _on_cpu(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [_on_cpu(v) for v in value]
    return value.cpu() if isinstance(value, torch.Tensor) else value


def _wrap_strided(original: Callable[..., Any], is_new: bool) -> Callable[..., Any]:
    """Makes a constructor create strided nested tensors for device lazy on the CPU. The
    device is `device` if given, otherwise that of the first argument. With `is_new`, the
    nested tensor is a leaf: no gradient flows to the tensors in it."""

    @functools.wraps(original)
    def make(source: Any, *args: Any, **kwargs: Any) -> Any:
        device = kwargs.get("device")
        is_jagged = kwargs.get("layout") is torch.jagged
        if is_jagged or not _is_lazy(source if device is None else device):
            return original(source, *args, **kwargs)
        kwargs["device"] = torch.device("cpu")
        requires_grad = kwargs.pop("requires_grad", False)
        made = original(_on_cpu(source), *args, **kwargs).to("lazy")
        return made.detach().requires_grad_(requires_grad) if is_new else made

    return make


def _wrap_from_mask(original: Callable[..., torch.Tensor]) -> Callable[..., Any]:
    """Makes a function create nested tensors for device lazy on the CPU.
    `nn.TransformerEncoder` in evaluation mode calls this function to convert padded
    sequences to a nested tensor."""

    @functools.wraps(original)
    def make(t: torch.Tensor, mask: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        if not _is_lazy(t) or not _is_lazy(mask):
            return original(t, mask, *args, **kwargs)
        return original(t.cpu(), mask.cpu(), *args, **kwargs).to(t.device)

    return make


def install() -> None:
    nested: Any = torch.nested
    nested.nested_tensor = _wrap_strided(nested.nested_tensor, is_new=True)
    nested.as_nested_tensor = _wrap_strided(nested.as_nested_tensor, is_new=False)
    for name in (
        "nested_view_from_values_offsets",
        "nested_view_from_values_offsets_lengths",
    ):
        setattr(jagged, name, _wrap_jagged(getattr(jagged, name)))
    torch._nested_tensor_from_mask = _wrap_from_mask(torch._nested_tensor_from_mask)
