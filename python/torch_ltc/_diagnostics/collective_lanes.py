"""Draws the two lanes of a dump page: commands, and the collectives that exchange values
while commands compute."""

from __future__ import annotations

import html
from dataclasses import dataclass
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


def two_lanes(commands: list[Command], seconds: list[float]) -> str:
    """Returns HTML with the commands of a step and its collectives as two lanes of time; ""
    without collectives. `seconds`: the time of each command in a run, or an empty list."""
    found = exchanges(commands)
    if not found:
        return ""
    width = "as wide as its time" if seconds else "equally wide"
    return (
        f"<p>{html.escape(overlap_text(found, seconds))}</p>"
        f"{_drawing(commands, found, seconds)}"
        f'<p class="dim">The upper lane shows each command, {width}; commands that wait '
        "for a collective are red. The lower lane shows each collective, from the "
        "command that starts it to the command that waits for it.</p>"
    )


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


def _drawing(
    commands: list[Command], found: list[Exchange], seconds: list[float]
) -> str:
    """Draws the two lanes as SVG. Collectives that overlap are in separate rows."""
    widths = seconds or [1.0] * len(commands)
    ends = list(accumulate(widths, initial=0.0))
    scale = (WIDTH - LEFT) / (ends[-1] or 1.0)

    def bar(first: float, last: float, y: int, color: str, text: str, number: int):
        return (
            f'<a href="#command-{number}"><rect x="{LEFT + first * scale:.1f}" '
            f'y="{y}" width="{max(1.0, (last - first) * scale):.1f}" '
            f'height="{LANE - 4}" fill="{color}" stroke="#fff" stroke-width=".5">'
            f"<title>{html.escape(text)}</title></rect></a>"
        )

    waits = {exchange.wait.number for exchange in found}
    shapes = [
        bar(
            ends[number],
            ends[number + 1],
            0,
            WAITING if number in waits else COMPUTING,
            f"command {number}: {command.computes}",
            number,
        )
        for number, command in enumerate(commands)
    ]
    rows: list[int] = []  # the last command of each row's last collective
    for exchange in found:
        start, wait = exchange.start.number, exchange.wait.number
        row = next((i for i, last in enumerate(rows) if last < start), len(rows))
        rows[row : row + 1] = [wait]
        name = f"{exchange.start.collective}, {bytes_text(exchange.wait.bytes)}"
        text = f"{name}: commands {start} to {wait}"
        y = LANE * (row + 1) + GAP
        shapes.append(bar(ends[start], ends[wait + 1], y, EXCHANGING, text, start))
        if (ends[wait + 1] - ends[start]) * scale > 8 * len(name):
            shapes.append(
                f'<text x="{LEFT + ends[start] * scale + 4:.1f}" y="{y + 15}">'
                f"{html.escape(name)}</text>"
            )
    height = LANE * (len(rows) + 1) + GAP
    return (
        f'<svg viewBox="0 0 {WIDTH + 10} {height}" width="100%" role="img" '
        f'aria-label="Commands and collectives">{"".join(shapes)}</svg>'
    )
