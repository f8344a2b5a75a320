"""Places the bars in the two lanes of a dump page: commands, and the collectives that
exchange values while commands compute."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import accumulate

from torch_ltc._diagnostics.dump_reading import Command
from torch_ltc._diagnostics.report import bytes_text, seconds_text

WIDTH, LEFT, LANE, GAP = 1100, 10, 26, 8
COMPUTING, EXCHANGING, WAITING = "#54aeff", "#4ac26b", "#ff8182"


@dataclass
class Exchange:
    """A collective, from the command that starts it to the one that waits for it."""

    start: Command
    wait: Command  # the same command if the start blocks

    @property
    def between(self) -> range:
        """The numbers of the commands that run while values are exchanged."""
        return range(self.start.number + 1, self.wait.number)


def exchanges(commands: list[Command]) -> list[Exchange]:
    """Returns the collectives that a program both starts and waits for, in the order of
    their starts."""
    waits = {c.started_by: c for c in commands if c.started_by is not None}
    starts = [c for c in commands if c.collective and c.started_by is None]
    found = [Exchange(start, waits.get(start.number, start)) for start in starts]
    return [e for e in found if e.wait is not e.start or _blocks(e.start)]


def _blocks(command: Command) -> bool:
    return command.callee == "torch_ltc::collective"


@dataclass
class Bar:
    """A command, or a collective from command `number` on."""

    x: float
    y: int
    width: float
    color: str
    title: str
    number: int
    label: str = ""  # "" if the bar is too narrow for it
    height: int = LANE - 4


@dataclass
class Lanes:
    text: str
    bars: list[Bar] = field(default_factory=list)
    width: int = WIDTH
    height: int = 0


def two_lanes(commands: list[Command], seconds: list[float]) -> Lanes | None:
    """Returns the commands of a step and its collectives as two lanes of time; None without
    collectives. Collectives that overlap are in separate rows. `seconds`: the time of each
    command in a run, or an empty list."""
    found = exchanges(commands)
    if not found:
        return None
    lanes = Lanes(overlap_text(found, seconds))
    widths = seconds or [1.0] * len(commands)
    ends = list(accumulate(widths, initial=0.0))
    scale = (WIDTH - LEFT) / (ends[-1] or 1.0)

    def bar(first: int, last: int, y: int, color: str, title: str) -> Bar:
        width = (ends[last + 1] - ends[first]) * scale
        x = LEFT + ends[first] * scale
        lanes.bars.append(Bar(x, y, max(1.0, width), color, title, first))
        return lanes.bars[-1]

    waits = {exchange.wait.number for exchange in found}
    for number, command in enumerate(commands):
        color = WAITING if number in waits else COMPUTING
        bar(number, number, 0, color, f"command {number}: {command.computes}")
    rows: list[int] = []  # the last command of each row's last collective
    for exchange in found:
        start, wait = exchange.start.number, exchange.wait.number
        row = next((i for i, last in enumerate(rows) if last < start), len(rows))
        rows[row : row + 1] = [wait]
        name = f"{exchange.start.collective}, {bytes_text(exchange.wait.bytes)}"
        title = f"{name}: commands {start} to {wait}"
        drawn = bar(start, wait, LANE * (row + 1) + GAP, EXCHANGING, title)
        if drawn.width > 8 * len(name):
            drawn.label = name
    lanes.height = LANE * (len(rows) + 1) + GAP
    return lanes


def overlap_text(found: list[Exchange], seconds: list[float]) -> str:
    """Returns sentences about how much is computed during the exchanges. `seconds`: the
    time of each command, or an empty list."""
    size = sum(exchange.wait.bytes for exchange in found)
    text = f"Collectives: {len(found)}, with results of {bytes_text(size)}. "
    if not seconds:
        beside = {number for exchange in found for number in exchange.between}
        return text + f"Commands that run while values are exchanged: {len(beside)}."
    waits = {exchange.wait.number for exchange in found}
    beside = {n for exchange in found for n in exchange.between} - waits
    computed = sum(seconds[number] for number in beside)
    waited = sum(seconds[number] for number in waits)
    return text + (
        f"While values are exchanged, the step computes for {seconds_text(computed)} "
        f"and waits for {seconds_text(waited)}."
    )
