"""Public functions and options reject invalid arguments with one sentence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch_ltc
from torch_ltc import debug

CUDA = torch.device("cuda")


def _exported() -> torch_ltc.ExportedProgram:
    return torch_ltc.export(lambda x: x * 2, (torch.ones(2),), dialect="linalg")


FUNCTIONS: dict[str, tuple[Callable[[Any], Any], tuple[Any, ...]]] = {
    "mark_step": (torch_ltc.mark_step, ("cuda", "lazy:3", CUDA, 3, [], 2.5)),
    "mark_step wait": (lambda v: torch_ltc.mark_step(wait=v), ("yes", 3, None)),
    "sync": (torch_ltc.sync, (3, "x", [torch.ones(2), 3], {"a": 3})),
    "sync wait": (lambda v: torch_ltc.sync([], wait=v), ("yes", 1)),
    "wait_device_ops": (torch_ltc.wait_device_ops, ("cuda", 3, ["lazy", "cpu"], [3])),
    "add_step_closure": (torch_ltc.add_step_closure, (3, None, "print")),
    "closure args": (lambda v: torch_ltc.add_step_closure(print, v), (3, "ab")),
    "dump stage": (lambda v: debug.dump(torch.ones(2, device="lazy"), v), ("foo", 3)),
    "dump": (debug.dump, (2.5, None, torch.ones(2), [3], [])),
    "commands": (debug.commands, (2.5, None, [], 10**9)),
    "memory": (debug.memory, (2.5, None, "no such program")),
    "plan": (debug.plan, (2.5, None, "no such program")),
    "lockstep": (lambda v: debug.lockstep(v).__enter__(), ("abc", -1, float("nan"))),
    "dump_to": (lambda v: debug.dump_to(v).__enter__(), (3, None, "/dev/null/folder")),
    "exported run": (lambda v: _exported().run(v), (3, torch.ones(2))),
    "set_device": (torch.lazy.set_device, (1, "cuda", "lazy:2")),
}
CASES = [(name, value) for name, (_, values) in FUNCTIONS.items() for value in values]


@pytest.mark.parametrize(("name", "value"), CASES, ids=repr)
def test_functions(name: str, value: Any) -> None:
    with pytest.raises((TypeError, ValueError)) as caught:
        FUNCTIONS[name][0](value)
    text = str(caught.value)
    assert text and "\n" not in text
    assert "object is not" not in text, text  # an error of Python's own


def rejected_values(option: dict[str, Any]) -> list[Any]:
    numbers = [-1, 2.5, "3", True, 2**70]
    texts = [3, True, None, b"x"]
    known = {"bool": ["yes", 1, 0, None, 2.5], "int": numbers, "str": texts}
    return [*known[option["type"]], *(["nonsense"] if option["choices"] else [])]


@pytest.mark.parametrize("option", torch_ltc.config.options(), ids=lambda o: o["name"])
def test_options(option: dict[str, Any]) -> None:
    name = option["name"]
    for value in rejected_values(option):
        before = getattr(torch_ltc.config, name)
        with pytest.raises((TypeError, ValueError)) as caught:
            setattr(torch_ltc.config, name, value)
        assert "\n" not in str(caught.value)
        assert getattr(torch_ltc.config, name) == before


def test_the_cpu_is_chosen_before_the_start() -> None:
    with pytest.raises(ValueError, match="TORCH_LTC_CPU"):
        torch_ltc.config.cpu = "x86-64-v3"
    torch_ltc.config.cpu = torch_ltc.config.cpu


def test_a_tolerance_is_a_number() -> None:
    for value in ("1e-4", "0", ""):
        with torch_ltc.config(lockstep_tolerance=value):
            assert torch_ltc.config.lockstep_tolerance == value
