"""Prepares what the page of a dumped program shows: modules, lines, times, the peak of
memory. templates/program.html is the page."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

from torch_ltc._backend import bindings
from torch_ltc._diagnostics import pages
from torch_ltc._diagnostics.buffer_drawing import draw_buffers
from torch_ltc._diagnostics.collective_lanes import two_lanes
from torch_ltc._diagnostics.dump_reading import Command, Dump, Op, stage_files
from torch_ltc._diagnostics.report import bytes_text, seconds_text


def page(dump: Dump) -> str:
    """Returns the page of a program as HTML."""
    times = _measured(dump)
    lanes = two_lanes(dump.commands, times.seconds)
    return pages.fill(
        "program.html",
        title=f"Program {dump.summary.get('program', '?')[:12]}",
        sections=[section for section in SECTIONS if lanes or section != COLLECTIVES],
        overview=_overview(dump),
        has_drawing=(dump.folder / "graph.dot").exists(),
        modules=_modules(dump),
        lines=_lines(dump),
        commands=dump.commands,
        times=times,
        slowest=_slowest(dump, times),
        lanes=lanes,
        buffers=draw_buffers(dump.plan),
        peak=_peak(dump),
        ops=dump.ops,
        tensors=dump.tensors,
        stages=_stages(dump),
    )


COLLECTIVES = ("collectives", "Collectives")
#: The sections by key, which is also the name of the template, with their headings.
SECTIONS = [
    ("overview", "Overview"),
    ("modules", "Modules"),
    ("lines", "Python lines"),
    ("commands", "Commands"),
    ("times", "Times"),
    COLLECTIVES,
    ("buffers", "Buffers over time"),
    ("ops", "Ops"),
    ("tensors", "Inputs and outputs"),
    ("stages", "Stages"),
]


def _overview(dump: Dump) -> list[tuple[str, str]]:
    rows = []
    for key, value in dump.summary.items():
        if key == "arena bytes":
            key, value = "arena", bytes_text(float(value))
        elif key == "seconds":  # "torch 0.0268526, linalg 0.0598783, ..."
            key = "time"
            parts = [part.rpartition(" ") for part in value.split(", ")]
            value = ", ".join(f"{a} {seconds_text(float(s))}" for a, _, s in parts)
        rows.append((key, value))
    return rows


#: A top-level entry with more ops than this is collapsed at first. Ops of the entries below
#: it don't count.
FEW = 12
#: The title of ops outside of modules: loss, backward pass, optimizer.
OUTSIDE = "(outside of modules)"


@dataclass
class Entry:
    """An entry of the tree of modules: its ops, and the entries below it by name."""

    ops: list[Op] = field(default_factory=list)
    entries: dict[str, Entry] = field(default_factory=dict)

    @property
    def count(self) -> int:
        return len(self.ops) + sum(entry.count for entry in self.entries.values())

    @property
    def is_short(self) -> bool:
        return len(self.ops) <= FEW


def _modules(dump: Dump) -> Entry:
    """Returns the ops by module path. Ops outside of modules follow, by Python line."""
    tree = Entry()
    ops = [op for op in dump.ops if op.kind != "parameter"]
    for op in sorted(ops, key=lambda op: not op.module):
        path = op.module.split(".") if op.module else [OUTSIDE, op.line]
        entry = tree
        for part in filter(None, path):
            entry = entry.entries.setdefault(part, Entry())
        entry.ops.append(op)
    return tree


@dataclass
class Line:
    """What a Python line computes."""

    line: str  # "train.py:12"
    ops: list[Op] = field(default_factory=list)
    commands: list[Command] = field(default_factory=list)

    @property
    def computes(self) -> str:
        kinds = Counter(op.kind.removeprefix("aten::") for op in self.ops)
        return ", ".join(f"{n} {k}" if n > 1 else k for k, n in kinds.most_common())


def _lines(dump: Dump) -> list[Line]:
    ops: dict[str, list[Op]] = defaultdict(list)
    commands: dict[str, list[Command]] = defaultdict(list)
    for op in dump.ops:
        if op.line:
            ops[op.line].append(op)
    for command in dump.commands:
        for line in command.lines:
            commands[line].append(command)
    return [
        Line(line, ops.get(line, []), commands.get(line, []))
        for line in sorted({*ops, *commands})
    ]


@dataclass
class Times:
    """Times that this process measured with option profile_commands."""

    seconds: list[float] = field(default_factory=list)  # of each command in a run
    runs: int = 0

    @property
    def total(self) -> float:
        return sum(self.seconds) or 1.0


def _measured(dump: Dump) -> Times:
    """Returns the measured times of the plan's commands. The runtime has more commands than
    the plan: one for each copy of a join and, at the end, one for each copy to a result."""
    try:
        rows = bindings().program_commands(dump.summary.get("program", ""))
    except RuntimeError:
        return Times()
    counts = [1 if c.copies is None else c.copies for c in dump.commands]
    if sum(counts) > len(rows) or not any(row["seconds"] for row in rows):
        return Times()
    of_rows = [row["seconds"] / max(row["calls"], 1) for row in rows]
    starts = accumulate(counts, initial=0)
    seconds = [sum(of_rows[first : first + n]) for first, n in zip(starts, counts)]
    return Times(seconds, rows[0]["calls"])


#: The maximum number of rows in the table of the slowest commands.
SLOWEST = 15


def _slowest(dump: Dump, times: Times) -> list[tuple[float, Command]]:
    """Returns seconds and command, slowest first, without commands that took no time."""
    pairs = sorted(zip(times.seconds, dump.commands), key=lambda pair: -pair[0])
    return [pair for pair in pairs[:SLOWEST] if pair[0]]


@dataclass
class Peak:
    """The command during which the live new buffers have the most bytes, and its largest
    parts by the line that made them, or by what made them if the line is unknown."""

    command: int
    bytes: int
    parts: list[tuple[tuple[str, str], int]]


def _peak(dump: Dump) -> Peak:
    number, alive = dump.plan.peak()
    sizes: Counter[tuple[str, str]] = Counter()
    for buffer in alive:
        maker = dump.plan.maker(buffer)
        line = min(maker.lines, default="") if maker else ""
        computes = maker.computes if maker else "copied to a result"
        sizes[line, "" if line else computes] += buffer.bytes
    return Peak(number, sum(sizes.values()), sizes.most_common(10))


#: The maximum number of characters of a stage on a page: browsers are slow with more.
SHOWN = 300_000


def _stages(dump: Dump) -> list[dict[str, Any]]:
    return [
        {
            "name": stage,
            "file": file,
            "text": text[:SHOWN],
            "bytes": len(text),
            "is_cut": len(text) > SHOWN,
        }
        for stage, file in stage_files().items()
        if (text := dump.text(stage))
    ]
