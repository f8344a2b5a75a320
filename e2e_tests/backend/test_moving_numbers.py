"""Loops in which no single relation between sizes determines the varying numbers: parts
viewed as matrices, boxes before a flattened layer, selections, strided slices."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
import torch_ltc
from backend.fresh_programs import without_programs  # noqa: F401
from comparison import assert_close
from torch import Tensor, nn

STEPS = 24
#: The most programs of a loop: see test_general_loops.py.
MOST_COMPILATIONS = 4

#: Draws the numbers of a step, and returns the step's results on a device.
Loop = Callable[[random.Random, str], list[Tensor]]


def _fixed(*sizes: int) -> Callable[[str], Tensor]:
    value = torch.randn(*sizes, generator=torch.Generator().manual_seed(len(sizes)))
    return {"cpu": value, "lazy": value.to("lazy")}.__getitem__


SIGNAL, ROWS, IMAGES = _fixed(2000), _fixed(300, 8), _fixed(4, 3, 32, 32)
FILTERS = _fixed(2, 3, 3, 3)
MATRIX, VOLUME = _fixed(30, 40), _fixed(6, 10, 20)


def _gradient(x: Tensor, function: Callable[[Tensor], Tensor]) -> list[Tensor]:
    leaf = x.detach().clone().requires_grad_()
    result = function(leaf)
    result.square().sum().backward()
    return [result.detach(), leaf.grad]


def _matrix(draw: random.Random, device: str) -> list[Tensor]:
    a, b = draw.randint(2, 40), draw.randint(2, 40)
    return [SIGNAL(device)[: a * b].view(a, b).sum(0)]


def _matrix_of_rows(draw: random.Random, device: str) -> list[Tensor]:
    a, b = draw.randint(2, 17), draw.randint(2, 17)
    return _gradient(ROWS(device), lambda x: x[: a * b].view(a, b, 8).mean(0))


def _matrix_inside(draw: random.Random, device: str) -> list[Tensor]:
    a, b, start = draw.randint(2, 30), draw.randint(2, 30), draw.randint(0, 900)
    return [SIGNAL(device)[start : start + a * b].view(a, b).t().cumsum(1)]


def _flat_part(draw: random.Random, device: str) -> list[Tensor]:
    start, length = draw.randint(0, 200), draw.randint(2, 300)
    part = slice(start, start + length)
    return [
        *_gradient(MATRIX(device), lambda x: x.reshape(-1)[part].cumsum(0)),
        *_gradient(MATRIX(device), lambda x: x.t().reshape(1200)[part] * 2),
    ]


def _folded_part(draw: random.Random, device: str) -> list[Tensor]:
    start, length = draw.randint(0, 40), draw.randint(2, 50)
    part = slice(start, start + length)
    return [
        *_gradient(MATRIX(device), lambda x: x.view(-1, 12)[part].cumsum(0)),
        *_gradient(VOLUME(device), lambda x: x.flatten(0, 1)[:length].cumsum(0)),
        *_gradient(VOLUME(device), lambda x: x.view(4, -1)[:, part].cumsum(1)),
    ]


def _boxed(draw: random.Random, device: str, *layers: nn.Module) -> list[Tensor]:
    """Trains a model on images in which a box comes from other images."""
    images, model = IMAGES(device), nn.Sequential(*layers)
    torch.manual_seed(0)
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.1)
    model = model.to(device)
    optimizer = torch.optim.AdamW(model.parameters(), 0.01)
    height, width = draw.randint(2, 20), draw.randint(2, 20)
    top, left = draw.randint(0, 32 - height), draw.randint(0, 32 - width)
    box = (..., slice(top, top + height), slice(left, left + width))
    mixed = images.clone()
    mixed[box] = images.flip(0)[box]
    loss = F.cross_entropy(model(mixed), torch.arange(4, device=device))
    loss.backward()
    gradients = [parameter.grad for parameter in model.parameters()]
    optimizer.step()
    return [loss.detach(), *gradients]


def _boxed_pixels(draw: random.Random, device: str) -> list[Tensor]:
    return _boxed(draw, device, nn.Flatten(), nn.Linear(3 * 32 * 32, 5))


def _boxed_features(draw: random.Random, device: str) -> list[Tensor]:
    return _boxed(
        draw,
        device,
        nn.Conv2d(3, 4, 5),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(4, 6, 3, stride=2),
        nn.Flatten(),
        nn.Linear(6 * 6 * 6, 5),
    )


def _selected(draw: random.Random, device: str) -> list[Tensor]:
    limit = draw.uniform(-1, 1)
    return _gradient(
        ROWS(device), lambda x: torch.masked_select(x, ROWS(device) > limit)
    )


def _scattered(draw: random.Random, device: str) -> list[Tensor]:
    count = draw.randint(2, 200)
    rows = ROWS(device)[:count]
    return _gradient(SIGNAL(device), lambda x: rows.masked_scatter(rows > 0, x))


def _step(draw: random.Random, least: int = 2, most: int = 9) -> int:
    return max(draw.randint(least, most), 1)


def _strided(draw: random.Random, device: str) -> list[Tensor]:
    step = _step(draw, most=19)
    start = draw.randint(0, step - 1)
    return _gradient(ROWS(device), lambda x: x[start::step].cumsum(0))


def _strided_part(draw: random.Random, device: str) -> list[Tensor]:
    start, length = draw.randint(0, 90), draw.randint(50, 200)
    part = slice(start, start + length, _step(draw))
    return _gradient(ROWS(device), lambda x: x[part] * 2)


def _written_strides(draw: random.Random, device: str) -> list[Tensor]:
    start, length = draw.randint(0, 90), draw.randint(50, 200)
    result = SIGNAL(device).clone()
    result[start : start + length : _step(draw)] = draw.random()
    result[:: _step(draw)] += 1
    return [result]


def _range_of_floats(draw: random.Random, device: str) -> list[Tensor]:
    ends = [draw.uniform(1, 30) for _ in range(3)]
    return [
        torch.arange(ends[0], device=device) * 2,
        torch.arange(0.5, ends[1] + 1, 0.25, device=device).sin(),
        torch.arange(ends[2], 40, 0.5, device=device).cumsum(0),
    ]


def _range(draw: random.Random, device: str) -> list[Tensor]:
    start, end = draw.randint(0, 20), draw.randint(100, 300)
    return [torch.arange(start, end, _step(draw, 1), device=device) * 2]


def _diagonal(draw: random.Random, device: str) -> list[Tensor]:
    offset = draw.randint(2, 22) * draw.choice((-1, 1))
    return _gradient(MATRIX(device), lambda x: (x * 2).diagonal(offset).cumsum(0))


def _written_diagonal(draw: random.Random, device: str) -> list[Tensor]:
    offset = draw.randint(2, 22) * draw.choice((-1, 1))
    matrix = MATRIX(device).clone()
    matrix.diagonal(offset).mul_(draw.random())
    return [matrix]


def _on_images(function: Callable[[Tensor, int], Tensor]) -> Loop:
    """A loop that applies a function to images and a number from 2 to 9."""

    def loop(draw: random.Random, device: str) -> list[Tensor]:
        number = _step(draw)
        return _gradient(IMAGES(device), lambda x: function(x, number))

    return loop


def _filters(x: Tensor) -> Tensor:
    return FILTERS(x.device.type)


def _kernel(draw: random.Random, device: str) -> list[Tensor]:
    sizes = [draw.randint(1, 9), draw.randint(1, 9)]
    torch.manual_seed(0)
    weight = torch.randn(2, 3, *(max(size, 2) for size in sizes)).to(device)
    return _gradient(weight, lambda w: F.conv2d(IMAGES(device), w))


#: Windows whose size, distance or position varies.
WINDOWS: dict[str, Loop] = {
    "pad of a convolution": _on_images(
        lambda x, n: F.conv2d(x, _filters(x), padding=n)
    ),
    "stride of a convolution": _on_images(
        lambda x, n: F.conv2d(x, _filters(x), stride=n)
    ),
    "dilation of a convolution": _on_images(
        lambda x, n: F.conv2d(x, _filters(x), padding=n, dilation=n)
    ),
    "stride of a transposed convolution": _on_images(
        lambda x, n: F.conv_transpose2d(x, _filters(x).transpose(0, 1), stride=n)
    ),
    "kernel of a convolution": _kernel,
    "mean of windows": _on_images(F.avg_pool2d),
    "mean at distances": _on_images(lambda x, n: F.avg_pool2d(x, 3, n, padding=1)),
    "divisor of a mean": _on_images(
        lambda x, n: F.avg_pool2d(x, 3, divisor_override=n)
    ),
    "maximum of windows": _on_images(F.max_pool2d),
    "maximum at distances": _on_images(lambda x, n: F.max_pool2d(x, 5, n, padding=2)),
    "maximum with gaps": _on_images(lambda x, n: F.max_pool2d(x, 3, 2, dilation=n)),
}


def _written_cache(draw: random.Random, device: str) -> list[Tensor]:
    """Attention over a cache of keys, into which a few positions are written."""
    length, past = draw.randint(2, 5), draw.randint(0, 290)
    keys = ROWS(device).clone()
    keys[past : past + length] = SIGNAL(device)[: 8 * length].view(length, 8)
    queries = torch.arange(past, past + length, device=device)
    mask = torch.arange(300, device=device) <= queries[:, None]
    q, kv = ROWS(device)[None, None, :length], keys[None, None]
    return [F.scaled_dot_product_attention(q, kv, kv, attn_mask=mask)]


def _noise_levels(draw: random.Random, device: str) -> list[Tensor]:
    count, levels = draw.randint(2, 60), draw.randint(20, 200)
    kept = (1 - torch.linspace(1e-4, 0.02, levels, device=device)).cumprod(0)
    return [ROWS(device)[:count] * kept[levels // 2], kept]


LOOPS: dict[str, Loop] = {
    "a part as a matrix": _matrix,
    "rows as matrices": _matrix_of_rows,
    "a part inside as a matrix": _matrix_inside,
    "a part of a flat view": _flat_part,
    "a part of a view": _folded_part,
    "a box before a flattened layer": _boxed_pixels,
    "a box before convolutions": _boxed_features,
    "selected elements": _selected,
    "scattered elements": _scattered,
    "rows at a varying distance": _strided,
    "parts at a varying distance": _strided_part,
    "written at a varying distance": _written_strides,
    "ranges of floats": _range_of_floats,
    "ranges": _range,
    "diagonals": _diagonal,
    "written diagonals": _written_diagonal,
    "written cache": _written_cache,
    "noise levels": _noise_levels,
    **WINDOWS,
}


def _compare(loop: Loop, kind: type[random.Random], seed: int) -> None:
    ours, expected = (loop(kind(seed), device) for device in ("lazy", "cpu"))
    assert_close(ours, expected, 1e-4, 1e-4, equal_nan=True)


@pytest.mark.parametrize("name", LOOPS)
def test_compiles_few_programs(name: str) -> None:
    torch_ltc.reset_metrics()
    cuts = 2 if name == "selected elements" else 1
    for step in range(STEPS):
        _compare(LOOPS[name], random.Random, step)
    assert torch_ltc.metrics()["compilations"] <= cuts * MOST_COMPILATIONS


class _Small(random.Random):
    """Draws integers near the lower end, so that sizes are often 0, 1 or equal."""

    def randint(self, a: int, b: int) -> int:
        return min(b, max(a - 2, 0) + super().randint(0, 3))


@pytest.mark.parametrize("name", LOOPS)
def test_small_sizes(name: str) -> None:
    for seed in range(16):
        _compare(LOOPS[name], _Small, seed)


def test_short_sources_are_rejected() -> None:
    """A program for all sizes checks that a masked_scatter has enough elements."""
    for count in (30, 20, 25, 9):
        rows, values = ROWS("lazy")[:count], SIGNAL("lazy")
        rows.masked_scatter(rows > 0, values[: 8 * count]).cpu()
    rows = ROWS("lazy")[:22]
    with pytest.raises(RuntimeError, match="masked_scatter"):
        rows.masked_scatter(rows > -9, SIGNAL("lazy")[:100]).cpu()


def test_small_quotients() -> None:
    """The number of rows, a quotient of sizes, is small even if all sizes are large; then
    the samples of a program for all sizes don't determine where the last row begins."""
    draw = random.Random(3)
    for extra in range(10):
        start, step = draw.randint(2, 12), draw.randint(2, 9)
        x = SIGNAL("cpu")[: 222 + 3 * extra].clone()
        ours = x.to("lazy")[start::step].flip(0)
        assert torch.equal(ours.cpu(), x[start::step].flip(0))
