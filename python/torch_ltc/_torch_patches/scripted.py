"""Supports TorchScript modules on device "lazy": `to`, `torch.jit.save`, `torch.jit.load`.

PyTorch moves a module by changing its Parameter objects, which a TorchScript module
only has in C++. TorchScript's file format only supports PyTorch's own devices (torch
2.13). So tensors are assigned to the module one by one, and a file stores CPU tensors. An
extra file in it names those that were on device "lazy"; without `map_location`, loading
moves them there.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable
from typing import Any

import torch

_NAMES_FILE = "torch_ltc/lazy_tensors"


def move(module: torch.jit.ScriptModule, *args: Any, **kwargs: Any) -> None:
    """Implements `module.to(*args, **kwargs)`. Shared parameters stay shared."""
    _move(module, lambda name: True, *args, **kwargs)


def _move(
    module: torch.jit.ScriptModule,
    is_moved: Callable[[str], bool],
    *args: Any,
    **kwargs: Any,
) -> None:
    """Moves the tensors whose qualified names fulfil `is_moved`."""
    device, dtype, non_blocking, _ = torch._C._nn._parse_to(*args, **kwargs)
    made: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}

    def convert(tensor: torch.Tensor) -> torch.Tensor:
        is_real = tensor.is_floating_point() or tensor.is_complex()
        return tensor.detach().to(device, dtype if is_real else None, non_blocking)

    def moved(tensor: torch.Tensor) -> torch.Tensor:
        if id(tensor) not in made:
            new = convert(tensor).requires_grad_(tensor.requires_grad)
            if tensor.is_leaf and tensor.grad is not None:
                new.grad = convert(tensor.grad)
            made[id(tensor)] = (tensor, new)
        return made[id(tensor)][1]

    for path, part in module.named_modules():
        for name, tensor in _own_tensors(part):
            if is_moved(f"{path}.{name}"):
                part._c.setattr(name, moved(tensor))


def _own_tensors(module: torch.nn.Module) -> list[tuple[str, torch.Tensor]]:
    return [
        *module.named_parameters(recurse=False, remove_duplicate=False),
        *module.named_buffers(recurse=False, remove_duplicate=False),
    ]


def _names_on_lazy(module: torch.jit.ScriptModule) -> list[str]:
    return [
        f"{path}.{name}"
        for path, part in module.named_modules()
        for name, tensor in _own_tensors(part)
        if tensor.device.type == "lazy"
    ]


def _wrap_save(original: Callable, position: int) -> Callable:
    """`position`: index of `_extra_files` among the arguments after the module."""

    @functools.wraps(original)
    def save(m: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(m, torch.jit.ScriptModule) and (names := _names_on_lazy(m)):
            m = copy.deepcopy(m)
            move(m, "cpu")
            args, given = args[:position], args[position:]
            files = given[0] if given else kwargs.get("_extra_files")
            kwargs["_extra_files"] = {**(files or {}), _NAMES_FILE: "\n".join(names)}
        return original(m, *args, **kwargs)

    return save


def _wrap_load(original: Callable) -> Callable:
    @functools.wraps(original)
    def load(
        f: Any,
        map_location: Any = None,
        _extra_files: dict | None = None,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        if map_location is not None:
            if torch.device(map_location).type != "lazy":
                return original(f, map_location, _extra_files, *args, **kwargs)
            module = original(f, "cpu", _extra_files, *args, **kwargs)
            move(module, map_location)
            return module
        extra: dict = {**(_extra_files or {}), _NAMES_FILE: ""}
        module = original(f, None, extra, *args, **kwargs)
        names = extra.pop(_NAMES_FILE)
        names = names.decode() if isinstance(names, bytes) else names
        if _extra_files is not None:
            _extra_files.update(extra)
        if names:
            _move(module, set(names.split("\n")).__contains__, "lazy")
        return module

    return load


def install() -> None:
    torch.jit.save = _wrap_save(torch.jit.save, 1)
    torch.jit.load = _wrap_load(torch.jit.load)
    # Traced modules are of the one class, scripted modules of the other.
    for module in (torch.jit.ScriptModule, torch.jit.RecursiveScriptModule):
        module.save = _wrap_save(module.save, 1)
        module.save_to_buffer = _wrap_save(module.save_to_buffer, 0)
