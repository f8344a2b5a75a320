"""Supports higher-order ops (`torch.cond`, `while_loop`, `scan`, `associative_scan`,
`map`) of lazy tensors.

Outside torch.compile, PyTorch compiles these ops with TorchDynamo, which has no fake
tensors of this device. PyTorch also looks up a kernel by the operands' dispatch keys, which
include a key of this backend. Instead, Python runs the branch or the loop. Gradients are
those of the ops that run; the predicates of `cond` and `while_loop` are read.

Under modes and torch.func, the kernel of the mode or the transform runs. All lazy tensors
have a key that precedes the keys of modes and transforms (locked_ops.cpp). Ops fall through
this key, but PyTorch's lookup of a kernel in Python doesn't, so `key_extractor` removes it.

torch.compile captures `checkpoint` as a higher-order op that doesn't restore the state of
random generators when it computes again. Without a compiler, which would do so, the op
becomes torch's own `checkpoint`.

`flex_attention` is a higher-order op, too: its dense form is traced, and tensors that
`score_mod` reads get gradients as well.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any

import torch
from torch._C import DispatchKey, DispatchKeySet
from torch._ops import HigherOrderOperator
from torch.utils._python_dispatch import _len_torch_dispatch_stack
from torch.utils._pytree import tree_leaves
from torch.utils.checkpoint import checkpoint

from torch_ltc._backend import bindings
from torch_ltc._torch_patches import import_hooks

#: Loops whose iteration count is a size, so that a trace of all iterations is one
#: program.
UNROLLED = ("associative_scan", "map_impl", "scan")


def plain_kernel(op: HigherOrderOperator) -> Callable | None:
    """Returns the kernel that only runs the op's functions on their arguments, or None."""
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
        if _has_lazy((args, kwargs)):
            return fn(*args, **(kwargs or {}))
        return original(fn, args, kwargs)

    return compile_and_call


def _wrap_keys(original: Callable) -> Callable:
    lock_keys = DispatchKeySet.from_raw_repr(bindings().lock_keys())

    @functools.wraps(original)
    def key_extractor(tensors: Any, key_mask: DispatchKeySet) -> DispatchKeySet:
        keys = original(tensors, key_mask) - lock_keys
        transformed = torch._C._dispatch_tls_local_include_set().has("Functionalize")
        if keys.has("Functionalize") and not transformed and _has_lazy(tensors):
            # Lazy tensors add this key, but a mode must get the user's tensors.
            keys = keys.remove(DispatchKey.Functionalize)
        return keys

    return key_extractor


def _accept_lazy(flex_attention: Any) -> None:
    original = flex_attention._validate_device

    @functools.wraps(original)
    def _validate_device(
        query: torch.Tensor, key: torch.Tensor, value: torch.Tensor
    ) -> None:
        if query.device.type != "lazy":
            original(query, key, value)

    flex_attention._validate_device = _validate_device


def _restore_generators(module: ModuleType) -> None:
    original = module.tag_activation_checkpoint_impl

    @functools.wraps(original)
    def checkpoint_again(gmod: Any, *args: Any, **kwargs: Any) -> Any:
        if not _is_plain_call(args):
            return original(gmod, *args, **kwargs)
        kwargs["use_reentrant"] = False
        if "_checkpoint_context_fn" in gmod.meta:
            kwargs["context_fn"] = gmod.meta["_checkpoint_context_fn"]

        def run(*values: Any) -> Any:
            return torch.fx.Interpreter(gmod).run(*values)

        return checkpoint(run, *args, **kwargs)

    module.tag_activation_checkpoint_impl = checkpoint_again  # type: ignore[attr-defined]


def install() -> None:
    import torch._higher_order_ops.utils as hops
    import torch._ops

    op: Any = HigherOrderOperator
    op.dispatch = _wrap_dispatch(op.dispatch)
    torch._ops.key_extractor = _wrap_keys(torch._ops.key_extractor)
    import_hooks.install(
        {
            "torch.nn.attention.flex_attention": _accept_lazy,
            "torch._higher_order_ops.wrap": _restore_generators,
        }
    )
    hops._hop_compile_and_call = _wrap_compile(hops._hop_compile_and_call)
