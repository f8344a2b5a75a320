"""Supports transforms of `torch.func` with lazy tensors.

In torch 2.13, `functionalize` would wrap tensors that are already functional, which fails
an internal assert. It calls the function directly: a traced graph has neither writes nor
views anyway.

If the memory of a view was written, its gradient function is derived at first use. On
device lazy, this repeats the calls that made the view, on wrappers that end with the
transform. So the results' gradient functions are derived before the transform ends.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch.utils._pytree import tree_leaves


def _lazy_leaves(*values: Any) -> list[torch.Tensor]:
    return [
        leaf
        for leaf in tree_leaves(values)
        if isinstance(leaf, torch.Tensor) and leaf.device.type == "lazy"
    ]


def _wrap_functionalize(original: Callable) -> Callable:
    @functools.wraps(original)
    def functionalize(
        func: Callable[..., Any], *, remove: str = "mutations"
    ) -> Callable[..., Any]:
        transformed = original(func, remove=remove)

        @functools.wraps(transformed)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            if _lazy_leaves(args, kwargs):
                return func(*args, **kwargs)
            return transformed(*args, **kwargs)

        return wrapped

    return functionalize


def _wrap_undo(original: Callable) -> Callable:
    @functools.wraps(original)
    def undo_create_differentiable(results: Any, level: int | None = None) -> Any:
        for leaf in _lazy_leaves(results):
            leaf.grad_fn  # noqa: B018
        return original(results, level)

    return undo_create_differentiable


def install() -> None:
    torch.func.functionalize = _wrap_functionalize(torch.func.functionalize)
    transforms = torch._functorch.eager_transforms
    transforms._undo_create_differentiable = _wrap_undo(
        transforms._undo_create_differentiable
    )
