"""Shows programs as text at each stage, and checks running programs.

print(torch_ltc.debug.dump(loss))                    # pending, not run
print(torch_ltc.debug.dump(-1, stage="linalg"))      # the last step
with torch_ltc.debug.dump_to("dumps"):               # a folder for each program
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

#: The forms of a drawing of the traced graph: Graphviz source, SVG.
DRAWINGS = ("dot", "svg")
#: The stages that have a text, in order. tosa and stablehlo are for other compilers.
STAGES: tuple[str, ...]


def __getattr__(name: str) -> Any:
    """Returns `STAGES`, which the compiler defines."""
    if name != "STAGES":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return tuple(stage for stage in stage_files() if stage != "plan")


def dump(
    target: torch.Tensor | Sequence[torch.Tensor] | int | str, stage: str = "torch"
) -> str:
    """Returns the text of a program at `stage`: one of `STAGES`, "plan" for the plan as
    JSON (see `plan`), or "dot" (Graphviz) or "svg" for a drawing of the traced graph.

    `target`: lazy tensors, whose pending graph is shown without being run; a step
    number of `torch_ltc.step_log()` (-1 is the last step); or a program's hash, or a
    prefix of it, from `torch_ltc.compile_log()` or `step_log()`. Raises ValueError for an unknown stage,
    step or hash, and TypeError for tensors on other devices.
    """
    if stage not in (*stage_files(), *DRAWINGS):
        names = ", ".join((*stage_files(), *DRAWINGS))
        raise ValueError(f"Unknown stage '{stage}': it must be one of {names}.")
    if isinstance(target, (int, str)):
        program = _program(target)
        if stage in DRAWINGS:
            return _drawing(bindings().recent_program(program), stage)
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
    """Returns a row for each input and output of a step's program: role, index, name,
    dtype, sizes, bytes, donated."""
    return bindings().program_tensors(_program(target))


def commands(target: int | str = -1) -> list[dict[str, Any]]:
    """Returns a row for each command of a step: name, location, module, results (their
    types), calls, seconds. Seconds are measured while option `profile_commands` is on.
    Location and module are known for steps compiled with option `source_info`."""
    return bindings().program_commands(_program(target))


def plan(target: int | str = -1) -> dict[str, Any]:
    """Returns the buffer plan of a step's program: the commands with their operands and
    results, and the buffers that hold these, each with place, bytes, offset in the arena,
    first and last command."""
    return json.loads(bindings().program_text(_program(target), "plan"))


def memory(target: int | str = -1) -> dict[str, Any]:
    """Returns a step's memory at its peak: `peak_bytes` of temporaries and new results,
    the `command` during which these are alive, `lines` (bytes by the Python line that
    creates them, largest first), and `input_bytes` of the inputs, including overwritten
    parameters.

    Lines are known for steps that were traced with option `source_info`."""
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
    """Writes each program that runs in the block to a separate folder in `directory`, with
    the text of every stage and a readable index.html. `inputs`: also saves the input
    values of each program's first run, so that `python -m torch_ltc.replay` computes the
    same results. Yields the absolute path. Raises ValueError if the folder can't be
    written."""
    path = os.path.abspath(os.fspath(directory))
    try:
        os.makedirs(path, exist_ok=True)
    except OSError as error:
        raise ValueError(f"Nothing can be dumped to '{path}': {error}.") from error
    with config(dump=path, dump_inputs=inputs or config.dump_inputs):
        yield path
        bindings().wait_device_ops()  # the pages contain the times of commands
    with contextlib.suppress(ValueError):  # no dump, or a reported failure
        write_pages(Path(path))


@contextmanager
def _guard(kind: str) -> Iterator[None]:
    bindings().enter_guard(kind)
    try:
        yield
    finally:
        bindings().leave_guard(kind)


def no_sync() -> AbstractContextManager[None]:
    """Raises RuntimeError with the Python line if a pending value is read in the block
    (`.item()`, `print`, `.cpu()`, a fallback)."""
    return _guard("sync")


def no_fallback() -> AbstractContextManager[None]:
    """Raises RuntimeError if an op in the block would run eagerly."""
    return _guard("fallback")


def no_recompile() -> AbstractContextManager[None]:
    """Raises RuntimeError, with the difference from the nearest known program, if a step in
    the block needs a program that isn't in the program cache. Use it for loops that have
    warmed up."""
    return _guard("recompile")


@contextmanager
def detect_nan() -> Iterator[None]:
    """Raises RuntimeError if the results of a step in the block contain a NaN or an Inf.
    The error names the first op that produced one, its Python line and module.

    Steps are slower in the block: they donate no buffers, and each result is checked.
    """
    with config(detect_nan=True, source_info=True):
        yield
        bindings().wait_device_ops()


@contextmanager
def lockstep(tolerance: float | None = None) -> Iterator[None]:
    """Also runs each step in the block op by op with PyTorch's CPU kernels. If the results
    differ, raises RuntimeError. The error names the first op whose results differ, its
    Python line and module.

    `tolerance`: the largest allowed difference, relative to a tensor's largest element.
    The default allows for the rounding of the tensor's dtype. Integers must be equal.
    Raises ValueError for a negative tolerance.
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
    """Returns the hash of the program of step `target` or, if `target` is a str, the known
    hash that starts with it. Raises ValueError if there is none, or more than one."""
    if isinstance(target, bool) or not isinstance(target, (int, str)):
        raise TypeError(
            "Expected a step's number or a prefix of a program's hash, but "
            f"got {target!r:.60}."
        )
    backend = bindings()
    if isinstance(target, str):
        # A program that was made before `reset_metrics()` is only in the log of steps.
        rows = (*backend.compile_log(), *backend.step_log())
        known = {row["program"] for row in rows}
        matches = sorted(name for name in known if name.startswith(target))
        if len(matches) != 1:
            problem = (
                "Several programs' hashes start"
                if matches
                else "No program's hash starts"
            )
            raise ValueError(
                f"{problem} with '{target}'; torch_ltc.compile_log() and step_log() list "
                "them."
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
