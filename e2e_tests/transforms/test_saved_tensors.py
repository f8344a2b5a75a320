"""Hooks for saved tensors, and checkpoints, which use such hooks: each tensor that a
backward pass reads is packed once, and the backward pass reads the unpacked tensor."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from comparison import assert_close
from torch import Tensor
from torch.autograd.graph import save_on_cpu, saved_tensors_hooks
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint


def _places(x: Tensor) -> Tensor:
    return torch.tensor([0, 2, 1, 0], device=x.device)


# Each maps a (4, 6) matrix to a tensor.
FUNCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "max": lambda x: x / x.max(),
    "min": lambda x: x * x.min(),
    "amax": lambda x: x * x.amax(1, keepdim=True),
    "max.dim": lambda x: x.max(0)[0],
    "prod": lambda x: x * x.prod(),
    "prod.dim": lambda x: x.prod(1),
    "median": lambda x: x * x.median(),
    "nanmedian": lambda x: x * x.nanmedian(),
    "norm": lambda x: x / x.norm(3, dim=1, keepdim=True),
    "std": lambda x: x / x.std(0),
    "logsumexp": lambda x: x.logsumexp(1),
    "linear": lambda x: F.linear(x, x, x[:, 0]),
    "weight_norm": lambda x: torch._weight_norm(x, x[:, :1], 0),
    "grid_sample": lambda x: F.grid_sample(
        x[None, None], x.tanh().view(1, 3, 4, 2), align_corners=False
    ),
    "bicubic": lambda x: F.interpolate(x[None, None], scale_factor=2, mode="bicubic"),
    "bilinear": lambda x: F.interpolate(x[None, None], scale_factor=2, mode="bilinear"),
    "cdist": lambda x: torch.cdist(x, x * 2, p=1),
    "embedding_bag": lambda x: F.embedding_bag(_places(x)[None], x, mode="max"),
    "layer_norm": lambda x: F.layer_norm(x, (6,), x[0], x[1]),
    "batch_norm": lambda x: F.batch_norm(x, None, None, x[0], x[1], True),
    "attention": lambda x: F.scaled_dot_product_attention(x[None], x[None], x[None]),
    "cross_entropy": lambda x: F.cross_entropy(x, _places(x)),
    "conv1d": lambda x: F.conv1d(x[None], x.view(2, 4, 3), padding=1),
    "max_pool": lambda x: F.max_pool2d(x[None], 2),
    "lstm": lambda x: torch.nn.LSTMCell(6, 3, device=x.device)(x)[0],
    "sort": lambda x: x.sort()[0] * x,
    "kron": lambda x: torch.kron(x, x),
    "masked_select": lambda x: x.masked_select(x > 1) * 2,
    "cumprod": lambda x: x.cumprod(1),
}


def _input(device: str) -> Tensor:
    torch.manual_seed(3)
    values = torch.rand(4, 6) + 0.5
    return values.to(device).requires_grad_()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_checkpoint(name: str) -> None:
    gradients = []
    for device in ("cpu", "lazy"):
        x = _input(device)
        y = checkpoint(FUNCTIONS[name], x * 1, use_reentrant=False)
        y.square().sum().backward()
        gradients.append(x.grad.cpu())
    assert_close(gradients[1], gradients[0], rtol=1e-4, atol=1e-5)


def test_a_backward_pass_reads_what_hooks_unpack() -> None:
    gradients = []
    for device in ("cpu", "lazy"):
        x, weight = _input(device), _input(device)
        with saved_tensors_hooks(lambda tensor: tensor, lambda tensor: tensor * 2):
            y = F.linear(x, weight)
        y.sum().backward()
        gradients.append([x.grad.cpu(), weight.grad.cpu()])
    assert_close(gradients[1], gradients[0])


def test_a_backward_pass_reads_what_was_saved_on_the_cpu() -> None:
    x, weight = _input("lazy"), _input("lazy")
    before = weight.detach().cpu()
    with save_on_cpu():
        y = F.linear(x, weight)
    with torch.no_grad():
        weight.mul_(10)
    y.sum().backward()
    assert_close(x.grad, before.sum(0).expand(4, 6))


def test_hooks_raise_through_formulas() -> None:
    def reject(tensor: Tensor) -> Tensor:
        raise KeyError("rejected")

    x = _input("lazy")
    hooks = saved_tensors_hooks(reject, lambda tensor: tensor)
    with hooks, pytest.raises(KeyError, match="rejected"):
        x.nanmedian()
