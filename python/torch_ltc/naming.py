"""Names for people: parameter names and module paths in dumps and messages.

While config `source_info`, `dump` or `backend` is on, the first call of an outermost
module names its parameters and buffers ("encoder.layer.0.weight"), and with
`source_info` the ops traced inside carry the path of the module that made
them. Otherwise no hook is installed and nothing is paid.
"""

from __future__ import annotations

import threading
import weakref
from typing import Any

import torch
from torch.nn.modules.module import (
    register_module_forward_hook,
    register_module_forward_pre_hook,
)

from torch_ltc._backend import bindings


def name_parameters(module: torch.nn.Module, prefix: str = "") -> int:
    """Names all lazy parameters and buffers of `module`; how many."""
    backend = bindings()
    count = 0
    for tensors in (module.named_parameters(prefix), module.named_buffers(prefix)):
        for name, tensor in tensors:
            if tensor.device.type == "lazy":
                backend.set_tensor_name(tensor, name)
                count += 1
    return count


class _Scopes(threading.local):
    """The calling thread's stack of module calls."""

    def __init__(self) -> None:
        self.stack: list[str] = []
        self.root: Any = lambda: None  # weak reference to the outermost module
        self.paths: dict[int, str] = {}  # id of a submodule -> its path

    def enter_root(self, module: torch.nn.Module) -> None:
        if self.root() is not module:
            self.root = weakref.ref(module)
            self.paths = {id(m): path for path, m in module.named_modules()}

    def path_of(self, module: torch.nn.Module) -> str:
        path = self.paths.get(id(module))
        if path is None:  # added after the first call
            root = self.root()
            if root is not None:
                self.paths = {id(m): p for p, m in root.named_modules()}
            path = self.paths.get(id(module), type(module).__name__)
        return path


_scopes = _Scopes()
_push: Any = None  # of the bindings, while hooks are installed
_pop: Any = None
_handles: list[Any] = []

# Modules whose parameters have names, with all their submodules.
_named: weakref.WeakSet[torch.nn.Module] = weakref.WeakSet()


def _name_once(module: torch.nn.Module, args: Any) -> None:
    if module not in _named:
        name_parameters(module)
        _named.update(module.modules())


# These two run for every call of a module: locals instead of attributes.
def _enter_scope(module: torch.nn.Module, args: Any) -> None:
    scopes = _scopes
    stack = scopes.stack
    if not stack:
        scopes.enter_root(module)
        _name_once(module, args)
    path = scopes.paths.get(id(module))
    if path is None:
        path = scopes.path_of(module)
    stack.append(path)
    _push(path)


def _leave_scope(module: torch.nn.Module, args: Any, output: Any) -> None:
    stack = _scopes.stack
    if stack:
        stack.pop()
        _pop()


_mode = ""


def refresh() -> None:
    """Installs or removes the hooks as the configuration asks."""
    global _mode, _push, _pop
    backend = bindings()
    _push, _pop = backend.push_module_scope, backend.pop_module_scope
    named = backend.config_get("dump") or backend.config_get("backend")
    wanted = "names" if named else ""
    wanted = "scopes" if backend.config_get("source_info") else wanted
    if wanted == _mode:
        return
    while _handles:
        _handles.pop().remove()
    while _scopes.stack:
        _scopes.stack.pop()
        backend.pop_module_scope()
    if wanted == "names":
        _handles.append(register_module_forward_pre_hook(_name_once))
    elif wanted == "scopes":
        _handles.append(register_module_forward_pre_hook(_enter_scope))
        # `always_call`: a forward that raises must leave its scope as well.
        _handles.append(register_module_forward_hook(_leave_scope, always_call=True))
    _mode = wanted
