"""Texts of programs at each stage, and checks of running programs.

print(torch_ltc.debug.dump(loss))                    # pending, not run
print(torch_ltc.debug.dump(-1, stage="linalg"))      # the last step
with torch_ltc.debug.dump_to("dumps"):               # a folder a program
    train()
"""

from __future__ import annotations

import contextlib
import json
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import torch

from torch_ltc._backend import bindings
from torch_ltc._diagnostics.dump_reading import Plan, stage_files
from torch_ltc._diagnostics.graph_drawing import svg
from torch_ltc._torch_patches.naming import name_parameters
from torch_ltc.config import config
from torch_ltc.dump_page import write_pages

__all__ = [
    "DRAWINGS",
    "STAGES",
    "commands",
    "detect_nan",
    "dump",
    "dump_to",
    "inputs_and_outputs",
    "lockstep",
    "memory",
    "name_parameters",
    "no_fallback",
    "no_recompile",
    "no_sync",
    "plan",
]

#: The traced graph for Graphviz, and as a picture.
DRAWINGS = ("dot", "svg")
#: The stages that have a text, in order; tosa and stablehlo are for other compilers.
STAGES: tuple[str, ...]


def __getattr__(name: str) -> Any:
    """`STAGES`, a list that the compiler defines."""
    if name != "STAGES":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return tuple(stage for stage in stage_files() if stage != "plan")


def dump(
    target: torch.Tensor | Sequence[torch.Tensor] | int | str, stage: str = "torch"
) -> str:
    """Text of a program at `stage`: one of `STAGES`, its "plan" as JSON (see `plan`),
    or the traced graph as a drawing: "dot" for Graphviz, or "svg".

    `target`: lazy tensors, whose pending graph is shown without being run; a step
    number of `torch_ltc.step_log()` (-1 is the last one); or a program's hash (a prefix
    is enough) from `torch_ltc.compile_log()`.
    """
    if stage not in (*stage_files(), *DRAWINGS):
        names = ", ".join((*stage_files(), *DRAWINGS))
        raise ValueError(f"Unknown stage '{stage}': it is one of {names}.")
    if isinstance(target, (int, str)):
        program = _program(target)
        if stage in DRAWINGS:
            return _drawing(bindings().kept_program(program), stage)
        return bindings().program_text(program, stage)
    tensors = list(target) if isinstance(target, (list, tuple)) else [target]
    if not tensors:
        raise ValueError("torch_ltc.debug.dump needs at least one tensor.")
    for tensor in tensors:
        if not isinstance(tensor, torch.Tensor) or tensor.device.type != "lazy":
            what = (
                f"a tensor on '{tensor.device}'"
                if isinstance(tensor, torch.Tensor)
                else f"a {type(tensor).__name__}"
            )
            raise TypeError(
                f"torch_ltc.debug.dump shows lazy tensors, but got {what}; move it "
                "with .to('lazy') before the computation to be shown."
            )
    if stage in DRAWINGS:
        return _drawing(bindings().pending_program(tensors), stage)
    return bindings().tensor_text(tensors, stage)


def _drawing(program: Any, form: str) -> str:
    return svg(program.dot()) if form == "svg" else program.dot()


def inputs_and_outputs(target: int | str = -1) -> list[dict[str, Any]]:
    """A step's tensors: role, index, name, dtype, sizes, bytes, donated."""
    return bindings().program_tensors(_program(target))


def commands(target: int | str = -1) -> list[dict[str, Any]]:
    """A step's commands: name, location, module, results (their types), calls, seconds.
    Seconds are measured while config `profile_commands` is on; lines and modules are
    those of a step compiled with `source_info`."""
    return bindings().program_commands(_program(target))


def plan(target: int | str = -1) -> dict[str, Any]:
    """A step's commands with their operands and results, and the buffers that hold
    these: place, bytes, offset in the arena, first and last command. This is the
    compiler's plan of the program, not derived from its text."""
    return json.loads(bindings().program_text(_program(target), "plan"))


def memory(target: int | str = -1) -> dict[str, Any]:
    """A step's memory at its peak: `peak_bytes` of temporaries and new results,
    `command` at which they are all alive, `lines` (bytes by the Python line that
    creates them, largest first), and `input_bytes` of the inputs, including overwritten
    parameters.

    Lines are known for steps that were traced with config `source_info`."""
    program = _program(target)
    plan = Plan(bindings().program_text(program, "plan"))
    command, alive = plan.peak()
    lines: Counter[str] = Counter()
    for buffer in alive:
        maker = plan.maker(buffer)
        known = sorted(maker.lines) if maker else []
        lines[known[0] if known else "unknown"] += buffer.bytes
    tensors = bindings().program_tensors(program)
    return {
        "peak_bytes": sum(buffer.bytes for buffer in alive),
        "command": command,
        "lines": dict(lines.most_common()),
        "input_bytes": sum(row["bytes"] for row in tensors if row["role"] == "input"),
    }


@contextmanager
def dump_to(directory: str | os.PathLike[str], inputs: bool = False) -> Iterator[str]:
    """Writes each program that runs in the block to its own folder, with the text of
    every stage and a readable index.html. Raises ValueError if the folder can't be
    written. `inputs`: also saves the values of its first run, so that `python -m
    torch_ltc.replay` computes the same."""
    path = os.path.abspath(os.fspath(directory))
    try:
        os.makedirs(path, exist_ok=True)
    except OSError as error:
        raise ValueError(f"Nothing can be dumped to '{path}': {error}.") from error
    with config(dump=path, dump_inputs=inputs or config.dump_inputs):
        yield path
        bindings().wait_device_ops()  # for the times of its commands
    with contextlib.suppress(ValueError):  # nothing ran, or reported when it was dumped
        write_pages(Path(path))


@contextmanager
def _guard(kind: str) -> Iterator[None]:
    bindings().enter_guard(kind)
    try:
        yield
    finally:
        bindings().leave_guard(kind)


def no_sync() -> AbstractContextManager[None]:
    """In the block, reading a pending value (`.item()`, `print`, `.cpu()`, a fallback)
    raises RuntimeError with the Python line."""
    return _guard("sync")


def no_fallback() -> AbstractContextManager[None]:
    """In the block, an op that would run eagerly raises RuntimeError."""
    return _guard("fallback")


def no_recompile() -> AbstractContextManager[None]:
    """In the block, a program that isn't in memory yet raises RuntimeError with the
    difference from the nearest known one. For loops that have warmed up."""
    return _guard("recompile")


@contextmanager
def detect_nan() -> Iterator[None]:
    """In the block, a step whose results contain a NaN or an Inf raises RuntimeError
    with the first op that produced one, its Python line and module.

    Slower: nothing is overwritten in place, and each result is checked.
    """
    with config(detect_nan=True, source_info=True):
        yield
        bindings().wait_device_ops()


@contextmanager
def lockstep(tolerance: float | None = None) -> Iterator[None]:
    """In the block, each step is also run op by op with PyTorch's CPU kernels; if
    the results differ, RuntimeError names the first op that differs, its Python
    line and module.

    `tolerance`: the largest allowed difference, relative to a tensor's largest element;
    the default allows for the rounding of its dtype. Integers must be equal.
    """
    if tolerance is not None and not (
        isinstance(tolerance, (int, float)) and tolerance >= 0
    ):
        raise ValueError(
            f"A tolerance must be a non-negative number, but got {tolerance!r}."
        )
    limit = "" if tolerance is None else repr(float(tolerance))
    with config(lockstep=True, lockstep_tolerance=limit, source_info=True):
        yield
        bindings().wait_device_ops()


def _program(target: int | str) -> str:
    """The hash of the program of a step, or the hash that has `target` as a prefix."""
    if isinstance(target, bool) or not isinstance(target, (int, str)):
        raise TypeError(
            "Expected a step's number or a prefix of a program's hash, but "
            f"got {target!r:.60}."
        )
    backend = bindings()
    if isinstance(target, str):
        known = [entry["program"] for entry in backend.compile_log()]
        matches = sorted({name for name in known if name.startswith(target)})
        if len(matches) != 1:
            problem = "more than one program's" if matches else "no program's"
            raise ValueError(
                f"'{target}' is a prefix of {problem} hash; "
                "torch_ltc.compile_log() lists them."
            )
        return matches[0]
    steps = backend.step_log()
    if target < 0 and -target <= len(steps):
        return steps[target]["program"]
    for entry in reversed(steps):
        if entry["step"] == target:
            return entry["program"]
    raise ValueError(
        f"Step {target} isn't in torch_ltc.step_log(), which has "
        f"{len(steps)} executions; has a step ended yet?"
    )
