"""Replacements for transforms whose PyTorch implementation doesn't support lazy
tensors.

- `functionalize` (torch 2.13) would wrap tensors that are functional already, which is
an
  internal assert. A recorded graph has neither writes nor views anyway, so the
  replacement returns the function itself.
- `linearize` traces the derivative by Python objects, which functionalization unwraps: all of
  it would be a constant. The derivative is `jvp`'s, recorded at each call.
- Selective checkpoints compare the ops of both runs except for `detach`, whose number
differs;
  functionalization has made that a `detach_copy`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch.utils import checkpoint
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


def _wrap_linearize(original: Callable) -> Callable:
    @functools.wraps(original)
    def linearize(func: Callable[..., Any], *primals: Any) -> tuple[Any, Callable]:
        if not _has_lazy(primals):
            return original(func, *primals)
        output = func(*primals)

        def derivative(*tangents: Any) -> Any:
            return torch.func.jvp(func, primals, tangents)[1]

        return output, derivative

    return linearize


def install() -> None:
    torch.func.functionalize = _wrap_functionalize(torch.func.functionalize)
    torch.func.linearize = _wrap_linearize(torch.func.linearize)
    checkpoint.SAC_IGNORED_OPS.add(torch.ops.aten.detach_copy.default)
