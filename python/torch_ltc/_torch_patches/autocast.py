"""Makes PyTorch accept `torch.autocast("lazy")`.

torch 2.13 has a list of devices that support autocast, and "lazy" isn't in it. Lazy
tensors have the autocast key of a device in that list (ltc_backend/ops/autocast.cpp), so
for "lazy", PyTorch's functions use the autocast state of that device.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from torch_ltc._backend import bindings

#: The device whose autocast state is used for "lazy".
_STAND_IN = "hpu"

#: The device names that users pass.
_NAMES = ("lazy", "lazy:0")

_BY_DEVICE = (
    "get_autocast_dtype",
    "is_autocast_enabled",
    "set_autocast_dtype",
    "set_autocast_enabled",
)


def _of_lazy(original: Callable) -> Callable:
    @functools.wraps(original)
    def function(*args: Any, **kwargs: Any) -> Any:
        if args and args[0] in _NAMES:
            args = (_STAND_IN, *args[1:])
        elif kwargs.get("device_type") in _NAMES:
            kwargs["device_type"] = _STAND_IN
        return original(*args, **kwargs)

    return function


def _replace(name: str, function: Callable) -> None:
    setattr(torch, name, function)
    setattr(torch._C, name, function)


def install() -> None:
    """Makes PyTorch's autocast functions accept "lazy"."""
    enable = torch.set_autocast_enabled

    @functools.wraps(enable)
    def set_autocast_enabled(*args: Any, **kwargs: Any) -> None:
        if _STAND_IN in (*args, kwargs.get("device_type")):
            bindings().prepare_autocast()
        enable(*args, **kwargs)

    _replace("set_autocast_enabled", set_autocast_enabled)
    for name in _BY_DEVICE:
        _replace(name, _of_lazy(getattr(torch, name)))
    torch._C._is_autocast_available = _of_lazy(torch._C._is_autocast_available)

    original = torch.clear_autocast_cache

    @functools.wraps(original)
    def clear_autocast_cache() -> None:
        original()
        bindings().clear_autocast_cache()

    torch.clear_autocast_cache = clear_autocast_cache
