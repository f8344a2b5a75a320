"""Custom ops (`torch.library.custom_op`) whose kernel is Python for all devices.

PyTorch calls such a kernel below functionalisation, where a write in place through
a view reaches nothing but the view (torch 2.13). Ours for device lazy goes back
above it: what the kernel does is traced like the rest of the program.

Ops that write to their arguments it doesn't take at all. Those run above it; so do
the ones of `torch.library.define()`, which ltc_backend/tracer/custom_ops.cpp has
kernels for.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch._library.autograd import make_autograd_impl
from torch.utils._pytree import tree_map_only

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
        args, kwargs = tree_map_only(torch.Tensor, _functional, (args, kwargs))
        above = torch._C._SetExcludeDispatchKeyGuard(
            torch._C.DispatchKey.Functionalize, False
        )
        with above:
            result = definition._backend_fns[None](*args, **kwargs)
        return tree_map_only(torch.Tensor, _value, result)

    return kernel


class _Redirected:
    """An op below whose autograd kernel comes another than the dispatcher's."""

    def __init__(self, op: Any, kernel: Callable) -> None:
        self._op, self._kernel = op, kernel

    def __getattr__(self, name: str) -> Any:
        return getattr(self._op, name)

    def __str__(self) -> str:
        return str(self._op)

    def redispatch(self, _keys: Any, *args: Any, **kwargs: Any) -> Any:
        return self._kernel(*args, **kwargs)


def _writing_kernel(definition: Any) -> Callable:
    def kernel(*args: Any, **kwargs: Any) -> Any:
        functions = definition._backend_fns
        if function := functions.get("lazy") or functions.get(None):
            return function(*args, **kwargs)
        if "cpu" not in functions:
            raise NotImplementedError(
                f"{definition._qualname} has no kernel for device 'lazy' or 'cpu': "
                "give it one with register_kernel()"
            )
        lazy = torch._C.DispatchKeySet(torch._C.DispatchKey.Lazy)
        return definition._opoverload.redispatch(lazy, *args, **kwargs)

    return kernel


def _register(definition: Any) -> None:
    name = definition._qualname
    schema = definition._opoverload._schema
    if name in _libraries or schema._is_view_op():
        return
    if schema.is_mutable:
        # Not at Functionalize, where torch.compile would find it for the CPU too.
        redirected: Any = _Redirected(
            definition._opoverload, _writing_kernel(definition)
        )
        kernel, key = make_autograd_impl(redirected, definition), "AutogradLazy"
    elif None in definition._backend_fns and "lazy" not in definition._backend_fns:
        kernel, key = _kernel(definition), "Lazy"
    else:
        return
    library = torch.library.Library(name.partition("::")[0], "IMPL")
    library.impl(definition._name, kernel, key, with_keyset=schema.is_mutable)
    _libraries[name] = library


def _forget(definition: Any) -> None:
    """The user has a kernel for device lazy."""
    if library := _libraries.pop(definition._qualname, None):
        library._destroy()


def _register_when_defined(custom_ops: Any) -> None:
    define = torch.library.Library.define

    @functools.wraps(define)
    def wrapper(self: Any, schema: str, *args: Any, **kwargs: Any) -> str:
        name = define(self, schema, *args, **kwargs)
        if self not in custom_ops.OPDEF_TO_LIB.values():
            bindings().register_new_custom_ops()
        return name

    torch.library.Library.define = wrapper  # type: ignore[method-assign]


def install() -> None:
    from torch._library import custom_ops

    _register_when_defined(custom_ops)
    definition_class = custom_ops.CustomOpDef
    original = definition_class.register_kernel

    def register_kernel(self: Any, device_types: Any, fn: Any = None, /) -> Any:
        names = [device_types] if isinstance(device_types, str) else device_types
        if names and "lazy" in names and not self._opoverload._schema.is_mutable:
            _forget(self)
        decorator = original(self, device_types)

        def register(function: Callable) -> Callable:
            answer = decorator(function)
            _register(self)
            return answer

        return register if fn is None else register(fn)

    definition_class.register_kernel = register_kernel
    for definition in list(custom_ops.OPDEFS.values()):
        # PyTorch's own (torch 2.13 has 113) write through no views, and to
        # register them takes a third of our part of `import torch`.
        if definition._namespace != "prims":
            _register(definition)
