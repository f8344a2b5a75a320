"""Draws convolutional networks over images whose number, height and width vary.

Compared with the programs of `drawing.py`, these have many kernels whose sizes are
multiples of each other, as numbers of channels are powers of 2. Coincidences between the
kernels' numbers at the sizes with which a program for all sizes is compiled then occur.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

#: Sizes of a batch of images: number, height, width.
Sizes = tuple[int, int, int]

_STEPS = 6
_MOST_CHANNELS = 32
#: How often images may be halved or doubled.
_LEVELS = range(-1, 3)


class Attention(nn.Module):
    """Attention between all pixels, added to the image."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.project = nn.Linear(channels, 3 * channels)

    def forward(self, x: Tensor) -> Tensor:
        rows = x.flatten(2).mT
        query, key, value = self.project(rows).chunk(3, -1)
        scores = query @ key.mT / math.sqrt(x.shape[1])
        return (rows + scores.softmax(-1) @ value).mT.view(x.shape)


class Gate(nn.Module):
    """Scales each channel by a function of all channels' means."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.linear = nn.Linear(channels, channels)

    def forward(self, x: Tensor) -> Tensor:
        return x * self.linear(x.mean((2, 3))).sigmoid()[:, :, None, None]


class Scale(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.randn(channels, 1, 1))

    def forward(self, x: Tensor) -> Tensor:
        return x * self.scale


class NormOfChannels(nn.LayerNorm):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class Residual(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.convolution(x.relu())


class Formula(nn.Module):
    def __init__(self, formula: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.formula = formula

    def forward(self, x: Tensor) -> Tensor:
        return self.formula(x)


@dataclass
class Layer:
    """What a layer does to an image: its module for the numbers of channels of input and
    output, the factor of the number of channels (0: drawn), and how often it halves the
    image."""

    make: Callable[[int, int], nn.Module]
    factor: int = 1
    halvings: int = 0


def _formula(formula: Callable[[Tensor], Tensor], **effects: int) -> Layer:
    return Layer(lambda *_: Formula(formula), **effects)


LAYERS: dict[str, Layer] = {
    "convolution": Layer(lambda i, o: nn.Conv2d(i, o, 3, padding=1), factor=0),
    "pointwise": Layer(lambda i, o: nn.Conv2d(i, o, 1, bias=False), factor=0),
    "depthwise": Layer(lambda i, _: nn.Conv2d(i, i, 3, padding=1, groups=i)),
    "strided": Layer(lambda i, o: nn.Conv2d(i, o, 3, 2, 1), factor=0, halvings=1),
    "transposed": Layer(
        lambda i, o: nn.ConvTranspose2d(i, o, 2, stride=2), factor=0, halvings=-1
    ),
    "batch norm": Layer(lambda i, _: nn.BatchNorm2d(i)),
    "group norm": Layer(lambda i, _: nn.GroupNorm(math.gcd(i, 4), i)),
    "layer norm": Layer(lambda i, _: NormOfChannels(i)),
    "attention": Layer(lambda i, _: Attention(i)),
    "gate": Layer(lambda i, _: Gate(i)),
    "scale": Layer(lambda i, _: Scale(i)),
    "residual": Layer(lambda i, _: Residual(i)),
    "maximum": _formula(lambda x: F.max_pool2d(x, 2), halvings=1),
    "average": _formula(lambda x: F.avg_pool2d(x, 2), halvings=1),
    "nearest": _formula(lambda x: F.interpolate(x, scale_factor=2), halvings=-1),
    "bilinear": _formula(
        lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"), halvings=-1
    ),
    "double": _formula(lambda x: torch.cat([x, x.sin()], 1), factor=2),
    "gelu": _formula(F.gelu),
    "sigmoid": _formula(torch.sigmoid),
    "softmax": _formula(lambda x: x.softmax(3)),
    "running mean": _formula(lambda x: x.cumsum(3) / x.shape[3]),
    "shift": _formula(lambda x: x.roll(1, 2)),
    "pad": _formula(lambda x: F.pad(x, (1, 0, 2, 1))),
    "crop": _formula(lambda x: x[:, :, 1:, :-1]),
    "centered": _formula(lambda x: x - x.mean((0, 2, 3), keepdim=True)),
}


class Network(nn.Module):
    """Returns the result of the last layer and of some others."""

    def __init__(self, draw: random.Random) -> None:
        super().__init__()
        self.channels = channels = draw.choice([1, 2, 3, 4, 8])
        self.layers = nn.ModuleList()
        self.names: list[str] = []
        self.is_returned: list[bool] = []
        level, keeps = 0, draw.random() < 0.4
        for name in draw.choices(list(LAYERS), k=draw.randint(3, 8)):
            layer = LAYERS[name]
            if level + layer.halvings not in _LEVELS or channels > _MOST_CHANNELS:
                continue
            level += layer.halvings
            wanted = channels * layer.factor or draw.choice([2, 4, 8, 16])
            self.layers.append(layer.make(channels, wanted))
            self.names.append(name)
            self.is_returned.append(keeps and draw.random() < 0.5)
            channels = wanted

    def forward(self, x: Tensor) -> list[Tensor]:
        results = []
        for layer, is_returned in zip(self.layers, self.is_returned):
            x = layer(x)
            if is_returned:
                results.append(x)
        return [*results, x]


@dataclass
class Drawn:
    """A network, the sizes of its batches, and whether each step computes gradients."""

    network: Network
    sizes: list[Sizes]
    has_gradients: bool

    def step(self, network: Network, x: Tensor) -> list[Tensor]:
        """Returns the results and the gradients."""
        results = network(x)
        if not self.has_gradients:
            return results
        network.zero_grad()
        loss = sum(result.square().mean() for result in results)
        if loss.requires_grad:
            loss.backward()
        gradients = [p.grad for p in network.parameters() if p.grad is not None]
        return [*results, *gradients]


def draw_network(seed: int) -> Drawn:
    draw = random.Random(seed)
    torch.manual_seed(seed)
    network = Network(draw)
    varies = [draw.random() < share for share in (0.5, 0.7, 0.7)]
    base = (draw.randint(1, 4), draw.randint(8, 24), draw.randint(8, 24))
    multiple = draw.choice([1, 4, 4])
    sizes = []
    for _ in range(_STEPS):
        drawn = (draw.randint(1, 5), draw.randint(8, 30), draw.randint(8, 30))
        number, height, width = (
            new if may else old for may, new, old in zip(varies, drawn, base)
        )
        sizes.append(
            (number, height // multiple * multiple, width // multiple * multiple)
        )
    return Drawn(network, sizes, has_gradients=draw.random() < 0.6)
