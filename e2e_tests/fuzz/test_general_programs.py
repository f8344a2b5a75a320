"""For random programs at random sizes, the general graph of two traces yields exactly the
trace at a third size, or rejects that size; and one executable for all sizes computes
eager's values.
"""

from __future__ import annotations

import contextlib
import re
from typing import Any

import general_graphs
import pytest
import torch
import torch_ltc
from fuzz.comparison import difference
from fuzz.drawing import draw
from fuzz.exactness import overlaps_itself
from fuzz.program import Line, Program, scope_of
from torch.utils._python_dispatch import TorchDispatchMode
from torch_ltc._backend import bindings

SEEDS, EACH, FULL = 60, 10, 1000
DRAWS = 6
FEWEST_LINES = 4

_LEAF = re.compile(r"^(v\d+ = \w+\(\d+, )\[([\d, ]*)\]")


def _grown(lines: list[str], seed: int) -> list[str]:
    """Returns the program with larger leaves."""
    growth = general_graphs.Growth(seed)

    def other(match: re.Match) -> str:
        sizes = [growth.size(int(size)) for size in match[2].split(",") if size.strip()]
        return f"{match[1]}{sizes}"

    return [_LEAF.sub(other, line) for line in lines]


def _scope(device: str) -> dict[str, Any]:
    return scope_of(device, lambda name, tensor: None) | {"mark_step": lambda: None}


class _DefinedCalls(TorchDispatchMode):
    """Raises ValueError for calls that eager runs although their results are undefined.
    The rules that draw calls avoid them at the drawn sizes, but not at other sizes."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        for argument, value in zip(func._schema.arguments, args):
            if argument.alias_info is None or not argument.alias_info.is_write:
                continue
            if isinstance(value, torch.Tensor) and overlaps_itself(value):
                raise ValueError("writes an element twice")
        if func._schema.name == "aten::native_batch_norm":
            sizes = {value.numel() for value in args[1:5] if value is not None}
            if sizes - {args[0].shape[1]}:
                # torch 2.13 reads beyond the end of a weight that is too short.
                raise ValueError("a weight of a different length")
        return func(*args, **(kwargs or {}))


def _num_accepted(lines: list[str]) -> int:
    """Returns the number of lines before the first one that eager rejects or whose result
    is undefined: literals for one set of sizes may not fit other sizes."""
    scope = _scope("cpu")
    for number, line in enumerate(lines):
        try:
            with _DefinedCalls():
                exec(line, scope)
        except Exception:
            return number
    return len(lines)


def _traced(lines: list[str]) -> Any:
    scope = _scope("lazy")

    def run() -> list[torch.Tensor]:
        exec("\n".join(lines), scope)
        return [
            value.detach()
            for name, value in scope.items()
            if isinstance(value, torch.Tensor) and name.startswith("v")
        ]

    with contextlib.suppress(RuntimeError, IndexError, ValueError):
        return general_graphs.trace(run)
    return None


def _versions(seed: int) -> list[list[str]]:
    """Returns a program at several sets of sizes, up to the first line that eager rejects
    for one of these; returns [] if too few lines are left."""
    lines = [line.text for line in draw(seed, 8, 24).lines]
    versions = [_grown(lines, 100 * seed + number) for number in range(DRAWS)]
    length = min(_num_accepted(version) for version in versions)
    if length < FEWEST_LINES:
        return []
    return [version[:length] for version in versions]


def _outcome(seed: int) -> general_graphs.Outcome:
    torch.manual_seed(seed)
    programs = [_traced(version) for version in _versions(seed)]
    return general_graphs.check([p for p in programs if p is not None])


def _check(first: int, count: int) -> int:
    bound = 0
    for seed in range(first, first + count):
        try:
            bound += _outcome(seed).bound
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error
        finally:
            torch_ltc.mark_step()
    return bound


@pytest.mark.parametrize("first", range(0, SEEDS, EACH))
def test_sample(first: int) -> None:
    assert _check(first, EACH) > 0


def _check_values(first: int, count: int) -> int:
    """Compares the programs with eager; returns how many used an executable for all
    sizes."""
    general = 0
    for seed in range(first, first + count):
        bindings().clear_program_cache()
        torch_ltc.reset_metrics()
        for version in _versions(seed):
            program = Program(seed, [Line(line) for line in version], tier="compile")
            with torch_ltc.config(varying_sizes="auto", cache=False):
                found = difference(program)
            assert not found, f"seed {seed}: {found}\n{program.text()}"
        general += torch_ltc.metrics()["programs_bound"]
    return general


@pytest.mark.parametrize("first", range(0, SEEDS, EACH))
def test_values(first: int) -> None:
    assert _check_values(first, EACH) > 0


@pytest.mark.full
@pytest.mark.parametrize("first", range(100, 100 + FULL, 100))
def test_full_values(first: int) -> None:
    _check_values(first, 100)


@pytest.mark.full
@pytest.mark.parametrize("first", range(100, 100 + FULL, 100))
def test_full(first: int) -> None:
    _check(first, 100)
