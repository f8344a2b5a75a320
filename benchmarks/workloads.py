"""The workloads: nine models for the benchmark, and the models that the tests share.

Every workload is trained with AdamW. None of the nine draws random numbers in a step, so
that losses of contenders with different random number generators can be compared.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples"))

import torch
from models import tasks
from models.data import digit_batch, masked_text_batch, text_batch
from models.transformers import Decoder, Encoder
from torch import nn
from torch.nn import functional as F

LEARNING_RATE = 1e-4
BATCHES = 4
Batch = tuple[torch.Tensor, ...]


@dataclass(frozen=True)
class Workload:
    """A model with its batches and its loss. `batch(number)` returns CPU tensors;
    `loss(model, batch)` returns a scalar."""

    name: str
    build: Callable[[], nn.Module]
    batch: Callable[[int], Batch]
    loss: Callable[[nn.Module, Batch], torch.Tensor]
    has_jax_twin: bool = True

    def model(self) -> nn.Module:
        """The model on the CPU, in training mode, always with the same weights."""
        torch.manual_seed(0)
        return self.build()


class LeNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5, padding=2)
        self.conv2 = nn.Conv2d(6, 16, 5)
        self.fc1 = nn.Linear(400, 120)
        self.fc2 = nn.Linear(120, 84)
        self.fc3 = nn.Linear(84, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2).flatten(1)
        return self.fc3(F.relu(self.fc2(F.relu(self.fc1(x)))))


class BasicBlock(nn.Module):
    def __init__(self, before: int, after: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(before, after, 3, stride, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(after)
        self.conv2 = nn.Conv2d(after, after, 3, 1, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(after)
        self.shortcut = nn.Sequential()
        if stride != 1 or before != after:
            self.shortcut = nn.Sequential(
                nn.Conv2d(before, after, 1, stride, bias=False), nn.BatchNorm2d(after)
            )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = self.norm2(self.conv2(F.relu(self.norm1(self.conv1(x)))))
        return F.relu(hidden + self.shortcut(x))


class ResNet18(nn.Module):
    """ResNet-18 for 32x32 images: a 3x3 stem without pooling."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 64, 3, 1, 1, bias=False)
        self.norm = nn.BatchNorm2d(64)
        widths = [(64, 64, 1), (64, 128, 2), (128, 256, 2), (256, 512, 2)]
        self.blocks = nn.Sequential(
            *(
                block
                for before, after, stride in widths
                for block in (
                    BasicBlock(before, after, stride),
                    BasicBlock(after, after, 1),
                )
            )
        )
        self.head = nn.Linear(512, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.blocks(F.relu(self.norm(self.stem(x))))
        return self.head(x.mean((2, 3)))


class PointwiseChain(nn.Module):
    """Memory-bound: 13 pointwise ops over 4M elements and a reduction."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.randn(2048))
        self.shift = nn.Parameter(torch.randn(2048))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x * self.scale + self.shift
        x = torch.tanh(x) * torch.sigmoid(x) + 0.5 * x
        x = x / (1 + x.abs())
        return torch.exp(-x * x)


class NormGelu(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(1024))
        self.norm = nn.LayerNorm(1024)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.gelu(self.norm(x + self.bias))


class UnrolledLSTM(nn.Module):
    """An LSTM cell that Python calls 28 times, once for each row of an image."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.LSTMCell(28, 128)
        self.head = nn.Linear(128, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = x.new_zeros(x.shape[0], 128)
        state = x.new_zeros(x.shape[0], 128)
        for step in range(x.shape[1]):
            hidden, state = self.cell(x[:, step], (hidden, state))
        return self.head(hidden)


def _perceptron(*widths: int) -> nn.Module:
    layers: list[nn.Module] = []
    for before, after in itertools.pairwise(widths):
        layers += [nn.Linear(before, after), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def _classify(model: nn.Module, batch: Batch) -> torch.Tensor:
    return F.cross_entropy(model(batch[0]), batch[1])


def _mean_square(model: nn.Module, batch: Batch) -> torch.Tensor:
    return model(batch[0]).square().mean()


def _guess(model: nn.Module, batch: Batch) -> torch.Tensor:
    *inputs, targets = batch
    logits = model(*inputs)
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=-100)


def _next_characters(number: int) -> Batch:
    characters = text_batch(number, 4, 129)
    return characters[:, :-1].contiguous(), characters[:, 1:].contiguous()


def _noise(*sizes: int) -> Callable[[int], Batch]:
    return lambda number: (
        torch.randn(*sizes, generator=torch.Generator().manual_seed(number)),
    )


def _colors(number: int) -> Batch:
    # Noise is added because the gradients of equal channels and blank borders would
    # consist only of rounding errors, which AdamW turns into full steps.
    images, classes = digit_batch(number, 16, 32)
    generator = torch.Generator().manual_seed(number)
    return images + torch.randn(16, 3, 32, 32, generator=generator), classes


def _flat(size: int, side: int) -> Callable[[int], Batch]:
    def batch(number: int) -> Batch:
        images, classes = digit_batch(number, size, side)
        return images.flatten(1), classes

    return batch


def _rows(number: int) -> Batch:
    images, classes = digit_batch(number, 32, 28)
    return images.squeeze(1), classes


_TRANSFORMER = {"width": 256, "heads": 4, "layers": 4, "length": 128, "dropout": 0.0}

SPEED = [
    Workload(
        "perceptron 3x64", lambda: _perceptron(64, 64, 64, 64), _flat(32, 8), _classify
    ),
    Workload(
        "perceptron 784",
        lambda: _perceptron(784, 512, 512, 10),
        _flat(128, 28),
        _classify,
    ),
    Workload("LeNet", LeNet, lambda number: digit_batch(number, 64, 28), _classify),
    Workload("ResNet-18", ResNet18, _colors, _classify),
    Workload(
        "BERT-like",
        lambda: Encoder(fused=True, **_TRANSFORMER),
        lambda number: masked_text_batch(number, 8, 128),
        _guess,
    ),
    Workload(
        "OPT-like",
        lambda: Decoder(fused=True, **_TRANSFORMER),
        _next_characters,
        _guess,
    ),
    Workload("pointwise chain", PointwiseChain, _noise(2048, 2048), _mean_square),
    Workload("layer norm + GELU", NormGelu, _noise(4096, 1024), _mean_square),
    Workload("LSTM, unrolled", UnrolledLSTM, _rows, _classify),
]

SHARED = [
    Workload(task.name, task.build, task.batch, task.loss, has_jax_twin=False)
    for task in tasks.TASKS["bench"].values()
]

SETS = {"speed": SPEED, "shared": SHARED}


def find(name: str) -> Workload:
    return next(w for w in SPEED + SHARED if w.name == name)
