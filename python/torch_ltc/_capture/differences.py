"""Describes changes between two snapshots of the objects of a captured step."""

from __future__ import annotations

from typing import Any, NamedTuple

from torch_ltc._capture.objects import (
    ABSENT,
    ATTRIBUTE,
    CELL,
    DICT,
    HELD,
    IGNORED,
    ITEMS,
    LIST,
    PLAIN,
    PROBE,
    TENSOR,
    Node,
    Objects,
    same,
)


class Difference(NamedTuple):
    kind: str  # "a module's training mode changed: ", or ""
    name: str  # "model.2.p"
    change: str  # "changed from 0.1 to 0.5"

    def __str__(self) -> str:
        return f"{self.kind}{self.name} {self.change}"


def difference(old: Objects, new: Objects) -> Difference | None:
    """Returns the first difference, or None if nothing that is compared has changed.
    Gradients aren't compared."""
    for before, now in zip(old.nodes, new.nodes):
        if before.owner is not now.owner or before.kind != now.kind:
            return Difference("", now.path.rstrip("."), "is a different object")
        found = (_of_tensor if before.kind == TENSOR else _of_container)(before, now)
        if found:
            return found
    if len(old.nodes) != len(new.nodes):
        return Difference("", "the function", "refers to more or fewer objects")
    return None


def _of_tensor(before: Node, now: Node) -> Difference | None:
    path = before.path
    if before.values[0] != now.values[0]:
        values = f"{before.values[0]} to {now.values[0]}"
        return Difference(
            "a parameter's requires_grad changed: ", path, f"changed from {values}"
        )
    if before.values[1] != now.values[1]:
        return Difference("", path, "was written on the CPU")
    if before.values[3] != now.values[3]:
        return Difference("", path, "has different hooks")
    return None


def of_gradients(node: Node) -> str:
    """Describes the change of a gradient, which `difference` doesn't compare."""
    if node.kind == HELD:
        return "something else holds the gradient of an earlier step"
    if node.kind != TENSOR:
        return f"{node.path.rstrip('.')} changed"
    if node.values[2] is None:
        return f"{node.path}.grad isn't None any more"
    if node.owner.grad is None:
        return f"{node.path}.grad is None"
    return f"{node.path}.grad is a different tensor"


def _of_container(before: Node, now: Node) -> Difference | None:
    if same(before.keys, now.keys) and same(before.values, now.values):
        return None
    old, new = _entries(before), _entries(now)
    if before.kind == LIST and len(old) != len(new):
        change = f"has {len(new)} elements instead of {len(old)}"
        return Difference("", before.path, change)
    for key in [*old, *(k for k in new if k not in old)]:
        a, b = old.get(key, ABSENT), new.get(key, ABSENT)
        if not same(a, b):
            return Difference(
                _kind_of_change(before, key), _name(before, key), _change(a, b)
            )
    if list(old) != list(new):
        return Difference("", before.path.rstrip("."), "has a different order")
    return None


def _entries(node: Node) -> dict[Any, Any]:
    """Returns the entries of a node that are compared."""
    keys: Any = range(len(node.values))
    if node.kind in (DICT, ITEMS):
        keys = [key if type(key) in PLAIN else id(key) for key in node.keys]
    return {k: v for k, v in zip(keys, node.values) if v is not IGNORED}


def _name(node: Node, key: Any) -> str:
    if node.kind in (CELL, ATTRIBUTE, PROBE):
        return node.path
    if not node.path:
        return str(key)
    if node.path.endswith("."):
        return f"{node.path}{key}"
    return f"{node.path}[{key!r}]"


def _kind_of_change(node: Node, key: Any) -> str:
    if node.kind != DICT:
        return ""
    if key == "training":
        return "a module's training mode changed: "
    if key == "state" and "param_groups" in node.keys:
        return "an optimizer's state was replaced: "
    if "params" in node.keys and "lr" in node.keys:
        return "an option of an optimizer changed: "
    if node.is_table:
        return "a module has a different parameter, buffer or child: "
    return ""


def _change(a: Any, b: Any) -> str:
    if a is ABSENT:
        return f"is new: {_text(b)}"
    if b is ABSENT:
        return "is gone"
    if type(a) in PLAIN or type(b) in PLAIN or type(a) is not type(b):
        return f"changed from {_text(a)} to {_text(b)}"
    return f"is another {type(b).__name__}"


def _text(value: Any) -> str:
    if type(value) in PLAIN or isinstance(value, tuple):
        text = repr(value)
        return text if len(text) < 80 else text[:77] + "..."
    return f"a {type(value).__name__}"
