"""Calls `__torch_dispatch__` of tensor subclasses on device lazy.

Functionalization precedes `__torch_dispatch__` (torch 2.13), which would therefore get
functionalized ops, or no op at all. The first tensor of such a class makes ops on
subclasses bypass functionalization.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from torch_ltc._backend import bindings


def is_lazy_device(value: Any) -> bool:
    """Whether `value` is device lazy or its name."""
    is_device = isinstance(value, (str, torch.device))
    return is_device and str(value).partition(":")[0] == "lazy"


def _wrap_make_wrapper_subclass(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def _make_wrapper_subclass(*args: Any, **kwargs: Any) -> Any:
        given = (*args, kwargs.get("device"))
        if any(map(is_lazy_device, given)):
            bindings().pass_functionalization()
        return original(*args, **kwargs)

    return _make_wrapper_subclass


def _has_torch_dispatch(cls: Any) -> bool:
    method = getattr(cls, "__torch_dispatch__", None)
    return method is not None and method is not torch._C._disabled_torch_dispatch_impl


def _wrap_make_subclass(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def _make_subclass(cls: Any, data: Any, *args: Any, **kwargs: Any) -> Any:
        if _has_torch_dispatch(cls) and data.device.type == "lazy":
            bindings().pass_functionalization()
        return original(cls, data, *args, **kwargs)

    return _make_subclass


def _wrap_as_subclass(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def as_subclass(self: torch.Tensor, cls: Any) -> Any:
        if _has_torch_dispatch(cls) and self.device.type == "lazy":
            bindings().pass_functionalization()
        return original(self, cls)

    return as_subclass


def install() -> None:
    tensor: Any = torch.Tensor
    tensor._make_wrapper_subclass = staticmethod(
        _wrap_make_wrapper_subclass(tensor._make_wrapper_subclass)
    )
    tensor._make_subclass = staticmethod(_wrap_make_subclass(tensor._make_subclass))
    tensor.as_subclass = _wrap_as_subclass(tensor.as_subclass)
