"""A loop whose sizes vary up to a million compiles a few programs, and has eager's losses
and gradients. Programs for all sizes are valid up to a limit, above which another one is
compiled for sizes up to 16 million (size_stand_ins.h)."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import pytest
import torch
import torch.nn.functional as F
import torch_ltc
from comparison import assert_close
from torch import Tensor
from torch_ltc._backend import bindings

STEPS = 16
#: The first step's program, one with varying numbers as dynamic scalars, one for all
#: sizes, and one for larger sizes.
MOST_COMPILATIONS = 4

#: Draws a step's inputs, and computes the loss from the weights and the inputs.
Loop = tuple[
    Callable[[int, random.Random], list[Tensor]],
    Callable[[list[Tensor], list[Tensor]], Tensor],
]

WEIGHTS = [(4, 1, 9), (4, 4, 5), (3, 4), (8, 16), (5,)]


def _audio(weights: list[Tensor], inputs: list[Tensor]) -> Tensor:
    first, second, classes = weights[:3]
    x = F.relu(F.conv1d(inputs[0] * 0.9 + 0.1, first, stride=4))
    x = F.gelu(F.conv1d(F.max_pool1d(x, 4), second, padding=2))
    labels = torch.arange(x.shape[0], device=x.device) % 3
    return F.cross_entropy(F.linear(x.mean(-1), classes), labels)


def _points(weights: list[Tensor], inputs: list[Tensor]) -> Tensor:
    x = torch.tanh(inputs[0] @ weights[3])
    x = torch.cat([x.max(1)[0], x.mean(1), x.std(1)], -1)
    return x.square().mean()


def _edges(weights: list[Tensor], inputs: list[Tensor]) -> Tensor:
    nodes, (source, target) = inputs[0], inputs[1]
    x = torch.zeros_like(nodes).index_add(0, target, (nodes * weights[4])[source])
    return x.square().mean()


def _tokens(weights: list[Tensor], inputs: list[Tensor]) -> Tensor:
    x = F.layer_norm(F.embedding(inputs[0], weights[3]), (16,))
    return F.cross_entropy(x @ weights[3].T, inputs[0].flip(0))


def _growing(weights: list[Tensor], inputs: list[Tensor]) -> Tensor:
    x = inputs[0] * weights[4]
    return x.tanh().square().mean() + (x.T @ x).mean() / len(x) + x.softmax(0).max()


LOOPS: dict[str, Loop] = {
    "audio": (
        lambda i, draw: [torch.randn(2, 1, draw.randint(20_000, 480_000))],
        _audio,
    ),
    "batches of audio": (
        lambda i, draw: [
            torch.randn(draw.randint(2, 6), 1, draw.randint(16_000, 160_000))
        ],
        _audio,
    ),
    "points": (
        lambda i, draw: [torch.randn(2, draw.randint(1_000, 200_000), 8)],
        _points,
    ),
    "edges": (
        lambda i, draw: [
            torch.randn(500 + i, 5),
            torch.randint(500, (2, draw.randint(10_000, 1_000_000))),
        ],
        _edges,
    ),
    "tokens": (
        lambda i, draw: [torch.randint(8, (draw.randint(1_000, 65_536),))],
        _tokens,
    ),
    "three parts": (
        lambda i, draw: [torch.randn(3 * draw.randint(7_000, 70_000) - 1, 5)],
        lambda weights, inputs: torch.stack(
            [
                (x * weights[4]).pow(k + 1).mean()
                for k, x in enumerate(inputs[0].chunk(3))
            ]
        ).sum(),
    ),
    "rows up to a million": (
        lambda i, draw: [torch.randn(min(int(13_000 * 1.34**i), 10**6), 5)],
        _growing,
    ),
}


@pytest.fixture(autouse=True)
def _compiled() -> Iterator[None]:
    """Each test starts without programs."""
    torch.lazy.empty_cache()
    bindings().clear_program_cache()
    with torch_ltc.config(tier="compile", varying_sizes="auto", cache=False):
        yield


@pytest.mark.parametrize("name", LOOPS)
def test_large_sizes_compile_few_programs(name: str) -> None:
    inputs_of, loss_of = LOOPS[name]
    draw = random.Random(0)
    start = [torch.randn(sizes) / 4 for sizes in WEIGHTS]
    torch.lazy.synchronize()
    torch_ltc.reset_metrics()
    for i in range(STEPS):
        inputs, results = inputs_of(i, draw), []
        for device in ("lazy", "cpu"):
            weights = [w.clone().to(device).requires_grad_() for w in start]
            loss = loss_of(weights, [x.to(device) for x in inputs])
            loss.backward()
            gradients = [w.grad for w in weights if w.grad is not None]
            results.append([x.detach().cpu() for x in [loss, *gradients]])
        assert_close(*results, rtol=2e-4, atol=2e-5)
    assert torch_ltc.metrics()["compilations"] <= MOST_COMPILATIONS


def _padded_windows(x: Tensor) -> Tensor:
    return F.pad(x[None], (32, 32), mode="reflect").unfold(-1, 64, 16) * 2


def _differences(x: Tensor) -> tuple[Tensor, Tensor]:
    return x.cumsum(0).flip(0), (x[1:] - x[:-1]).abs().flip(0)


@pytest.mark.parametrize("function", [_padded_windows, _differences])
def test_similar_lengths_have_different_numbers_of_blocks(
    function: Callable[[Tensor], Tensor | tuple[Tensor, ...]],
) -> None:
    """A kernel computes blocks of 1024 elements. Arrays of similar lengths have equally many
    at the stand-ins, but not for all lengths."""
    signal = torch.randn(4000)
    lazy = signal.to("lazy")
    for length in (900, 930, 960, 961, 990, 1024, 1025, 1026, 2049, 2048, 1988, 3073):
        assert_close(
            function(lazy[:length]), function(signal[:length]), rtol=1e-4, atol=1e-3
        )
    assert torch_ltc.metrics()["programs_bound"] >= 3


def test_spectra_of_long_signals() -> None:
    """The number of windows follows from the length, whatever their distance."""
    signal = torch.randn(2, 40000)
    lazy, window = signal.to("lazy"), torch.hann_window(400)
    lazy_window = window.to("lazy")
    torch_ltc.mark_step()
    draw = random.Random(1)
    torch_ltc.reset_metrics()
    for _ in range(8):
        length = draw.randint(4000, 40000)
        ours, expected = (
            torch.stft(x[:, :length], 400, 160, window=w, return_complex=True).abs()
            for x, w in ((lazy, lazy_window), (signal, window))
        )
        assert_close(ours, expected, rtol=1e-4, atol=1e-3)
    assert torch_ltc.metrics()["compilations"] <= MOST_COMPILATIONS
