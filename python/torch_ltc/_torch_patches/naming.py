"""Provides parameter names and module paths for dumps and messages.

While option `source_info`, `dump` or `backend` is set, the first call of an outermost
module names its parameters and buffers ("encoder.layer.0.weight"). With `source_info`,
the ops traced inside a module's call also carry the module's path. Without these options,
no hook is installed.
"""

from __future__ import annotations

import weakref
from typing import Any

import torch
from torch.nn.modules.module import register_module_forward_pre_hook

from torch_ltc._backend import bindings


def name_parameters(module: torch.nn.Module, prefix: str = "") -> int:
    """Names all lazy parameters and buffers of `module` by their path, for dumps and
    messages; returns their count. `prefix`: the path of `module`."""
    backend = bindings()
    count = 0
    for tensors in (module.named_parameters(prefix), module.named_buffers(prefix)):
        for name, tensor in tensors:
            if tensor.device.type == "lazy":
                backend.set_tensor_name(tensor, name)
                count += 1
    return count


_handles: list[Any] = []

# Modules whose parameters have names, including all their submodules.
_named: weakref.WeakSet[torch.nn.Module] = weakref.WeakSet()


def _name_once(module: torch.nn.Module, args: Any) -> None:
    if torch.compiler.is_compiling():
        return  # TorchDynamo would trace the code below
    if module not in _named:
        name_parameters(module)
        _named.update(module.modules())


def _paths_below(root: torch.nn.Module) -> dict[torch.nn.Module, str]:
    """Names the parameters of `root` and returns the path of each module below it. Called
    by `enter_module` (module_scopes.cpp)."""
    _name_once(root, ())
    return {module: path for path, module in root.named_modules()}


_call = torch.nn.Module.__call__


def _call_in_scope(self: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:
    """Replaces Module's `__call__` to enter the module during the call. PyTorch's hooks
    would take several times as long (torch 2.13)."""
    if torch.compiler.is_compiling():
        return _call(self, *args, **kwargs)
    _enter(self)
    try:
        return _call(self, *args, **kwargs)
    finally:
        _leave()


_enter: Any = None  # the bindings' enter_module
_leave: Any = None
_mode = ""


def _replace_call(wanted: bool) -> None:
    """Replaces `Module.__call__`, or restores it unless something else, such as an active
    tracer, has replaced it meanwhile."""
    global _call
    present = torch.nn.Module.__call__
    if wanted and present is not _call_in_scope:
        _call = present
        torch.nn.Module.__call__ = _call_in_scope
    elif not wanted and present is _call_in_scope:
        torch.nn.Module.__call__ = _call


def refresh() -> None:
    """Installs or removes the hooks according to the configuration."""
    global _mode, _enter, _leave
    backend = bindings()
    _enter, _leave = backend.enter_module, backend.leave_module
    backend.set_paths_below(_paths_below)
    named = backend.config_get("dump") or backend.config_get("backend")
    wanted = "names" if named else ""
    wanted = "scopes" if backend.config_get("source_info") else wanted
    if wanted == _mode:
        return
    while _handles:
        _handles.pop().remove()
    backend.leave_all_modules()
    if wanted == "names":
        _handles.append(register_module_forward_pre_hook(_name_once))
    _replace_call(wanted == "scopes")
    _mode = wanted
