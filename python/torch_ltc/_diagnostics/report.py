"""Renders tables as plain text."""

from __future__ import annotations

import io
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

# rich is only imported when tables are drawn, so that importing the package stays
# cheap.
if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

WIDTH = 110


def render(*parts: RenderableType, width: int = WIDTH) -> str:
    """Returns the plain text of rich renderables, which is the same in a terminal, a file
    and a notebook."""
    from rich.console import Console, Group

    buffer = io.StringIO()
    # In a notebook, rich would show the text there instead of writing it.
    console = Console(file=buffer, width=width, color_system=None, force_jupyter=False)
    console.print(Group(*parts))
    return buffer.getvalue()


def table(
    title: str,
    columns: list[str],
    rows: list[list[Any]],
    unbroken: Collection[str] = (),
) -> Table:
    """Returns a table; columns whose first value is a number are right-aligned. The texts
    of the columns `unbroken` are on one line each."""
    from rich import box
    from rich.table import Table

    result = Table(title=title, box=box.SIMPLE_HEAD, title_justify="left")
    for position, name in enumerate(columns):
        numeric = bool(rows) and isinstance(rows[0][position], (int, float))
        result.add_column(
            name,
            justify="right" if numeric else "left",
            overflow="fold",
            no_wrap=name in unbroken,
        )
    for row in rows:
        result.add_row(*(_text(value) for value in row))
    return result


def _text(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def seconds_text(seconds: float) -> str:
    """Formats a time with the unit us, ms or s; negative times mean "running"."""
    if seconds < 0:
        return "running"
    if seconds < 1e-3:
        return f"{seconds * 1e6:.0f} us"
    if seconds < 1:
        return f"{seconds * 1e3:.2f} ms"
    return f"{seconds:.2f} s"


def bytes_text(size: float) -> str:
    for unit in ("B", "KB", "MB", "GB"):
        if size < 1024 or unit == "GB":
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    raise AssertionError("unreachable")


def options_table(options: list[dict[str, Any]]) -> str:
    rows = []
    for option in options:
        value = f"{option['value']!r}"
        if option["source"] != "default":
            value += f" ({option['source']})"
        text = option["help"]
        if option["choices"]:
            text += " One of: " + ", ".join(option["choices"]) + "."
        rows.append(
            [option["name"], option["type"], value, option["environment"], text]
        )
    columns = ["option", "type", "value", "environment variable", "description"]
    unbroken = {"option", "environment variable"}
    return render(
        table("Configuration of torch_ltc", columns, rows, unbroken), width=140
    )


def metrics_tables(
    metrics: dict[str, Any],
    compiles: list[dict[str, Any]],
    fallbacks: list[dict[str, Any]],
    syncs: list[dict[str, Any]],
) -> str:
    counts = [[k, v] for k, v in metrics.items() if isinstance(v, int)]
    timers = [
        [name, t["count"], *(seconds_text(t[k]) for k in ("total", "median", "p90"))]
        for name, t in metrics["timers"].items()
        if t["count"]
    ]
    parts: list[RenderableType] = [
        table("Counts", ["what", "count"], counts),
        table("Times", ["what", "count", "total", "median", "90 %"], timers),
    ]
    if compiles:
        rows = [
            [c["step"], c["program"][:12], c["origin"], c["ops"], c["kernels"],
             seconds_text(c["seconds"]), c["location"], c["reason"]]
            for c in compiles[-20:]
        ]  # fmt: skip
        columns = ["step", "program", "origin", "ops", "kernels", "time", "line", "why"]
        parts.append(table("Programs (last 20)", columns, rows))
    if fallbacks:
        rows = [
            [f["op"], f["calls"], seconds_text(f["seconds"]), bytes_text(f["bytes"]),
             f["location"], f["reason"]]
            for f in fallbacks[:20]
        ]  # fmt: skip
        columns = ["op", "calls", "time", "moved", "line", "why"]
        parts.append(table("Eager fallbacks, most expensive first", columns, rows))
    if syncs:
        rows = [
            [s["op"], s["calls"], seconds_text(s["seconds"]), s["ops"], s["location"]]
            for s in syncs[:20]
        ]
        columns = ["requested by", "calls", "time", "ops cut", "line"]
        parts.append(table("Implicit syncs, most expensive first", columns, rows))
    cache, memory = metrics["cache"], metrics["memory"]
    parts.append(
        f"Cache: {cache['directory'] or 'memory only'}, {bytes_text(cache['bytes'])}"
        f" of {bytes_text(cache['max_bytes']) if cache['max_bytes'] else 'no limit'}."
        f" Memory of lazy tensors: {bytes_text(memory['allocated_bytes'])}"
        f" (peak {bytes_text(memory['peak_allocated_bytes'])})."
    )
    return render(*parts)
