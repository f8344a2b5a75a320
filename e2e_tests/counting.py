"""Counts a block's events (steps, compilations, fallbacks) from the backend's metrics."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch_ltc


class Counts(dict):
    """The increase of each counter, by name; filled when the block ends."""

    def __getattr__(self, name: str) -> int:
        return self[name]


@contextmanager
def counting() -> Iterator[Counts]:
    counts = Counts()
    before = _counters()
    yield counts
    for name, value in _counters().items():
        counts[name] = value - before.get(name, 0)


def _counters() -> dict[str, int]:
    return {k: v for k, v in torch_ltc.metrics().items() if isinstance(v, int)}


def fallback_names() -> list[str]:
    """Returns the ops in the fallback log with the Python lines that called them."""
    return [f"{row['op']} ({row['location']})" for row in torch_ltc.fallbacks()]


def sync_names() -> list[str]:
    return [f"{row['op']} ({row['location']})" for row in torch_ltc.syncs()]
