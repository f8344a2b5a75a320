"""Random programs that reuse nodes of cached traces have the values and errors that they have
without reuse."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator

import pytest
import torch
import torch_ltc
from counting import Counts, counting
from fuzz.drawing import draw
from fuzz.program import Program, Values, scope_of


def run(program: Program, shift: int) -> tuple[Values, list[str]]:
    """Runs the program on device lazy, with different values for each `shift`. Returns
    the values of its tensors and the messages of its errors."""
    seen: Values = []
    scope = scope_of("lazy", lambda n, t: seen.append((n, t.detach().cpu().clone())))
    for name, place in {"grid": 0, "noise": 0, "order": 0, "below": 1}.items():

        def shifted(*arguments, maker=scope[name], place=place) -> torch.Tensor:
            values = list(arguments)
            values[place] += 1000 * shift
            return maker(*values)

        scope[name] = shifted
    torch.manual_seed(shift)
    errors: list[str] = []
    # Errors are recorded, because the shifted values may be out of an op's range.
    with noting(errors):
        exec(compile(program.text(), "<program>", "exec"), scope)
    torch_ltc.mark_step()
    for name, tensor in list(scope.items()):
        if isinstance(tensor, torch.Tensor):
            with noting(errors):
                seen.append((name, tensor.detach().cpu()))
    return seen, errors


@contextlib.contextmanager
def noting(errors: list[str]) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        text = str(error).split("\n")[0]
        errors.append(re.sub(r"[Ss]tep \d+|\(at .*?\)", "", text))


def assert_same_without(seeds: range) -> Counts:
    """Runs random programs three times in a row with different values. Asserts that values
    and errors are the same without reuse."""
    with counting() as total:
        for seed in seeds:
            program = draw(seed)
            got = [run(program, shift) for shift in range(3)]
            with torch_ltc.config(reuse_traces=False):
                wanted = [run(program, shift) for shift in range(3)]
            for (values, errors), (others, other) in zip(got, wanted):
                assert errors == other, f"seed {seed}"
                for (name, a), (_, b) in zip(values, others, strict=True):
                    same = a.dtype == b.dtype and a.stride() == b.stride()
                    assert same, f"{name} of seed {seed}"
                    assert torch.equal(a.nan_to_num(7), b.nan_to_num(7)), (
                        f"{name} of seed {seed}"
                    )
    return total


def test_random_programs_in_a_row() -> None:
    counts = assert_same_without(range(12))
    # Of three runs with reuse and three without, two can reuse nodes of the first.
    assert counts.reused_ops > counts.traced_ops / 4


@pytest.mark.full
def test_many_random_programs_in_a_row() -> None:
    assert_same_without(range(1000, 1600))
