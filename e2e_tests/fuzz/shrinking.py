"""Shortens a program that fails as far as possible."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from fuzz.program import Line, Program


def shrink(program: Program, fails: Callable[[Program], bool]) -> Program:
    """Removes lines, together with the lines that depend on them, while the program
    still fails."""
    lines = list(program.lines)
    changed = True
    while changed:
        changed = False
        for number in range(len(lines) - 1, -1, -1):
            if number >= len(lines):
                continue
            fewer = _without(lines, number)
            if fails(replace(program, lines=fewer)):
                lines, changed = fewer, True
        for number, line in enumerate(lines):
            replaced = _as_input(line, program)
            if replaced is None:
                continue
            other = [*lines[:number], replaced, *lines[number + 1 :]]
            if fails(replace(program, lines=other)):
                lines, changed = other, True
                break
    return replace(program, lines=lines)


def _without(lines: list[Line], number: int) -> list[Line]:
    gone = set(lines[number].writes)
    kept = lines[:number]
    for line in lines[number + 1 :]:
        if line.text.startswith("del ") and line.reads <= gone:
            continue
        if line.reads & gone:
            gone |= set(line.writes)
            continue
        kept.append(line)
    return kept


def _as_input(line: Line, program: Program) -> Line | None:
    """Returns `line` with its op replaced by an input of the same shape and dtype, or None
    if it can't be replaced."""
    if not line.op or len(line.writes) != 1 or not line.reads:
        return None
    import torch
    from fuzz.program import scope_of

    scope = scope_of("cpu", lambda name, tensor: None)
    torch.manual_seed(program.seed)
    for other in program.lines:
        try:
            exec(other.text, scope)
        except Exception:
            return None
        if other is line or other.text == line.text:
            break
    value = scope.get(line.writes[0])
    if not isinstance(value, torch.Tensor):
        return None
    text = f"{line.writes[0]} = grid(1, {list(value.shape)}, {value.dtype})"
    return Line(text, set(), line.writes)
