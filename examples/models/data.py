"""Small real data that needs no download: scikit-learn's handwritten digits,
and the Zen of Python as text."""

from __future__ import annotations

import codecs
import contextlib
import functools
import io

import torch
from torch.nn import functional as F

CHARACTERS = " \n!'*,-.abcdefghijklmnopqrstuvwxyz"
PADDING = len(CHARACTERS)
MASK = PADDING + 1
VOCABULARY = MASK + 1


@functools.cache
def digits() -> tuple[torch.Tensor, torch.Tensor]:
    """Returns 1797 images, float32 [n, 1, 8, 8] with values in [0, 1], and their classes,
    int64 [n]."""
    from sklearn.datasets import load_digits

    data = load_digits()
    images = torch.tensor(data.images, dtype=torch.float32).unsqueeze(1) / 16
    return images, torch.tensor(data.target, dtype=torch.int64)


def digit_batch(
    step: int, size: int, side: int = 8
) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns batch number `step` of the digits in a fixed random order: images [size, 1,
    side, side] and their classes [size]."""
    images, classes = digits()
    order = torch.randperm(len(images), generator=torch.Generator().manual_seed(5))
    picked = order[(torch.arange(size) + step * size) % len(order)]
    batch = images[picked]
    if side != batch.shape[-1]:
        batch = F.interpolate(batch, size=(side, side), mode="bilinear")
    return batch, classes[picked]


@functools.cache
def text() -> torch.Tensor:
    """Returns the Zen of Python as character indices, int64 [n]."""
    with contextlib.redirect_stdout(io.StringIO()):
        import this
    zen = codecs.decode(this.s, "rot13").lower()
    return torch.tensor([CHARACTERS.index(c) for c in zen if c in CHARACTERS])


def text_batch(step: int, size: int, length: int) -> torch.Tensor:
    """Returns `size` pieces of `length` characters, int64 [size, length]."""
    source = text()
    generator = torch.Generator().manual_seed(step)
    starts = torch.randint(len(source) - length, (size,), generator=generator)
    return source[starts[:, None] + torch.arange(length)]


def masked_text_batch(
    step: int, size: int, length: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Returns characters with about one seventh masked and a padded end, the positions of
    padding (true = padding), and the targets: -100 except at masked positions. Each is
    [size, length]."""
    characters = text_batch(step, size, length)
    generator = torch.Generator().manual_seed(step + 1)
    lengths = torch.randint(length // 2, length + 1, (size, 1), generator=generator)
    padding = torch.arange(length) >= lengths
    masked = torch.rand(size, length, generator=generator) < 1 / 7
    masked[:, 0] = True  # at least one target
    masked &= ~padding
    targets = characters.masked_fill(~masked, -100)
    inputs = characters.masked_fill(masked, MASK).masked_fill(padding, PADDING)
    return inputs, padding, targets
