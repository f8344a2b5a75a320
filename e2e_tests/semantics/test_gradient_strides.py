"""Strides of gradients whose operands and output gradients have different formats."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from comparison import assert_close
from torch import Tensor

FORMATS = (torch.contiguous_format, torch.channels_last)

#: Functions of a tensor of shape [2, 4, 6, 6] and a weight of shape [4, 4, 3, 3].
FUNCTIONS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "conv2d": lambda x, w: F.conv2d(x, w),
    "strided conv2d": lambda x, w: F.conv2d(x, w, stride=2, padding=1),
    "grouped conv2d": lambda x, w: F.conv2d(x, w[:, :1], groups=4),
    "pointwise conv2d": lambda x, w: F.conv2d(x, w[:, :, :1, :1]),
    "conv_transpose2d": lambda x, w: F.conv_transpose2d(x, w, stride=2),
    "max_pool2d": lambda x, w: F.max_pool2d(x, 2),
    "avg_pool2d": lambda x, w: F.avg_pool2d(x, 2),
    "adaptive_avg_pool2d": lambda x, w: F.adaptive_avg_pool2d(x, 3),
    "adaptive_max_pool2d": lambda x, w: F.adaptive_max_pool2d(x, 3),
    "batch_norm": lambda x, w: F.batch_norm(x, None, None, training=True),
    "group_norm": lambda x, w: F.group_norm(x, 2, weight=w[0, :, 0, 0]),
    "nearest": lambda x, w: F.interpolate(x, scale_factor=2),
    "glu": lambda x, w: F.glu(x, 1),
    "constant pad": lambda x, w: F.pad(x, (1, 1, 0, 2)),
    "reflection pad": lambda x, w: F.pad(x, (1, 1, 1, 1), "reflect"),
    "replication pad": lambda x, w: F.pad(x, (1, 1, 1, 1), "replicate"),
    "pixel_shuffle": lambda x, w: F.pixel_shuffle(x, 2),
}


def _strides(
    device: str, name: str, formats: tuple[torch.memory_format, ...]
) -> list[tuple[int, ...]]:
    torch.manual_seed(0)
    of_x, of_weight, of_gradient = formats
    x = torch.randn(2, 4, 6, 6).to(device, memory_format=of_x).requires_grad_()
    weight = torch.randn(4, 4, 3, 3).to(device, memory_format=of_weight)
    weight.requires_grad_()
    y = FUNCTIONS[name](x, weight)
    gradient = torch.randn(y.shape).to(device, memory_format=of_gradient)
    gradients = torch.autograd.grad(y, (x, weight), gradient, allow_unused=True)
    return [g.stride() for g in gradients if g is not None]


@pytest.mark.parametrize("of_gradient", FORMATS, ids=str)
@pytest.mark.parametrize("of_weight", FORMATS, ids=str)
@pytest.mark.parametrize("of_x", FORMATS, ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_have_eagers_strides(name: str, of_x, of_weight, of_gradient) -> None:
    formats = (of_x, of_weight, of_gradient)
    assert _strides("lazy", name, formats) == _strides("cpu", name, formats)


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("format", [torch.contiguous_format, torch.channels_last_3d])
def test_gradients_of_group_norm_in_3d(format, create_graph: bool) -> None:
    gradients = {}
    for device in ("cpu", "lazy"):
        torch.manual_seed(0)
        x = torch.randn(2, 4, 2, 3, 4).to(device, memory_format=format)
        x.requires_grad_()
        y = F.group_norm(x, 2).tanh().sum()
        (gradients[device],) = torch.autograd.grad(y, x, create_graph=create_graph)
    assert gradients["lazy"].stride() == gradients["cpu"].stride()
    assert_close(gradients["lazy"], gradients["cpu"], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("pads", [(-1, -1, -1, -1), (0, -1), (0, 0), (1, -1), (-1, 2)])
@pytest.mark.parametrize(
    ("sizes", "view"),
    [
        ((8, 6), lambda x: x.t()),
        ((5, 6), lambda x: x[:, ::2]),
        ((1, 6), lambda x: x.expand(4, 6)),
        ((2, 5, 6, 3), lambda x: x.permute(0, 3, 1, 2)),
        ((5, 1, 6), lambda x: x.transpose(0, 1)),
        ((3, 4, 2), lambda x: x),  # has no elements after the first pads
    ],
)
def test_constant_pads_have_eagers_strides(
    sizes: tuple[int, ...], view: Callable[[Tensor], Tensor], pads: tuple[int, ...]
) -> None:
    memory = torch.randn(sizes)
    expected, padded = (F.pad(view(x), pads) for x in (memory, memory.to("lazy")))
    assert padded.stride() == expected.stride()
    assert_close(padded.cpu(), expected)


@pytest.mark.parametrize("reduction", ["mean", "none"])
@pytest.mark.parametrize("transposed", [(False, True), (True, False), (True, True)])
def test_gradients_of_soft_margins_have_the_targets_strides(
    transposed, reduction
) -> None:
    strides = []
    for device in ("cpu", "lazy"):
        x, target = (
            torch.ones(5, 3, device=device).t() if is_transposed else
            torch.ones(3, 5, device=device)
            for is_transposed in transposed
        )  # fmt: skip
        x.requires_grad_()
        F.soft_margin_loss(x, target, reduction=reduction).sum().backward()
        strides.append(x.grad.stride())
    assert strides[0] == strides[1]


#: Reductions and selections of a tensor without zeros, whose gradients eager computes by
#: values.
BY_VALUES: dict[str, Callable[[Tensor], Tensor]] = {
    "max": lambda x: x.max(),
    "min": lambda x: x.min(),
    "median": lambda x: x.median(),
    "nanmedian": lambda x: x.nanmedian(),
    "product": lambda x: x.prod(),
    "products of columns": lambda x: x.prod(0),
    "products of rows": lambda x: x.prod(1, keepdim=True),
    "masked_select": lambda x: x.masked_select(x > 1),
}


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("view", [lambda x: x, lambda x: x.t(), lambda x: x[:, ::2]])
@pytest.mark.parametrize("name", BY_VALUES)
def test_gradients_that_depend_on_values_have_eagers_strides(
    name: str, view: Callable[[Tensor], Tensor], create_graph: bool
) -> None:
    gradients = []
    for device in ("cpu", "lazy"):
        memory = torch.tensor([[1.5, 3.0, 0.5, 3.0], [2.0, 1.0, -1.0, 4.0]])
        x = view(memory.to(device)).requires_grad_()
        y = BY_VALUES[name](x)
        (grad,) = torch.autograd.grad(
            y, x, torch.ones_like(y), create_graph=create_graph
        )
        gradients.append(grad)
    assert gradients[1].stride() == gradients[0].stride()
    assert_close(gradients[1], gradients[0])
