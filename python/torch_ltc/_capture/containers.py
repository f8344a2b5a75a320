"""Separates the tensors among a call's arguments or results from the containers and numbers
around them, which a replay compares or repeats."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import torch

from torch_ltc._capture.objects import PLAIN

_TENSORS = (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer)


class NotCapturable(Exception):
    """Raised if a replay couldn't repeat a call; the message is the reason."""


def flatten(value: Any, tensors: list[torch.Tensor]) -> Any:
    """Appends the tensors in `value` to `tensors`; returns the rest in comparable form."""
    if isinstance(value, torch.Tensor):
        tensors.append(value)
        return torch.Tensor if type(value) in _TENSORS else ("=", type(value), value)
    if isinstance(value, (tuple, list)):
        return (type(value), *[flatten(item, tensors) for item in value])
    if isinstance(value, dict):
        items = [(key, flatten(item, tensors)) for key, item in value.items()]
        return (type(value), *items)
    if type(value) is float:  # 0.0 and -0.0 are different arguments
        return ("=", repr(value), value)
    return ("=", type(value), value)  # 1, 1.0 and True are different arguments


def rebuild(shape: Any, tensors: Any) -> Any:
    """Reverses `flatten` with the tensors of the iterator `tensors`."""
    if shape is torch.Tensor:
        return next(tensors)
    if shape[0] == "=":
        return shape[2]
    kind, *items = shape
    if issubclass(kind, dict):
        return kind((key, rebuild(item, tensors)) for key, item in items)
    values = [rebuild(item, tensors) for item in items]
    return kind(*values) if hasattr(kind, "_fields") else kind(values)


def leaves(shape: Any) -> list[Any]:
    """Returns the values in `shape` that aren't tensors. Raises NotCapturable for
    containers that `rebuild` can't create."""
    if shape is torch.Tensor:
        return []
    if shape[0] == "=":
        return [shape[2]]
    kind, *items = shape
    if kind not in (tuple, list, dict, OrderedDict) and not hasattr(kind, "_fields"):
        raise NotCapturable(f"a container of class {kind.__name__} can't be repeated")
    if issubclass(kind, dict):
        items = [item for _, item in items]
    return [leaf for item in items for leaf in leaves(item)]


def check_leaves(shape: Any, what: str, objects: tuple[type, ...] = ()) -> None:
    """Raises NotCapturable for leaves that can't be compared or repeated."""
    for leaf in leaves(shape):
        if type(leaf) not in PLAIN and not isinstance(leaf, objects):
            raise NotCapturable(
                f"{what} holds an object of class {type(leaf).__name__}; a captured step "
                "only accepts and returns tensors, numbers, strings and containers of them"
            )
