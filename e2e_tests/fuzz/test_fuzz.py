"""Programs that failed once, and a sample of random programs, have eager's results."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch_ltc
from fuzz import exactness, table
from fuzz.comparison import MovedByAnUlp, difference
from fuzz.drawing import Drawing, draw, draw_large
from fuzz.found import PROGRAMS
from fuzz.program import Line, Program, scope_of
from fuzz.shrinking import shrink

SEEDS, EACH, FULL = 60, 10, 600
LARGE = 30


def _program(text: str, seed: int = 0) -> Program:
    return Program(seed, [Line(line) for line in text.strip().splitlines()])


@pytest.mark.parametrize("name", PROGRAMS)
def test_found(name: str) -> None:
    assert not difference(_program(PROGRAMS[name]))


@pytest.mark.parametrize("first", range(0, SEEDS, EACH))
def test_sample(first: int) -> None:
    _agree(first, EACH)


@pytest.mark.full
@pytest.mark.parametrize("first", range(100, 100 + FULL, 100))
def test_full(first: int) -> None:
    _agree(first, 100)


@pytest.mark.parametrize("tier", ["compile", "interpret"])
@pytest.mark.parametrize("first", range(0, LARGE, EACH))
def test_large_sample(first: int, tier: str) -> None:
    with torch_ltc.config(tier=tier):
        _agree(first, EACH, draw_large, "--large")


def _agree(
    first: int, count: int, draw: Callable[[int], Program] = draw, kind: str = ""
) -> None:
    found = {seed: difference(draw(seed)) for seed in range(first, first + count)}
    failed = {seed: text for seed, text in found.items() if text}
    assert not failed, f"python -m fuzz {kind} --shrink --seeds {min(failed)}: {failed}"


def test_a_seed_is_a_program() -> None:
    assert draw(3).text() == draw(3).text()
    assert draw(3).text() != draw(4).text()


@pytest.mark.parametrize("seed", [4761, 3, 4, 5, 6])
def test_what_was_drawn_is_what_runs(seed: int) -> None:
    """Ops that are tried and rejected don't change the values of the drawing. With seed
    4761, a rejected `as_strided_` once changed a tensor's geometry."""
    drawing = Drawing(seed)
    program = drawing.program(drawing.random.randint(5, 60))  # like `draw`
    left = {n: (t.shape, t.stride(), t.dtype) for n, t in drawing.values.items()}
    scope = scope_of("cpu", lambda name, tensor: None)
    torch.manual_seed(seed)
    exec(program.text(), scope)
    assert left == {
        n: (scope[n].shape, scope[n].stride(), scope[n].dtype) for n in left
    }


def test_what_was_not_drawn_leaves_no_gradient() -> None:
    """The program of seed 635824 runs. When it was drawn, a write to a tensor that requires
    gradients was undone."""
    draw(635824).run("cpu")


def test_a_moved_probability_is_one() -> None:
    """Values in [0, 1] may be probabilities for `bernoulli`, so they stay in [0, 1] when
    they are perturbed (seed 9366)."""
    text = """
v0 = grid(1, [20], torch.float32)
v1 = aten.bernoulli.default(aten.clamp.default(v0, 0, 1))
"""
    for number in range(5):
        with MovedByAnUlp(number):
            _program(text).run("cpu")


def test_most_ops_are_drawn() -> None:
    drawn = {line.op for seed in range(150) for line in draw(seed).lines}
    missing = {op.name for op in table.ops()} - drawn
    assert len(missing) <= len(table.ops()) // 50, missing


def test_differences_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program whose lazy run differs from its eager run is reduced to the lines that the
    difference depends on."""
    text = """
v0 = grid(1, [3], torch.float32)
v1 = aten.exp.default(v0)
v2 = aten.mul.Tensor(v1, v1)
v3 = aten.add.Tensor(v2, 1.001 if device == 'lazy' else 1.0)
v4 = aten.neg.default(v0)
"""
    program = _program(text)
    for line, reads in zip(program.lines, ({}, {"v0"}, {"v1"}, {"v2"}, {"v0"})):
        line.reads, line.writes = set(reads), [line.text.split(" ")[0]]
    assert "v3" in difference(program)
    short = shrink(program, lambda candidate: bool(difference(candidate)))
    assert len(short.lines) == 4
    assert "v4" not in short.text()


def test_rounding_is_distinguished_from_errors() -> None:
    """A rounding error in a sum that cancels is accepted; an error of 0.25 is reported."""
    cancelling = "v0 = noise(1, [200], torch.float32)\nv1 = (v0 * 1000).sum() - (v0 * 1000).flip(0).sum()"
    assert not difference(_program(cancelling))
    wrong = (
        "v0 = grid(1, [4], torch.float32)\nv1 = v0 + (0.25 if device == 'lazy' else 0)"
    )
    assert "4 differ" in difference(_program(wrong))


def test_writes_to_one_element_twice_are_seen() -> None:
    assert exactness.overlaps_itself(torch.zeros(3).expand(2, 3))
    assert not exactness.overlaps_itself(torch.zeros(4, 3).t()[1:])


def test_a_moved_square_has_a_root() -> None:
    """Nonnegative results stay nonnegative when they are perturbed: an op may reject the
    NaN of a negative number's root (`multinomial`)."""
    x = torch.tensor([[1.0, 1.0], [0.0, 100.0]], dtype=torch.float64).repeat(32, 1)
    for number in range(4):
        with MovedByAnUlp(number):
            assert x.var(1).sqrt().isfinite().all()
