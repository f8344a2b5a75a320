"""Prints the names of torch that torch_ltc replaces: "moment owner name" on each line.
The moment is "import", or "tensor" for the creation of the first lazy tensor.

This program compares torch's modules and classes before and after these moments, so it
needs TORCH_DEVICE_BACKEND_AUTOLOAD=0: otherwise `import torch` would load the package.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import torch
import torch._lazy.ts_backend
import torch._library.custom_ops
import torch.autograd.graph
import torch.jit
import torch.nested._internal.nested_tensor
import torch.nn.modules.linear_cross_entropy_options
import torch.optim
import torch.utils._foreach_utils
import torch.utils.checkpoint


def owners() -> Iterator[tuple[str, Any]]:
    for module_name, module in list(sys.modules.items()):
        if module_name.partition(".")[0] != "torch":
            continue
        yield module_name, module
        for name, value in list(vars(module).items()):
            if isinstance(value, type) and value.__module__ == module_name:
                yield f"{module_name}.{name}", value


def contents() -> dict[tuple[str, str], Any]:
    return {
        (owner, name): value
        for owner, holder in owners()
        for name, value in list(vars(holder).items())
    }


def differing(before: dict, after: dict) -> set[tuple[str, str]]:
    return {
        key
        for key, value in before.items()
        if (callable(value) or isinstance(value, staticmethod | classmethod))
        and after[key] is not value
    }


def replaced() -> list[tuple[str, str, str]]:
    before = contents()
    import torch_ltc  # noqa: F401 - its import replaces names

    at_import = differing(before, contents())
    torch.ones(2, device="lazy").sum().item()
    later = differing(before, contents()) - at_import
    return [("import", *key) for key in sorted(at_import)] + [
        ("tensor", *key) for key in sorted(later)
    ]


if __name__ == "__main__":
    for row in replaced():
        print(*row)
