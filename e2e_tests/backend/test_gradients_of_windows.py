"""Gradients that are a program of their own, because the loss was read: the numbers of a
window or a padding relate sizes of different parameters."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
import torch_ltc
from backend.fresh_programs import without_programs  # noqa: F401
from comparison import assert_close
from torch import Tensor

STEPS = 20
#: The most compilations of the two programs of a step: see test_general_loops.py.
MOST_COMPILATIONS = 8

Draw = Callable[[int, int], int]


def _fixed(*sizes: int) -> Tensor:
    return torch.randn(*sizes, generator=torch.Generator().manual_seed(len(sizes)))


IMAGES, FILTERS, SIGNAL = _fixed(2, 4, 30, 38), _fixed(6, 4, 7, 7), _fixed(400)
MATRIX = _fixed(30, 40)


def _transposed(n: Draw, x: Tensor, w: Tensor) -> Tensor:
    stride = n(2, 4)
    padding, rest = n(0, 2), n(0, stride - 1)
    return F.conv_transpose2d(
        x, w[:4, :, :3, :3], stride=stride, padding=padding, output_padding=rest
    )


def _spectrum(n: Draw, x: Tensor) -> Tensor:
    length = n(16, 40)
    window = torch.ones(length, device=x.device)
    frames = torch.stft(x, length, n(4, 15), window=window, return_complex=True)
    return torch.view_as_real(frames)


def _spectrum_of_overlaps(n: Draw, x: Tensor) -> Tensor:
    window = torch.ones(32, device=x.device)
    frames = torch.stft(x, 32, n(2, 31), window=window, return_complex=True)
    return torch.view_as_real(frames)


#: The operands of each function, which draws the numbers of its windows.
FUNCTIONS: dict[str, tuple[tuple[Tensor, ...], Callable[..., Tensor]]] = {
    "strides of convolutions": (
        (IMAGES, FILTERS),
        lambda n, x, w: F.conv2d(x, w[:, :, :3, :3], stride=(n(2, 5), n(2, 5))),
    ),
    "dilations of convolutions": (
        (IMAGES, FILTERS),
        lambda n, x, w: F.conv2d(x, w[:, :, :3, :3], dilation=n(2, 8), padding=n(2, 5)),
    ),
    "kernels of convolutions": (
        (IMAGES, FILTERS),
        lambda n, x, w: F.conv2d(x, w[..., : n(2, 7), : n(2, 7)], padding=2),
    ),
    "sizes of strided convolutions": (
        (IMAGES, FILTERS),
        lambda n, x, w: F.conv2d(
            F.conv2d(x[..., : n(19, 29), : n(19, 37)], w[:4, :, :3, :3], stride=2),
            w[:, :, :4, :4],
            stride=3,
        ),
    ),
    "transposed convolutions": ((IMAGES, FILTERS), _transposed),
    "kernels of average pools": (
        (IMAGES,),
        lambda n, x: F.avg_pool2d(x, n(2, 9), 1, 1),
    ),
    "strides of average pools": (
        (IMAGES,),
        lambda n, x: F.avg_pool2d(x, n(2, 6), n(2, 4)),
    ),
    "pools with a part of a window": (
        (IMAGES,),
        lambda n, x: F.avg_pool2d(x, n(2, 5), n(2, 4), ceil_mode=True),
    ),
    "mirrored borders": (
        (IMAGES,),
        lambda n, x: F.pad(x, (n(1, 9), n(1, 9), n(1, 9), n(1, 9)), mode="reflect"),
    ),
    "repeated borders": (
        (IMAGES,),
        lambda n, x: F.pad(x, (n(1, 9), n(1, 9), n(1, 9), n(1, 9)), mode="replicate"),
    ),
    "windows of a signal": (
        (SIGNAL,),
        lambda n, x: x.unfold(0, n(20, 40), n(2, 19)).mean(1),
    ),
    "spectra": ((SIGNAL,), _spectrum),
    "spectra of overlaps": ((SIGNAL,), _spectrum_of_overlaps),
    "kernels with half as much padding": (
        (IMAGES, FILTERS),
        lambda n, x, w: F.conv2d(x, w[..., : 2 * (k := n(1, 3)) + 1], padding=(3, k)),
    ),
    "parts of one matrix": (
        (MATRIX,),
        lambda n, x: x[: n(2, 30)] * x[:1].cos(),
    ),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_compiles_few_programs(name: str) -> None:
    operands, function = FUNCTIONS[name]
    torch_ltc.reset_metrics()
    for step in range(STEPS):
        results = []
        for device in ("lazy", "cpu"):
            leaves = [x.clone().to(device).requires_grad_() for x in operands]
            result = function(random.Random(step).randint, *leaves)
            loss = (result * result.sin()).sum()
            loss.item()
            loss.backward()
            results.append([result.detach(), *(x.grad for x in leaves)])
        assert_close(*results, 1e-3, 1e-3)
    assert torch_ltc.metrics()["compilations"] <= MOST_COMPILATIONS


def test_sizes_of_images() -> None:
    """A deep network, whose layers halve the sizes of the images several times."""
    filters = [torch.randn(6, 4, 7, 7) / 14, *(torch.randn(6, 6, 3, 3) / 8,) * 3]
    torch_ltc.reset_metrics()
    for step in range(STEPS):
        draw = random.Random(step).randint
        images = torch.randn(draw(2, 9), 4, draw(60, 200), draw(60, 200))
        results = []
        for device in ("lazy", "cpu"):
            weights = [w.clone().to(device).requires_grad_() for w in filters]
            x = F.conv2d(images.to(device), weights[0], stride=2, padding=3)
            x = F.max_pool2d(x.relu(), 3, 2, 1)
            for weight in weights[1:]:
                x = F.conv2d(x, weight, stride=2, padding=1).tanh()
            loss = x.mean((2, 3)).square().mean()
            loss.item()
            loss.backward()
            results.append([loss.detach(), *(w.grad for w in weights)])
        assert_close(*results, 1e-3, 1e-3)
    assert torch_ltc.metrics()["compilations"] <= MOST_COMPILATIONS
