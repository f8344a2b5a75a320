"""Supports `tensor.data = other` if only one of the tensors is lazy, and for lazy tensors
if one is an inference tensor or has a conjugate bit.

Between CPU and CUDA, PyTorch replaces the tensor's storage (`fully_shard` moves
parameters in this way). The C++ objects of CPU tensors and lazy tensors have different
classes (torch 2.13: `torch._has_compatible_shallow_copy_type`). Therefore the Python
object gets a different C++ object, as with `torch.utils.swap_tensors`.
"""

from __future__ import annotations

import torch

from torch_ltc import _C

_DATA = torch._C.TensorBase.data


def install() -> None:
    """Replaces `torch.Tensor.data`."""
    torch.Tensor.data = property(_DATA.__get__, _assign)


def _assign(self: torch.Tensor, value: torch.Tensor) -> None:
    if isinstance(value, torch.Tensor):
        devices = {self.device.type, value.device.type}
        if len(devices) == 2 and "lazy" in devices and "meta" not in devices:
            _exchange(self, value)
            return
        if devices == {"lazy"}:
            _C.assign_data(self, value)
            return
    _DATA.__set__(self, value)


def _exchange(tensor: torch.Tensor, value: torch.Tensor) -> None:
    if tensor.requires_grad:
        _separate_from_graph(tensor, value.device)
    gradient = tensor.grad
    replacement = value.detach().requires_grad_(tensor.requires_grad)
    if gradient is not None:
        gradient.data = gradient.to(value.device)
        # The value may have different sizes from those of the gradient (in
        # FullyShardedDataParallel), which only an assignment of `data` allows.
        replacement = torch.empty_like(gradient).requires_grad_()
        replacement.grad = gradient
        _DATA.__set__(replacement, value.detach())
    hooks = tensor._backward_hooks, tensor._post_accumulate_grad_hooks
    torch._C._swap_tensor_impl(tensor, replacement)
    tensor._backward_hooks, tensor._post_accumulate_grad_hooks = hooks


def _separate_from_graph(tensor: torch.Tensor, device: torch.device) -> None:
    """Raises RuntimeError, now or in the backward pass, if an autograd graph uses the
    tensor: the graph would accumulate the gradient in the old C++ object. In
    `p.data = p.to(device)` the assigned value has such a graph, too, which is released
    without a backward pass. In this case, the error must not be raised now."""
    reason = (
        f"`tensor.data = other` can't move a tensor from {tensor.device} to {device} "
        "while an autograd graph uses the tensor: assign the data before the forward "
        "pass, or after the graph has been released"
    )

    def fail(_):
        raise RuntimeError(reason)

    uses = tensor._use_count()
    # FullyShardedDataParallel only keeps views of its flat parameter, and makes new ones
    # after each move.
    if getattr(tensor, "_is_flat_param", False):
        torch.autograd.graph.get_gradient_edge(tensor).node.register_prehook(fail)
        return
    if not tensor.is_leaf or uses > 2:
        raise RuntimeError(reason)
    if uses == 2:
        node = torch.autograd.graph.get_gradient_edge(tensor).node
        if tensor._use_count() > 2:  # the node is new: another object holds the tensor
            raise RuntimeError(reason)
        node.register_prehook(fail)
