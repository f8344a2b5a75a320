"""Reads a dump folder: ops, kernel commands, buffers, lines, modules."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

STAGE_FILES = {
    "ir": "ir.txt",
    "torch-raw": "torch-raw.mlir",
    "torch": "torch.mlir",
    "linalg": "linalg.mlir",
    "kernels": "kernels.mlir",
    "llvm": "llvm.ll",
}

_BYTES = {"f64": 8, "i64": 8, "f32": 4, "i32": 4, "bf16": 2, "f16": 2, "i16": 2}
_LOCATION = re.compile(r"^#(loc\d*) = loc\((.*)\)$", re.M)
_CALL = re.compile(
    r'^    (%[\w]+)(?::\d+)? = ltc\.(kernel_call|library_call) (@\w+|"[\w]+")'
    r"\(([^)]*)\).* -> (.*?) loc\((.*)\)$|"
    r'^    (%[\w]+)(?::\d+)? = ltc\.(kernel_call|library_call) (@\w+|"[\w]+")'
    r"\(([^)]*)\).* -> (.*)$",
    re.M,
)
_TENSOR = re.compile(r"tensor<([^>]*)>")


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
    """A call of a kernel or of a library function."""

    number: int
    name: str
    lines: set[str]  # "train.py:12"
    results: list[str]  # values that it makes
    operands: list[str]


@dataclass
class Buffer:
    """A value between its first and last command."""

    name: str
    bytes: int
    first: int
    last: int


@dataclass
class Dump:
    folder: Path
    summary: dict[str, str]
    ops: list[Op] = field(default_factory=list)
    commands: list[Command] = field(default_factory=list)
    buffers: list[Buffer] = field(default_factory=list)
    tensors: list[list[str]] = field(default_factory=list)

    def text(self, stage: str) -> str:
        path = self.folder / STAGE_FILES[stage]
        return path.read_text() if path.exists() else ""


def read_dump(folder: Path) -> Dump:
    """ValueError: the folder isn't a complete dump."""
    if not (folder / "summary.txt").exists():
        raise ValueError(
            f"'{folder}' isn't the dump of a program: it has no summary.txt."
        )
    dump = Dump(folder, _summary((folder / "summary.txt").read_text()))
    dump.ops = _ops(dump.text("ir"))
    dump.commands, dump.buffers = _commands(dump.text("kernels"))
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


def _lines_of(text: str, table: dict[str, str], depth: int = 0) -> set[str]:
    """ "file:line" of every place that a location is made of."""
    if depth > 50:
        return set()
    found = {
        f"{Path(file).name}:{line}"
        for file, line in re.findall(r'"([^"]+)":(\d+):\d+', text)
    }
    for name in re.findall(r"#(loc\d*)", text):
        found |= _lines_of(table.get(name, ""), table, depth + 1)
    return found


def _bytes(type_text: str) -> int:
    *sizes, element = type_text.split("x")
    count = 1
    for size in sizes:
        count *= int(size)
    return count * _BYTES.get(element, 1)


def _commands(text: str) -> tuple[list[Command], list[Buffer]]:
    table = dict(_LOCATION.findall(text))
    body = text.partition("func.func private")[0]
    commands: list[Command] = []
    buffers: dict[str, Buffer] = {}
    source: dict[str, str] = {}  # a view -> the value whose memory it is

    def base(value: str) -> str:
        value = value.strip()
        while value in source:
            value = source[value]
        return value

    for line in body.splitlines():
        view = re.match(
            r"\s+(%\w+) = tensor\.(?:collapse|expand)_shape (%[\w#]+)", line
        )
        if view:
            source[view[1]] = view[2]
            continue
        returned = re.match(r"\s+return (.*?) : ", line)
        if returned:
            for value in returned[1].split(","):
                if base(value) in buffers:
                    buffers[base(value)].last = len(commands)
            continue
        match = _CALL.match(line)
        if not match:
            continue
        groups = [g for g in match.groups()]
        value, _, name, operands, types, *location = (
            groups[:6] if groups[0] else groups[6:]
        )
        number = len(commands)
        made = _TENSOR.findall(types)
        results = (
            [value] if len(made) == 1 else [f"{value}#{i}" for i in range(len(made))]
        )
        used = [base(operand) for operand in operands.split(",")]
        for operand in used:
            if operand in buffers:
                buffers[operand].last = number
        for result, type_text in zip(results, made):
            buffers[result] = Buffer(result, _bytes(type_text), number, number)
        lines = _lines_of(location[0], table) if location and location[0] else set()
        commands.append(Command(number, name.strip('@"'), lines, results, used))
    return commands, list(buffers.values())


def pack(buffers: list[Buffer]) -> list[tuple[Buffer, int]]:
    """A place for each buffer, first fit by size: two that live at the same
    time don't overlap."""
    placed: list[tuple[Buffer, int]] = []
    for buffer in sorted(buffers, key=lambda b: -b.bytes):
        taken = sorted(
            (offset, offset + other.bytes)
            for other, offset in placed
            if other.first <= buffer.last and buffer.first <= other.last
        )
        offset = 0
        for begin, end in taken:
            if begin - offset >= buffer.bytes:
                break
            offset = max(offset, end)
        placed.append((buffer, offset))
    return placed
