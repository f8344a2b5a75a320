"""Prints everything on which torch_ltc relies in this Python's torch, as JSON.

    python torch_facts.py < wanted.json > facts.json

wanted.json has "ops" (names with overloads, "aten::add.Tensor"; "*" adds all other aten
ops), "names" ("torch.Tensor new_tensor": owner and attribute) and "headers" (relative
to torch's include folder). This program never imports torch_ltc, so it runs in any
environment.
"""

from __future__ import annotations

import importlib
import inspect
import json
import os
import sys
from pathlib import Path
from typing import Any

os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"

import torch

#: Dispatch keys whose kernels are compared: the kernels of an op determine whether the
#: dispatcher decomposes the op before device lazy sees it.
KEYS = (
    "CompositeImplicitAutograd", "CompositeExplicitAutograd",
    "CompositeExplicitAutogradNonFunctional", "CPU", "Meta", "Autograd",
    "Functionalize", "ADInplaceOrView",
)  # fmt: skip


def schemas() -> dict[str, str]:
    found = {}
    for schema in torch._C._jit_get_all_schemas():
        overload = f".{schema.overload_name}" if schema.overload_name else ""
        found[f"{schema.name}{overload}"] = str(schema)
    return found


def registrations(op: str) -> list[str]:
    has = torch._C._dispatch_has_kernel_for_dispatch_key
    try:
        return [key for key in KEYS if has(op, key)]
    except RuntimeError:  # the op is only declared for TorchScript
        return []


def resolve(owner: str) -> Any:
    """Returns the module or class `owner`; None if it doesn't exist."""
    parts = owner.split(".")
    for end in range(len(parts), 0, -1):
        try:
            value = importlib.import_module(".".join(parts[:end]))
        except ImportError:
            continue
        for part in parts[end:]:
            value = getattr(value, part, None)
        return value
    return None


def text_of(owner: str, name: str) -> str | None:
    """Returns the source of a name, or its signature or class if there is no source; None
    if the name doesn't exist."""
    holder = resolve(owner)
    if holder is None or not hasattr(holder, name):
        return None
    value = getattr(holder, name)
    try:
        return inspect.getsource(value)
    except (OSError, TypeError):
        pass
    try:
        return f"{name}{inspect.signature(value)}"
    except (TypeError, ValueError):
        return f"{type(value).__name__} {name}"


def header_text(path: str) -> str | None:
    file = Path(torch.__file__).parent / "include" / path
    api = file.parents[len(Path(path).parts) - 1] / "torch/csrc/api/include" / path
    for candidate in (file, api):
        if candidate.exists():
            return candidate.read_text(errors="replace")
    return None


def facts(wanted: dict[str, list[str]]) -> dict[str, Any]:
    known = schemas()
    aten = [op for op in known if op.startswith("aten::")]
    ops = {op for op in wanted["ops"] if op != "*"}
    ops |= set(aten) if "*" in wanted["ops"] else set()
    return {
        "version": torch.__version__,
        "schemas": {op: known.get(op) for op in sorted(ops)},
        "kernels": {op: registrations(op) for op in sorted(ops) if op in known},
        "names": {pair: text_of(*pair.split()) for pair in wanted["names"]},
        "headers": {path: header_text(path) for path in wanted["headers"]},
    }


if __name__ == "__main__":
    json.dump(facts(json.load(sys.stdin)), sys.stdout)
