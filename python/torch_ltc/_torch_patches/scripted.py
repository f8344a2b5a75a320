"""Supports TorchScript modules on device "lazy": `to`, `torch.jit.save`, `torch.jit.load`.

PyTorch moves a module by changing its Parameter objects, which a TorchScript module
only has in C++. TorchScript's file format only supports PyTorch's own devices (torch
2.13). So tensors are assigned to the module one by one, and a file stores CPU tensors.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable
from typing import Any

import torch


def move(module: torch.jit.ScriptModule, *args: Any, **kwargs: Any) -> None:
    """Implements `module.to(*args, **kwargs)`. Shared parameters stay shared."""
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

    for part in module.modules():
        own = [
            *part.named_parameters(recurse=False, remove_duplicate=False),
            *part.named_buffers(recurse=False, remove_duplicate=False),
        ]
        for name, tensor in own:
            part._c.setattr(name, moved(tensor))


def _is_lazy(module: torch.nn.Module) -> bool:
    return any(
        tensor.device.type == "lazy"
        for tensor in (*module.parameters(), *module.buffers())
    )


def _wrap_save(original: Callable) -> Callable:
    @functools.wraps(original)
    def save(m: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(m, torch.jit.ScriptModule) and _is_lazy(m):
            m = copy.deepcopy(m)
            move(m, "cpu")
        return original(m, *args, **kwargs)

    return save


def _wrap_load(original: Callable) -> Callable:
    @functools.wraps(original)
    def load(f: Any, map_location: Any = None, *args: Any, **kwargs: Any) -> Any:
        if map_location is None or torch.device(map_location).type != "lazy":
            return original(f, map_location, *args, **kwargs)
        module = original(f, "cpu", *args, **kwargs)
        move(module, map_location)
        return module

    return load


def install() -> None:
    torch.jit.save = _wrap_save(torch.jit.save)
    torch.jit.load = _wrap_load(torch.jit.load)
    torch.jit.ScriptModule.save = _wrap_save(torch.jit.ScriptModule.save)
