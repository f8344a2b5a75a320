"""Makes `module.to("lazy")` preserve the module's Parameter objects.

PyTorch creates new parameters when a module moves between devices whose tensors have
different classes. An optimizer created before would then train the old parameters, and
parameters that two modules share would be separated. PyTorch can also swap the contents
of the parameter objects; this patch enables that for moves to and from "lazy".
"""

from __future__ import annotations

import functools
import itertools
from typing import Any

import torch
from torch.__future__ import (
    get_swap_module_params_on_conversion,
    set_swap_module_params_on_conversion,
)
from torch.nn.parameter import is_lazy

from torch_ltc._torch_patches import scripted


def _crosses(module: torch.nn.Module, device: torch.device | None) -> bool:
    if device is None:
        return False
    return any(
        (parameter.device.type == "lazy") != (device.type == "lazy")
        for parameter in module.parameters()
    )


def _is_swappable(module: torch.nn.Module) -> bool:
    """Whether only Python objects refer to the parameters and gradients: a live autograd
    graph would accumulate gradients in the old tensors. Parameters of `nn.LazyLinear` and
    similar modules have no contents to swap."""
    return all(
        tensor is None or (not is_lazy(tensor) and tensor._use_count() <= 2)
        for tensor in itertools.chain(
            module.parameters(), (p.grad for p in module.parameters())
        )
    )


def install() -> None:
    """Replaces `torch.nn.Module.to` and `cpu`."""
    original_to = torch.nn.Module.to

    @functools.wraps(original_to)
    def to(self: torch.nn.Module, *args: Any, **kwargs: Any) -> torch.nn.Module:
        device = torch._C._nn._parse_to(*args, **kwargs)[0]
        if isinstance(self, torch.jit.ScriptModule) and _crosses(self, device):
            scripted.move(self, *args, **kwargs)
            return self
        if (
            get_swap_module_params_on_conversion()
            or not _crosses(self, device)
            or not _is_swappable(self)
        ):
            return original_to(self, *args, **kwargs)
        set_swap_module_params_on_conversion(True)
        try:
            return original_to(self, *args, **kwargs)
        except RuntimeError as error:
            if "Couldn't swap" not in str(error):
                raise
        finally:
            set_swap_module_params_on_conversion(False)
        return original_to(self, *args, **kwargs)  # moves the rest without swapping

    def cpu(self: torch.nn.Module) -> torch.nn.Module:
        return self.to("cpu")

    cpu.__doc__ = torch.nn.Module.cpu.__doc__
    torch.nn.Module.to = to
    torch.nn.Module.cpu = cpu
