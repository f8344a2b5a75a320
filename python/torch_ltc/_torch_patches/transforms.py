"""Makes `torch.func.functionalize` call the function directly for lazy tensors.

In torch 2.13 the transform would wrap tensors that are already functional, which fails an
internal assert. A traced graph has neither writes nor views anyway.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch.utils._pytree import tree_leaves


def _has_lazy(*values: Any) -> bool:
    return any(
        isinstance(leaf, torch.Tensor) and leaf.device.type == "lazy"
        for leaf in tree_leaves(values)
    )


def _wrap_functionalize(original: Callable) -> Callable:
    @functools.wraps(original)
    def functionalize(
        func: Callable[..., Any], *, remove: str = "mutations"
    ) -> Callable[..., Any]:
        transformed = original(func, remove=remove)

        @functools.wraps(transformed)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            if _has_lazy(args, kwargs):
                return func(*args, **kwargs)
            return transformed(*args, **kwargs)

        return wrapped

    return functionalize


def install() -> None:
    torch.func.functionalize = _wrap_functionalize(torch.func.functionalize)
