"""Supports custom ops (`torch.library.custom_op`) whose Python kernel is for all devices.

Below functionalization, an in-place write through a view changes only the view (torch
2.13), and calls on tensor subclasses arrive there. Our kernel for device lazy enables
functionalization again before it calls the Python kernel, so that the kernel's ops are
traced like the rest of the program. Other calls, and all ops that declare that they write
to arguments, arrive at ltc_backend/tracing/custom_ops.cpp.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch._library.utils import _c_check_aliasing_constraint
from torch.utils._pytree import tree_leaves, tree_map_only

from torch_ltc._backend import bindings

_libraries: dict[str, torch.library.Library] = {}


def _functional(tensor: torch.Tensor) -> torch.Tensor:
    if tensor.device.type != "lazy" or torch._is_functional_tensor(tensor):
        return tensor
    return torch._to_functional_tensor(tensor)


def _value(tensor: torch.Tensor) -> torch.Tensor:
    if not torch._is_functional_tensor(tensor):
        return tensor
    torch._sync(tensor)
    return torch._from_functional_tensor(tensor)


def _kernel(definition: Any) -> Callable:
    def kernel(*args: Any, **kwargs: Any) -> Any:
        is_wrapped = any(
            isinstance(leaf, torch.Tensor) and torch._is_functional_tensor(leaf)
            for leaf in tree_leaves((args, kwargs))
        )
        args, kwargs = tree_map_only(torch.Tensor, _functional, (args, kwargs))
        keys = torch._C.DispatchKey
        with (
            torch._C._SetExcludeDispatchKeyGuard(keys.Functionalize, False),
            torch._C._SetExcludeDispatchKeyGuard(keys.PythonTLSSnapshot, False),
        ):
            result = definition._backend_fns[None](*args, **kwargs)
        _c_check_aliasing_constraint(
            definition._name,
            args,
            kwargs,
            result,
            lambda: inspect.getmodule(definition._backend_fns[None]),
        )
        if is_wrapped:
            return result
        return tree_map_only(torch.Tensor, _value, result)

    return kernel


def _register(definition: Any) -> None:
    name = definition._qualname
    schema = definition._opoverload._schema
    functions = definition._backend_fns
    if name in _libraries or schema._is_view_op() or schema.is_mutable:
        return
    if None not in functions or "lazy" in functions:
        return
    if definition._namespace == "_c10d_functional":
        return  # its result is a subclass, which functionalization must not wrap
    library = torch.library.Library(name.partition("::")[0], "IMPL")
    library.impl(definition._name, _kernel(definition), "Lazy")
    _libraries[name] = library


def _forget(definition: Any) -> None:
    """Removes our kernel, because the user registers a kernel for device lazy."""
    if library := _libraries.pop(definition._qualname, None):
        library._destroy()


def _register_when_defined() -> None:
    define = torch.library.Library.define

    @functools.wraps(define)
    def wrapper(self: Any, *args: Any, **kwargs: Any) -> str:
        name = define(self, *args, **kwargs)
        bindings().register_new_custom_ops()
        return name

    torch.library.Library.define = wrapper  # type: ignore[method-assign]


def _hide_kernels_of_ours() -> None:
    """Hides our kernels at Functionalize from Python: torch.compile only functionalizes
    mutable ops without a kernel at this key (torch 2.13). Other devices aren't affected,
    because our kernels only change calls with lazy tensors."""
    has_kernel = torch._C._dispatch_has_kernel_for_dispatch_key

    @functools.wraps(has_kernel)
    def wrapper(name: str, key: Any) -> bool:
        return has_kernel(name, key) and not (
            key in ("Functionalize", torch._C.DispatchKey.Functionalize)
            and bindings().is_our_kernel_at_functionalize(name)
        )

    torch._C._dispatch_has_kernel_for_dispatch_key = wrapper


def install() -> None:
    from torch._library import custom_ops

    _register_when_defined()
    _hide_kernels_of_ours()
    definition_class = custom_ops.CustomOpDef
    original = definition_class.register_kernel

    def register_kernel(self: Any, device_types: Any, fn: Any = None, /) -> Any:
        names = [device_types] if isinstance(device_types, str) else device_types
        if names and "lazy" in names:
            _forget(self)
        decorator = original(self, device_types)

        def register(function: Callable) -> Callable:
            answer = decorator(function)
            _register(self)
            return answer

        return register if fn is None else register(fn)

    definition_class.register_kernel = register_kernel
    for definition in list(custom_ops.OPDEFS.values()):
        # Skips PyTorch's own custom ops (torch 2.13 has 113): they don't write through
        # views, and registering them would take a third of the time that this package
        # adds to `import torch`.
        if definition._namespace != "prims":
            _register(definition)
