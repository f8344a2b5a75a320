"""Reads a dump folder: ops, commands, buffers, lines, modules."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path

from torch_ltc._backend import bindings


def stage_files() -> dict[str, str]:
    """Returns the file name of each stage in a dump folder."""
    return {stage: file for stage, file, _ in bindings().STAGES}


@dataclass
class Op:
    """A traced op, or a parameter (`kind` is "parameter")."""

    number: int
    kind: str  # "aten::relu"
    text: str
    line: str  # "train.py:12", "" if unknown
    module: str


@dataclass
class Command:
    """A kernel call, library call, host call, copy, fill or bounds check."""

    number: int
    op: str  # "kernel_call", "matmul", "join"
    callee: str  # the function of a kernel call or host call
    lines: list[str]  # "train.py:12"
    operands: list[int]  # indices of buffers in the plan
    results: list[int]
    ops: list[str] = field(default_factory=list)  # "aten.tanh"
    modules: list[str] = field(default_factory=list)  # "body.1"
    types: list[str] = field(default_factory=list)  # of the results: "4x5xf32"
    bytes: int = 0  # of the results
    copies: int | None = None  # of a join: parts that aren't written in place
    collective: str = ""  # kind that it runs, starts or waits for: "all_reduce"
    started_by: int | None = None  # of a wait: the command that starts the collective

    @property
    def name(self) -> str:
        return self.callee or self.op

    @property
    def computes(self) -> str:
        """What the command computes: "aten.add+aten.tanh", or the function's name if no op
        is known."""
        if self.collective:
            return f"{self.name.removeprefix('torch_ltc::')} {self.collective}"
        if not self.ops:
            return self.name
        more = f"+{len(self.ops) - 4} more" if len(self.ops) > 4 else ""
        return "+".join(self.ops[:4]) + more


@dataclass
class Buffer:
    """The memory of a value, in use from command `first`, which first writes it, to command
    `last`, which last uses it."""

    place: str  # arena, output, parameter, scalar or constant
    number: int  # the offset in the arena, or the index in other places
    bytes: int
    first: int
    last: int

    @property
    def name(self) -> str:
        return f"{self.place} {self.number}"


class Plan:
    """The commands and buffers of a program, read from the JSON text of stage "plan"."""

    def __init__(self, text: str) -> None:
        plan = json.loads(text) if text else {}
        self.arena_bytes: int = plan.get("arena_bytes", 0)
        self.commands = [
            Command(
                number,
                row["op"],
                row.get("callee", ""),
                row["lines"],
                [part["buffer"] for part in row["operands"]],
                [part["buffer"] for part in row["results"]],
                row["ops"],
                row["modules"],
                [part["type"] for part in row["results"]],
                sum(part["bytes"] for part in row["results"]),
                row.get("copies"),
                row.get("collective", ""),
                row.get("started_by"),
            )
            for number, row in enumerate(plan.get("commands", []))
        ]
        self.buffers = [
            Buffer(
                row["place"],
                row["offset"] if row["place"] == "arena" else row["index"],
                row["bytes"],
                row.get("first", 0),
                row.get("last", 0),
            )
            for row in plan.get("buffers", [])
        ]

    @property
    def new_buffers(self) -> list[Buffer]:
        """The buffers of temporaries, and of results that don't overwrite a parameter."""
        return [b for b in self.buffers if b.place in ("arena", "output")]

    def offsets(self) -> list[tuple[Buffer, int]]:
        """Returns an offset in bytes for each new buffer: the planned one for a buffer in
        the arena. Results, which have separate memory, are placed after the arena, one
        after the other."""
        placed, top = [], self.arena_bytes
        for buffer in self.new_buffers:
            if buffer.place == "arena":
                placed.append((buffer, buffer.number))
            else:
                placed.append((buffer, top))
                top += buffer.bytes
        return placed

    def peak(self) -> tuple[int, list[Buffer]]:
        """Returns the number of the command during which the live new buffers have the most
        bytes, and these buffers."""
        new = self.new_buffers

        def alive(number: int) -> list[Buffer]:
            return [b for b in new if b.first <= number <= b.last]

        number = max(
            sorted({b.first for b in new}),
            key=lambda n: sum(b.bytes for b in alive(n)),
            default=0,
        )
        return number, alive(number)

    def maker(self, buffer: Buffer) -> Command | None:
        """Returns the first command that writes the buffer; None for a result that is
        copied at the end of the program."""
        known = buffer.first < len(self.commands)
        return self.commands[buffer.first] if known else None


@dataclass
class Dump:
    folder: Path
    summary: dict[str, str]
    plan: Plan
    ops: list[Op] = field(default_factory=list)
    tensors: list[list[str]] = field(default_factory=list)

    @property
    def commands(self) -> list[Command]:
        return self.plan.commands

    def text(self, stage: str) -> str:
        path = self.folder / stage_files()[stage]
        return path.read_text() if path.exists() else ""


def read_dump(folder: Path) -> Dump:
    """Reads a program's dump. Raises ValueError if the folder has no summary.txt."""
    if not (folder / "summary.txt").exists():
        raise ValueError(
            f"'{folder}' isn't the dump of a program: it has no summary.txt."
        )
    plan = folder / "plan.json"
    dump = Dump(
        folder,
        _summary((folder / "summary.txt").read_text()),
        Plan(plan.read_text() if plan.exists() else ""),
        _ops((folder / "ir.txt").read_text()),
    )
    tables = (folder / "tensors.txt").read_text().splitlines()[1:]
    dump.tensors = [re.split(r"\s{2,}", row.strip()) for row in tables]
    return dump


def _summary(text: str) -> dict[str, str]:
    return {line[:17].strip(): line[17:].strip() for line in text.splitlines()}


def _ops(text: str) -> list[Op]:
    result = []
    for match in re.finditer(r"^%(\d+) = (.*)$", text, re.M):
        body, _, comment = match[2].partition("  # ")
        line, _, module = comment.partition(" ")
        kind = re.search(r"(\w+::[\w.]+)\(| (parameter) ", body)
        name = (kind[1] or kind[2]) if kind else ""
        result.append(Op(int(match[1]), name, body, line, module))
    return result
