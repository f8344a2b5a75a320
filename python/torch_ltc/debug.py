"""What a program looks like at each stage of its way to host code.

print(torch_ltc.debug.dump(loss))                    # pending, not run
print(torch_ltc.debug.dump(-1, stage="linalg"))      # the last step
with torch_ltc.debug.dump_to("dumps"):               # a folder a program
    train()
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import torch

from torch_ltc._backend import bindings
from torch_ltc.config import config
from torch_ltc.dump_page import write_pages
from torch_ltc.naming import name_parameters

__all__ = [
    "STAGES",
    "commands",
    "detect_nan",
    "dump",
    "dump_to",
    "inputs_and_outputs",
    "name_parameters",
    "no_fallback",
    "no_recompile",
    "no_sync",
]

#: ir: traced nodes; torch-raw: torch dialect as traced; torch: at the backend
#: contract; linalg: on tensors; kernels: command list; llvm: IR per kernel.
STAGES = ("ir", "torch-raw", "torch", "linalg", "kernels", "llvm")


def dump(
    target: torch.Tensor | Sequence[torch.Tensor] | int | str, stage: str = "torch"
) -> str:
    """Text of a program at `stage`: one of `STAGES`, or "dot", the traced graph
    for Graphviz (`dot -Tsvg`).

    `target`: lazy tensors, whose pending graph is shown without being run; a
    step number of `torch_ltc.step_log()` (-1 is the last one); or a program's
    hash (its beginning is enough) from `torch_ltc.compile_log()`.
    """
    if stage not in (*STAGES, "dot"):
        raise ValueError(
            f"Unknown stage '{stage}': it is one of {', '.join(STAGES)}, dot."
        )
    if isinstance(target, (int, str)):
        program = _program(target)
        if stage == "dot":
            return bindings().kept_program(program).dot()
        return bindings().program_text(program, stage)
    tensors = [target] if isinstance(target, torch.Tensor) else list(target)
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
    if stage == "dot":
        return bindings().pending_program(tensors).dot()
    return bindings().tensor_text(tensors, stage)


def inputs_and_outputs(target: int | str = -1) -> list[dict[str, Any]]:
    """A step's tensors: role, index, name, dtype, sizes, bytes, donated."""
    return bindings().program_tensors(_program(target))


def commands(target: int | str = -1) -> list[dict[str, Any]]:
    """A step's command list: name, location, calls, seconds. Seconds are
    measured while config `profile_commands` is on."""
    return bindings().program_commands(_program(target))


@contextmanager
def dump_to(directory: str | os.PathLike[str]) -> Iterator[str]:
    """Writes each program that runs in the block to a folder of its own, with
    the text of every stage and an index.html to read. ValueError: the directory
    can't be written."""
    path = os.path.abspath(os.fspath(directory))
    try:
        os.makedirs(path, exist_ok=True)
    except OSError as error:
        raise ValueError(f"Nothing can be dumped to '{path}': {error}.") from error
    with config(dump=path):
        yield path
        bindings().wait_device_ops()  # for the times of its commands
    with contextlib.suppress(ValueError):  # nothing ran; or said when it was dumped
        write_pages(Path(path))


@contextmanager
def _guard(kind: str) -> Iterator[None]:
    bindings().enter_guard(kind)
    try:
        yield
    finally:
        bindings().leave_guard(kind)


def no_sync() -> AbstractContextManager[None]:
    """In the block, reading a value that isn't computed yet (`.item()`,
    `print`, `.cpu()`, a fallback) raises RuntimeError with the Python line."""
    return _guard("sync")


def no_fallback() -> AbstractContextManager[None]:
    """In the block, an op that would run eagerly raises RuntimeError."""
    return _guard("fallback")


def no_recompile() -> AbstractContextManager[None]:
    """In the block, a program that isn't in memory yet raises RuntimeError
    with what differs from the nearest known one. For loops that have warmed up."""
    return _guard("recompile")


@contextmanager
def detect_nan() -> Iterator[None]:
    """In the block, a step whose results have a NaN or an Inf raises
    RuntimeError with the first op that made one, its Python line and module.

    Slower: nothing is overwritten in place, and each result is looked at.
    """
    with config(detect_nan=True, source_info=True):
        yield
        bindings().wait_device_ops()


def _program(target: int | str) -> str:
    """The hash of a step's or of an abbreviated program."""
    backend = bindings()
    if isinstance(target, str):
        known = [entry["program"] for entry in backend.compile_log()]
        matches = sorted({name for name in known if name.startswith(target)})
        if len(matches) != 1:
            problem = "more than one program's" if matches else "no program's"
            raise ValueError(
                f"'{target}' is the beginning of {problem} hash; "
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
