"""Higher-order ops (`torch.cond`, `while_loop`, `scan`, `associative_scan`, `map`) of lazy tensors.

Outside torch.compile, PyTorch compiles them with TorchDynamo, which has no fake tensors
of this device, and searches for a kernel by the dispatch keys of the operands, which
include ours. Instead, Python runs what they denote: the branch, the loop. Gradients are
those of the ops that run; the predicates of `cond` and `while_loop` are read.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch._C import DispatchKey
from torch._ops import HigherOrderOperator
from torch.utils._python_dispatch import _len_torch_dispatch_stack
from torch.utils._pytree import tree_leaves

#: Loops whose iteration count is a size, so that a trace of all iterations is one
#: program.
UNROLLED = ("associative_scan", "map_impl", "scan")


def plain_kernel(op: HigherOrderOperator) -> Callable | None:
    """Runs the op's functions on their arguments, and does nothing else."""
    return op.py_kernels.get(DispatchKey.CompositeExplicitAutograd)


def _has_lazy(values: Any) -> bool:
    return any(
        type(leaf) in (torch.Tensor, torch.nn.Parameter) and leaf.device.type == "lazy"
        for leaf in tree_leaves(values)
    )


def _is_plain_call(values: Any) -> bool:
    return (
        _len_torch_dispatch_stack() == 0
        and torch._C._functorch.peek_interpreter_stack() is None
        and _has_lazy(values)
    )


def _wrap_dispatch(original: Callable) -> Callable:
    @functools.wraps(original)
    def dispatch(
        self: HigherOrderOperator, /, dispatch_key: Any, *args: Any, **kwargs: Any
    ) -> Any:
        kernel = plain_kernel(self)
        if kernel and _is_plain_call((args, kwargs)):
            return kernel(*args, **kwargs)
        return original(self, dispatch_key, *args, **kwargs)

    return dispatch


def _wrap_compile(original: Callable) -> Callable:
    @functools.wraps(original)
    def compile_and_call(fn: Callable, args: Any, kwargs: Any = None) -> Any:
        if _is_plain_call((args, kwargs)):
            return fn(*args, **(kwargs or {}))
        return original(fn, args, kwargs)

    return compile_and_call


def install() -> None:
    import torch._higher_order_ops.utils as hops

    op: Any = HigherOrderOperator
    op.dispatch = _wrap_dispatch(op.dispatch)
    hops._hop_compile_and_call = _wrap_compile(hops._hop_compile_and_call)
