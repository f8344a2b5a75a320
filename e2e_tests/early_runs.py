"""Comparison of runs with and without head starts."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch_ltc
from counting import counting


def compare_with_head_starts(run: Callable[[], list]) -> int:
    """Compares the results of `run` with and without head starts, bitwise. Returns how
    many ops ran early."""
    with torch_ltc.config(head_start="off"), counting() as counts:
        expected = run()
    assert counts.early_ops == 0
    donated = counts.donated_buffers
    with torch_ltc.config(head_start="on"), counting() as counts:
        actual = run()
    for ours, theirs in zip(actual, expected, strict=True):
        if isinstance(ours, torch.Tensor):
            assert torch.equal(ours, theirs)
        else:
            assert ours == theirs
    assert counts.donated_buffers == donated
    return counts.early_ops
