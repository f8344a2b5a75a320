"""Models with their data and losses, by name, for tests and benchmarks.

Each task comes in two sizes: "test" (milliseconds per step) and "bench" (large enough
that arithmetic dominates, not Python).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from models import data
from models.convolutional import LeNet, ResNet
from models.perceptron import Perceptron
from models.recurrent import RowReader
from models.transformers import Decoder, Encoder

Batch = tuple[torch.Tensor, ...]


@dataclass(frozen=True)
class Task:
    """A model with its data and loss. `batch(step)` returns CPU tensors; `loss(model,
    batch)` expects them on the model's device."""

    name: str
    build: Callable[[], nn.Module]
    batch: Callable[[int], Batch]
    loss: Callable[[nn.Module, Batch], torch.Tensor]

    def model(self, seed: int = 0) -> nn.Module:
        """Returns the model on the CPU, in training mode; `seed` determines its weights."""
        state = torch.get_rng_state()
        torch.manual_seed(seed)
        try:
            return self.build()
        finally:
            torch.set_rng_state(state)


def classify(model: nn.Module, batch: Batch) -> torch.Tensor:
    images, classes = batch
    return F.cross_entropy(model(images), classes)


def guess_masked(model: nn.Module, batch: Batch) -> torch.Tensor:
    inputs, padding, targets = batch
    logits = model(inputs, padding)
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=-100)


def guess_next(model: nn.Module, batch: Batch) -> torch.Tensor:
    (characters,) = batch
    logits = model(characters[:, :-1])
    return F.cross_entropy(logits.flatten(0, 1), characters[:, 1:].flatten())


def _images(name: str, build: Callable[[], nn.Module], size: int, side: int) -> Task:
    return Task(name, build, lambda step: data.digit_batch(step, size, side), classify)


def _encoder(name: str, size: int, length: int, **options: Any) -> Task:
    return Task(
        name,
        lambda: Encoder(length=length, **options),
        lambda step: data.masked_text_batch(step, size, length),
        guess_masked,
    )


def _decoder(name: str, size: int, length: int, **options: Any) -> Task:
    return Task(
        name,
        lambda: Decoder(length=length, **options),
        lambda step: (data.text_batch(step, size, length + 1),),
        guess_next,
    )


def _test_tasks() -> list[Task]:
    return [
        _images("perceptron", Perceptron, 16, 8),
        _images("lenet", LeNet, 16, 8),
        _images("resnet", ResNet, 16, 8),
        _encoder("encoder", 8, 24, fused=False),
        _encoder("encoder-sdpa", 8, 24, fused=True),
        _decoder("decoder", 8, 24, fused=False),
        _decoder("decoder-sdpa", 8, 24, fused=True),
        _images("lstm", lambda: RowReader(nn.LSTM), 16, 8),
        _images("gru", lambda: RowReader(nn.GRU), 16, 8),
    ]


def _bench_tasks() -> list[Task]:
    large = {"width": 256, "heads": 8, "layers": 4}
    return [
        _images("perceptron", lambda: Perceptron(28, 512), 128, 28),
        _images("lenet", lambda: LeNet(28, 16), 128, 28),
        _images("resnet", lambda: ResNet(32, (1, 2, 4)), 32, 28),
        _encoder("encoder", 8, 64, fused=False, **large),
        _encoder("encoder-sdpa", 8, 64, fused=True, **large),
        _decoder("decoder", 8, 64, fused=False, **large),
        _decoder("decoder-sdpa", 8, 64, fused=True, **large),
        _images("lstm", lambda: RowReader(nn.LSTM, 28, 128), 64, 28),
        _images("gru", lambda: RowReader(nn.GRU, 28, 128), 64, 28),
    ]


TASKS = {
    "test": {task.name: task for task in _test_tasks()},
    "bench": {task.name: task for task in _bench_tasks()},
}
NAMES = tuple(TASKS["test"])


def to(batch: Batch, device: str) -> Batch:
    return tuple(tensor.to(device) for tensor in batch)
