"""`torch.func.functionalize`, which in torch 2.13 would wrap tensors that are functional
already: an internal assert. A recorded graph has neither writes nor views anyway, so the
replacement returns the function itself.
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
