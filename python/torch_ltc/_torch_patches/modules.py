"""Makes `module.to("lazy")` preserve the module's Parameter objects.

PyTorch creates new parameters when a module moves between devices whose tensors have
different classes. An optimizer created before would then train the old parameters, and
parameters that two modules share would be separated. Class, attributes, weak references
and hooks of a parameter would be lost. So this patch moves the value of each Parameter
object, as PyTorch does between the CPU and CUDA.
"""

from __future__ import annotations

import functools
from typing import Any

import torch
from torch.__future__ import (
    get_swap_module_params_on_conversion,
    set_swap_module_params_on_conversion,
)
from torch.nn.parameter import is_lazy
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

from torch_ltc._torch_patches import scripted


def _crosses(module: torch.nn.Module, device: torch.device | None) -> bool:
    if device is None:
        return False
    return any(
        (parameter.device.type == "lazy") != (device.type == "lazy")
        for parameter in module.parameters()
    )


def _reject_old_graph(gradients: Any) -> None:
    raise RuntimeError(
        "backward() reached a parameter that Module.to() has moved between device 'lazy' "
        "and another device since the forward: call backward() before to()."
    )


def _move_value(parameter: torch.nn.Parameter, device: torch.device) -> None:
    """Moves the parameter's value and gradient. The Python object stays the same."""
    gradient, parameter.grad = parameter.grad, None
    hooks = parameter._backward_hooks
    after_hooks = parameter._post_accumulate_grad_hooks
    if parameter.requires_grad and parameter._use_count() > 1:
        node = torch.autograd.graph.get_gradient_edge(parameter).node
        node.register_prehook(_reject_old_graph)
        del node
    with torch.inference_mode(parameter.is_inference()):
        moved = torch.nn.Parameter(
            parameter.detach().to(device), requires_grad=parameter.requires_grad
        )
    # torch.utils.swap_tensors would also swap classes and attributes, and rejects tensors
    # with weak references.
    torch._C._swap_tensor_impl(parameter, moved)
    parameter._backward_hooks = hooks
    parameter._post_accumulate_grad_hooks = after_hooks
    if gradient is not None:
        if gradient._use_count() == 1:
            torch._C._swap_tensor_impl(gradient, gradient.to(device))
        else:
            gradient = gradient.to(device)
        parameter.grad = gradient


def _move_values(module: torch.nn.Module, device: torch.device) -> None:
    for parameter in module.parameters():
        # Parameters of nn.LazyLinear and similar modules have no value.
        if (
            not is_lazy(parameter)
            and (parameter.device.type == "lazy") != (device.type == "lazy")
            and not is_traceable_wrapper_subclass(parameter)
        ):
            _move_value(parameter, device)


def install() -> None:
    """Replaces `torch.nn.Module.to` and `cpu`."""
    original_to = torch.nn.Module.to

    @functools.wraps(original_to)
    def to(self: torch.nn.Module, *args: Any, **kwargs: Any) -> torch.nn.Module:
        device = torch._C._nn._parse_to(*args, **kwargs)[0]
        if isinstance(self, torch.jit.ScriptModule) and _crosses(self, device):
            scripted.move(self, *args, **kwargs)
            return self
        if not _crosses(self, device) or get_swap_module_params_on_conversion():
            return original_to(self, *args, **kwargs)
        _move_values(self, device)
        if not any(map(is_traceable_wrapper_subclass, self.parameters())):
            return original_to(self, *args, **kwargs)
        # PyTorch swaps the contents of wrappers (DTensors) if it can.
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
