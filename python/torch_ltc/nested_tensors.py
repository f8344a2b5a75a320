"""Nested tensors aren't made on device lazy, and one sentence says so.

PyTorch's own constructors don't ask the device's kernels first (torch 2.13): a
strided one ends in an internal assertion, a jagged one in a crash.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch.nested._internal import nested_tensor as jagged

from torch_ltc._backend import bindings


def _is_lazy(value: Any) -> bool:
    if isinstance(value, torch.Tensor):
        return value.device.type == "lazy"
    if isinstance(value, (list, tuple)):
        return any(isinstance(v, torch.Tensor) and _is_lazy(v) for v in value)
    return isinstance(value, (str, torch.device)) and (
        torch.device(value).type == "lazy"
    )


def _refuse(name: str) -> None:
    line = bindings().current_line()
    raise NotImplementedError(
        f"Device 'lazy' has no nested tensors, so {name} can't make one there: pad the "
        "sequences instead (torch.nn.utils.rnn.pad_sequence), or keep nested tensors "
        "on the CPU and move dense results with .to('lazy')"
        + (f" (at {line})." if line else ".")
    )


def _checked(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """`device` decides where it is given, else the first argument."""

    @functools.wraps(function)
    def make(source: Any, *args: Any, **kwargs: Any) -> Any:
        device = kwargs.get("device")
        if _is_lazy(source if device is None else device):
            _refuse(name)
        return function(source, *args, **kwargs)

    return make


def install() -> None:
    for name in ("nested_tensor", "as_nested_tensor"):
        function = getattr(torch.nested, name)
        setattr(torch.nested, name, _checked(function, f"torch.nested.{name}"))
    for name in (
        "nested_view_from_values_offsets",
        "nested_view_from_values_offsets_lengths",
    ):
        setattr(jagged, name, _checked(getattr(jagged, name), "torch.nested"))
    # What moves one to the device makes it here.
    original = jagged.NestedTensor.__new__

    @functools.wraps(original)
    def new(cls: type, values: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        if _is_lazy(values):
            _refuse("torch.nested")
        return original(cls, values, *args, **kwargs)

    jagged.NestedTensor.__new__ = staticmethod(new)
