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
    "asm": "asm.s",
}

_BYTES = {"f64": 8, "i64": 8, "f32": 4, "i32": 4, "bf16": 2, "f16": 2, "i16": 2}
_LOCATION = re.compile(r"^#(loc\d*) = loc\((.*)\)$", re.M)
_COMMAND = re.compile(r"^    (%\w+)(?::\d+)? = ltc\.(\w+) (.*)$")
_CALLEE = re.compile(r'(@\w+|"\w+")\((.*?)\)')
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
    ops: list[str] = field(default_factory=list)  # "aten.tanh"
    modules: list[str] = field(default_factory=list)  # "body.1"
    types: list[str] = field(default_factory=list)  # of the results: "4x5xf32"

    @property
    def computes(self) -> str:
        """ "aten.add+aten.tanh", or the function's name where no op is known."""
        if not self.ops:
            return self.name
        more = f"+{len(self.ops) - 4} more" if len(self.ops) > 4 else ""
        return "+".join(self.ops[:4]) + more


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
    #: Those that aren't an old parameter's memory.
    new_buffers: list[Buffer] = field(default_factory=list)
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
    stage = KernelsStage(dump.text("kernels"))
    dump.commands, dump.buffers = stage.commands, list(stage.buffers.values())
    tables = (folder / "tensors.txt").read_text().splitlines()[1:]
    dump.tensors = [re.split(r"\s{2,}", row.strip()) for row in tables]
    dump.new_buffers = stage.new_buffers(
        [row[4] == "yes" for row in dump.tensors if row[0] == "output"]
    )
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


def _whole(text: str, table: dict[str, str], depth: int = 0) -> str:
    """A location with what its aliases stand for."""
    if depth > 50:
        return text
    return re.sub(
        r"#(loc\d*)", lambda m: _whole(table.get(m[1], ""), table, depth + 1), text
    )


def _lines_of(location: str) -> set[str]:
    """ "file:line" of every place that a location is made of."""
    places = re.findall(r'"([^"]+)":(\d+):\d+', location)
    return {f"{Path(file).name}:{line}" for file, line in places}


def _names_of(location: str) -> tuple[list[str], list[str]]:
    """ATen ops and module paths that a location names, in their order."""
    names = dict.fromkeys(re.findall(r'"([^"]+)"\(', location))
    ops = [n.removeprefix("torch.") for n in names if n.startswith("torch.")]
    return ops, [n for n in names if not n.startswith("torch.")]


def _bytes(type_text: str) -> int:
    *sizes, element = type_text.split("x")
    count = 1
    for size in sizes:
        count *= int(size)
    return count * _BYTES.get(element, 1)


class KernelsStage:
    """The program function of the kernels stage, read line by line."""

    def __init__(self, text: str) -> None:
        self.commands: list[Command] = []
        self.buffers: dict[str, Buffer] = {}
        self.returned: list[str] = []  # the value behind each result
        self._locations = dict(_LOCATION.findall(text))
        self._source: dict[str, str] = {}  # a view -> the value whose memory it is
        for line in text.partition("func.func private")[0].splitlines():
            self._read(line)

    def new_buffers(self, donated: list[bool]) -> list[Buffer]:
        """Without the values of results that overwrite a parameter (`donated`, by
        result)."""
        old = {value for value, is_old in zip(self.returned, donated) if is_old}
        return [b for b in self.buffers.values() if b.name not in old]

    def _read(self, line: str) -> None:
        view = re.match(
            r"\s+(%\w+) = tensor\.(?:collapse|expand)_shape (%[\w#]+)", line
        )
        returned = re.match(r"\s+return (.*?) : ", line)
        command = _COMMAND.match(line)
        if view:
            self._source[view[1]] = view[2]
        elif returned:
            self.returned = self._use(returned[1], len(self.commands))
        elif command:
            self._add(*command.groups())

    def _base(self, value: str) -> str:
        value = value.strip()
        while value in self._source:
            value = self._source[value]
        return value

    def _use(self, operands: str, number: int) -> list[str]:
        used = [self._base(operand) for operand in operands.split(",")]
        for operand in used:
            if operand in self.buffers:
                self.buffers[operand].last = number
        return used

    def _add(self, value: str, kind: str, rest: str) -> None:
        """`kind` is kernel_call, library_call, join or check_bounds."""
        rest, _, location = rest.partition(" loc(")
        number = len(self.commands)
        callee = _CALLEE.match(rest) if kind.endswith("_call") else None
        name = callee[1].strip('@"') if callee else kind
        operands = callee[2] if callee else re.split(r" in ?\[| : | \{", rest)[0]
        used = self._use(operands, number)
        made = _TENSOR.findall(rest.rpartition(" -> ")[2])
        if kind == "check_bounds":  # its result is its operand, looked at
            self._source[value] = operands.strip()
            made = []
        results = (
            [value] if len(made) == 1 else [f"{value}#{i}" for i in range(len(made))]
        )
        for result, type_text in zip(results, made):
            self.buffers[result] = Buffer(result, _bytes(type_text), number, number)
        location = _whole(location, self._locations)
        self.commands.append(
            Command(
                number,
                name,
                _lines_of(location),
                results,
                used,
                *_names_of(location),
                made,
            )
        )


def peak(buffers: list[Buffer]) -> tuple[int, list[Buffer]]:
    """The command at which most bytes are alive, and what is alive then."""
    ends = {buffer.first for buffer in buffers}

    def alive(number: int) -> list[Buffer]:
        return [b for b in buffers if b.first <= number <= b.last]

    number = max(ends, key=lambda n: sum(b.bytes for b in alive(n)), default=0)
    return number, alive(number)


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
