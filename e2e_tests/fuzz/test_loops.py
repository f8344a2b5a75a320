"""A sample of random training loops has eager's results."""

from __future__ import annotations

import pytest
from fuzz.comparison import difference
from fuzz.loops import draw_loop
from fuzz.program import Line, Program

SEEDS, EACH, FULL = 24, 6, 400


def _agree(first: int, count: int) -> None:
    found = {seed: difference(draw_loop(seed)) for seed in range(first, first + count)}
    failed = {seed: text for seed, text in found.items() if text}
    assert not failed, f"python -m fuzz --loops --shrink --seeds {min(failed)}: {failed}"  # fmt: skip


@pytest.mark.parametrize("first", range(0, SEEDS, EACH))
def test_sample(first: int) -> None:
    _agree(first, EACH)


@pytest.mark.full
@pytest.mark.parametrize("first", range(100, 100 + FULL, 100))
def test_full(first: int) -> None:
    _agree(first, 100)


def test_a_seed_is_a_loop() -> None:
    assert draw_loop(3).text() == draw_loop(3).text()
    assert draw_loop(3).text() != draw_loop(4).text()


def test_a_difference_is_found() -> None:
    """Values that depend on the device are reported as a difference."""
    text = "x = torch.ones(2, device=device) * (device == 'cpu')"
    assert difference(Program(0, [Line(text)])).startswith("x (torch.float32")
