"""Backends that support programs for all sizes receive them and compute eager's results."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import torch_ltc
from comparison import assert_close
from torch import nn
from torch_ltc._backend import bindings
from torch_ltc.program import Program

sys.path.append(str(Path(__file__).resolve().parents[2] / "examples" / "backends"))

import eager_interpreter


class Recorder:
    """A backend that records its programs and compiles with the example's interpreter."""

    def __init__(self) -> None:
        self.programs: list[Program] = []

    def __call__(self, program: Program) -> Any:
        self.programs.append(program)
        return eager_interpreter.compile(program)

    def dynamic(self) -> list[bool]:
        return [program.is_dynamic for program in self.programs]


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    found = Recorder()
    torch_ltc.register_backend("recorder", found, dynamic=True)
    torch.lazy.empty_cache()
    with torch_ltc.config(varying_numbers="off"), torch_ltc.use_backend("recorder"):
        yield found
    torch_ltc.unregister_backend("recorder")


def check(function: Any, *rows: tuple[torch.Tensor, ...]) -> None:
    for row in rows:
        lazy = [tensor.to("lazy") for tensor in row]
        assert_close(function(*lazy), function(*row))


def test_one_program_for_all_sizes(recorder: Recorder) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 16), nn.GELU(), nn.LayerNorm(16))
    lazy = nn.Sequential(nn.Linear(6, 16), nn.GELU(), nn.LayerNorm(16))
    lazy.load_state_dict(model.state_dict())
    lazy.to("lazy").requires_grad_(False)
    for size in (4, 7, 9, 12, 30):
        x = torch.randn(size, 6)
        assert_close(lazy(x.to("lazy")), model(x))
    assert recorder.dynamic() == [False, True]
    general = recorder.programs[1]
    assert (None, 6) in [spec.shape for spec in general.inputs]
    assert [spec.shape for spec in general.outputs] == [(None, 16)]
    assert "torch.symbolic_int" in general.text
    assert "float32[?,6]" in [str(spec) for spec in general.inputs]


def test_sizes_that_no_input_has(recorder: Recorder) -> None:
    """A slice's start that doesn't follow from a size is a number argument of the program,
    after the tensors."""

    def rows(x: torch.Tensor, start: int) -> torch.Tensor:
        return x[start : start + 4] * 2

    for start, size in ((5, 40), (12, 61), (20, 50), (9, 44)):
        x = torch.randn(size, 3)
        ours = rows(x.to("lazy"), start).cpu()
        assert_close(ours, rows(x, start))
    assert recorder.dynamic() == [False, True]
    assert recorder.programs[1].scalars == [int, int]  # start and end


def test_sizes_for_which_it_is_wrong(recorder: Recorder) -> None:
    """A size that the program for all sizes excludes gets its own program: `x[:50]` is as
    long as `x` if `x` is short."""
    rows = [(torch.randn(size, 3),) for size in (60, 70, 80, 30, 90)]
    check(lambda x: x[:50] + 1, *rows)
    assert recorder.dynamic() == [False, True, False]


def test_a_wrong_guess_is_corrected(recorder: Recorder) -> None:
    """Sizes that are equal in the first programs are one symbol until they differ."""
    rows = [(torch.randn(*size),) for size in ((8, 8), (5, 5), (6, 9), (7, 4))]
    check(lambda x: x.reshape(-1) + 1, *rows)
    assert recorder.dynamic() == [False, True, True]


def test_data_computed_from_a_size(recorder: Recorder) -> None:
    """A tensor of numbers that Python computes from a size is an input of the program."""

    def scaled(x: torch.Tensor) -> torch.Tensor:
        return x * torch.tensor([float(x.shape[0])] * 2).to(x.device)

    rows = [(torch.randn(size, 2),) for size in (3, 4, 5)]
    check(scaled, *rows)
    assert recorder.dynamic() == [False, True]


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
def test_steps_that_vary(recorder: Recorder, kind: type[nn.RNNBase]) -> None:
    """Each step of a recurrent layer is a few ops, so there is no program for any number of
    steps; the attempt must not lower thousands of steps."""
    torch.manual_seed(0)
    model = kind(4, 3)
    lazy = kind(4, 3)
    lazy.load_state_dict(model.state_dict())
    lazy.to("lazy").requires_grad_(False)
    for steps in (5, 7, 9):
        x = torch.randn(steps, 2, 4)
        assert_close(lazy(x.to("lazy"))[0], model(x)[0])
    assert recorder.dynamic() == [False] * 3
    reasons = [row["reason"] for row in torch_ltc.compile_log()]
    assert any("the number of steps" in reason for reason in reasons)


def test_a_backend_that_is_not_dynamic() -> None:
    found = Recorder()
    torch_ltc.register_backend("static", found)
    with torch_ltc.use_backend("static"):
        check(lambda x: x * 3 + 1, *[(torch.randn(size),) for size in (3, 4, 5)])
    torch_ltc.unregister_backend("static")
    assert found.dynamic() == [False] * 3


def test_other_stages_are_rejected() -> None:
    with pytest.raises(ValueError, match="can't be dynamic at stage 'linalg'"):
        torch_ltc.register_backend("x", lambda p: p, stage="linalg", dynamic=True)


def test_dump_of_a_general_program() -> None:
    with torch_ltc.config(tier="compile", varying_sizes="auto", cache=False):
        torch.lazy.empty_cache()
        check(lambda x: (x @ x.T).relu(), *[(torch.randn(n, 3),) for n in (4, 6)])
        events = bindings().compile_log()
    name = next(
        event["program"]
        for event in reversed(events)
        if event["reason"].startswith("one program for all sizes")
    )
    text = torch_ltc.debug.dump(name)
    assert "torch.symbolic_int" in text and "!torch.vtensor<[?,?],f32>" in text
    with pytest.raises(RuntimeError, match="stages torch-raw and torch, but not at"):
        torch_ltc.debug.dump(name, stage="linalg")
