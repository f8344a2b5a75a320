"""Finds the origins of the constant numbers in a captured program."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from torch_ltc._capture.numbers import Numbers
from torch_ltc._capture.objects import CELL, DICT, IGNORED, ITEMS, LIST, Node, Objects

# Functions by which a program's number may follow from a number in Python.
_FORMS = (
    lambda v: v,
    lambda v: -v,
    lambda v: 1 - v,
    lambda v: 1 / v,
    lambda v: 1 / (1 - v),
)


def describe_constants(numbers: Numbers, objects: Objects) -> list[str]:
    """Returns a line for each constant number: "0.2 from Dropout.p at model.py:12"."""
    sources: dict[float, list[str]] = {}
    for value, name, word in _python_numbers(objects):
        for form in _FORMS:
            try:
                made = float(form(value))
            except (ZeroDivisionError, OverflowError):
                continue
            text = f"{name} at {objects.names.where(word)}"
            sources.setdefault(made, []).append(text)
    lines = {}
    for place in numbers.constants():
        value = numbers.recorded[place]
        known = sources.get(float(value), ["the function's code"])
        lines[f"{value:g} from {known[0]}"] = None
    # List all floats that the code reads, because they may be attributes of ops, which the
    # numbers of the program don't include.
    for value, name, word in _python_numbers(objects):
        if type(value) is float:
            lines[f"{value:g} from {name} at {objects.names.where(word)}"] = None
    return list(lines)


def _python_numbers(objects: Objects) -> Iterator[tuple[float, str, str]]:
    """Yields the numbers that the code reads, each with its description and the name by
    which the code reads it."""
    owners = {id(vars(module)): module for _, module in objects.modules}
    for node in objects.nodes:
        if node.kind in (DICT, ITEMS):
            keys = node.keys
        elif node.kind in (CELL, LIST):
            keys = range(len(node.values))
        else:
            continue
        for key, value in zip(keys, node.values):
            if type(value) in (int, float) and value is not IGNORED:
                yield value, *_name(node, key, owners.get(id(node.owner)))


def _name(node: Node, key: object, module: torch.nn.Module | None) -> tuple[str, str]:
    if module is not None:
        return f"{type(module).__name__}.{key}", str(key)
    if node.kind == CELL:
        return node.path, node.path
    if node.path.endswith(".") or not node.path:
        return f"{node.path}{key}", str(key)
    root = node.path.split("[")[0].rpartition(".")[2]
    return f"{node.path}[{key!r}]", root
