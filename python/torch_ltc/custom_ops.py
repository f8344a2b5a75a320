"""Custom ops (`torch.library.custom_op`) whose kernel is Python for all devices.

PyTorch calls such a kernel below functionalisation, where a write in place through
a view reaches nothing but the view (torch 2.13). Ours for device lazy goes back
above it: what the kernel does is traced like the rest of the program.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils._pytree import tree_map_only

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


def _register(definition: Any) -> None:
    name = definition._qualname
    schema = definition._opoverload._schema
    if name in _libraries or schema.is_mutable or schema._is_view_op():
        return
    library = torch.library.Library(name.partition("::")[0], "IMPL")
    library.impl(definition._name, _kernel(definition), "Lazy")
    _libraries[name] = library


def _forget(definition: Any) -> None:
    """The user has a kernel for device lazy."""
    if library := _libraries.pop(definition._qualname, None):
        library._destroy()


def install() -> None:
    from torch._library import custom_ops

    definition_class = custom_ops.CustomOpDef
    original = definition_class.register_kernel

    def register_kernel(self: Any, device_types: Any, fn: Any = None, /) -> Any:
        names = [device_types] if isinstance(device_types, str) else device_types
        if names is not None and "lazy" in names:
            _forget(self)
        decorator = original(self, device_types)

        def register(function: Callable) -> Callable:
            answer = decorator(function)
            if None in self._backend_fns and "lazy" not in self._backend_fns:
                _register(self)
            return answer

        return register if fn is None else register(fn)

    definition_class.register_kernel = register_kernel
    for definition in list(custom_ops.OPDEFS.values()):
        # PyTorch's own (torch 2.13 has 113) write through no views, and to
        # register them takes a third of our part of `import torch`.
        if None in definition._backend_fns and definition._namespace != "prims":
            _register(definition)
