"""Preserves the sharing of parameters between modules when the modules move.

Between CPU and CUDA, `nn.Module.to` assigns `parameter.data`, so the parameter stays the
same object. Lazy tensors and CPU tensors can't replace each other in that way (torch
2.13: `torch._has_compatible_shallow_copy_type`), so each module gets a new parameter, and
an output layer that was tied to an embedding would be trained separately. For the same
reason, parameters without sizes (of `nn.LazyLinear` and similar modules) would become
empty tensors.
"""

from __future__ import annotations

import functools
import threading

import torch
from torch import nn
from torch.nn.parameter import is_lazy

Owners = list[tuple[nn.Module, str]]

_moving = threading.local()


def install() -> None:
    """Wraps `nn.Module._apply`, which `to`, `cpu` and `float` use."""
    original = nn.Module._apply
    if hasattr(original, "__wrapped__"):
        return

    @functools.wraps(original)
    def apply(self: nn.Module, fn, recurse: bool = True) -> nn.Module:
        if getattr(_moving, "inside", False) or not recurse:
            return original(self, fn, recurse)
        tied = _tied(self)
        unsized = _unsized(self)
        _moving.inside = True
        try:
            return original(self, fn, recurse)
        finally:
            _moving.inside = False
            for owners in tied:
                _tie(owners)
            for place in unsized:
                _keep_unsized(*place)

    nn.Module._apply = apply


def _unsized(module: nn.Module) -> list[tuple[dict, str, type]]:
    """Returns the parameters and buffers that get their sizes from the first input: owner's
    dict, name and class of each."""
    return [
        (tensors, name, type(tensor))
        for owner in module.modules()
        for tensors in (owner._parameters, owner._buffers)
        for name, tensor in tensors.items()
        if is_lazy(tensor)
    ]


def _keep_unsized(tensors: dict, name: str, kind: type) -> None:
    moved = tensors[name]
    if not isinstance(moved, kind):
        tensors[name] = kind(
            moved.requires_grad, device=moved.device, dtype=moved.dtype
        )


def _tied(module: nn.Module) -> list[Owners]:
    """Returns the (module, name) pairs of each parameter that occurs more than once."""
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
