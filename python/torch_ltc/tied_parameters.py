"""Parameters that modules share stay shared when the modules move.

Between CPU and CUDA `nn.Module.to` writes `parameter.data`, so the parameter is
the same object afterwards. Lazy tensors and CPU tensors can't take each other's
place in that way (torch 2.13: `torch._has_compatible_shallow_copy_type`), so each
module gets a new parameter of its own, and an output layer that was tied to an
embedding would train apart from it.
"""

from __future__ import annotations

import functools
import threading

import torch
from torch import nn

Owners = list[tuple[nn.Module, str]]

_moving = threading.local()


def install() -> None:
    """Wraps `nn.Module._apply`, which `to`, `cpu` and `float` go through."""
    original = nn.Module._apply
    if hasattr(original, "__wrapped__"):
        return

    @functools.wraps(original)
    def apply(self: nn.Module, fn, recurse: bool = True) -> nn.Module:
        if getattr(_moving, "inside", False) or not recurse:
            return original(self, fn, recurse)
        tied = _tied(self)
        _moving.inside = True
        try:
            return original(self, fn, recurse)
        finally:
            _moving.inside = False
            for owners in tied:
                _tie(owners)

    nn.Module._apply = apply


def _tied(module: nn.Module) -> list[Owners]:
    """Places that hold one parameter, of those that are held at several."""
    places: dict[int, Owners] = {}
    for owner in module.modules():
        for name, parameter in owner._parameters.items():
            if parameter is not None:
                places.setdefault(id(parameter), []).append((owner, name))
    return [owners for owners in places.values() if len(owners) > 1]


def _tie(owners: Owners) -> None:
    (first, first_name), *others = owners
    parameter = first._parameters[first_name]
    if not isinstance(parameter, torch.nn.Parameter):
        return
    for owner, name in others:
        if owner._parameters[name] is not parameter:
            setattr(owner, name, parameter)
