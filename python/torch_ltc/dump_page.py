"""`python -m torch_ltc.dump_page dumps`: writes readable pages for dumped programs.

Each program's folder gets an index.html, a single file that needs no network. It shows
the step's modules, ops, kernels, buffers over time, Python lines and the texts of the
stages, linked with each other. A README in the folder says how to run the stages again.
The parent folder gets an index.html that lists all programs.
"""

from __future__ import annotations

import argparse
import html
import sys
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import Any

from torch_ltc._backend import bindings
from torch_ltc._diagnostics.collective_lanes import two_lanes
from torch_ltc._diagnostics.dump_reading import (
    Command,
    Dump,
    Op,
    read_dump,
    stage_files,
)
from torch_ltc._diagnostics.graph_drawing import svg
from torch_ltc._diagnostics.report import bytes_text, seconds_text

STYLE = """
body { font: 14px/1.45 system-ui, sans-serif; margin: 0 auto; max-width: 1200px;
  padding: 1em 2em 4em; color: #1b1f24; background: #fff; }
h1 { font-size: 1.4em; } h2 { font-size: 1.1em; margin-top: 2em;
  border-bottom: 1px solid #d0d7de; padding-bottom: .2em; }
nav a { margin-right: 1em; } a { color: #0550ae; text-decoration: none; }
a:hover { text-decoration: underline; }
table { border-collapse: collapse; } td, th { padding: .15em .8em .15em 0;
  text-align: left; vertical-align: top; } th { color: #57606a; font-weight: 600; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; }
code, pre, .code { font: 12px/1.4 ui-monospace, monospace; }
pre { background: #f6f8fa; padding: .8em; overflow: auto; max-height: 32em; }
tr:target, li:target { background: #fff3bf; }
details { margin: .2em 0 .2em 1em; } summary { cursor: pointer; }
ul { list-style: none; padding-left: 1.2em; margin: .2em 0; }
td .code { overflow-wrap: break-word; } td.n { white-space: nowrap; }
.dim { color: #57606a; } svg text { font: 11px system-ui, sans-serif; }
.scroll { max-height: 36em; overflow: auto; border: 1px solid #d0d7de;
  padding: .4em .8em; }
.bar { background: #54aeff; height: .7em; display: inline-block; }
"""

COLORS = ("#54aeff", "#4ac26b", "#d4a72c", "#ff8182", "#c297ff", "#7ee2e2", "#ffb77c")

README = """Program {program}, step {step}

Each file is the whole program at one stage:

  ir.txt           traced nodes: shape, ATen op, Python line, module
  torch-raw.mlir   torch dialect as traced
  torch.mlir       at the backend contract, for other compilers
  linalg.mlir      linalg on tensors
  kernels.mlir     commands, kernels and the plan of buffers
  plan.json        commands and buffers for tools
  llvm.ll          LLVM IR of each kernel
  asm.s            assembly of each kernel, for this machine's CPU
  graph.dot        the traced graph for Graphviz (graph.svg: as a drawing)
  tensors.txt      inputs and outputs
  summary.txt      sizes, times, why it was compiled

From stage to stage, with the project's ltc-opt:

  ltc-opt torch-raw.mlir --ltc-torch-to-contract
  ltc-opt torch.mlir --ltc-torch-to-linalg
  ltc-opt linalg.mlir --ltc-linalg-to-kernels

Run the program again, from one of the stages, on the inputs in inputs.pt (which
option dump_inputs saves: TORCH_LTC_DUMP_INPUTS=1) or on random inputs from a seed:

  python -m torch_ltc.replay . --stage torch --seed 0 --repeat 20

Reduce the program as long as a script of yours exits with 1:

  ltc-reduce torch.mlir --ltc-reduce-program=test=./fails.sh

With another compiler's front end:

  torch-mlir-opt torch.mlir --pass-pipeline='builtin.module(func.func(\
    torch-decompose-complex-ops),torch-backend-to-linalg-on-tensors-backend-pipeline)'
  iree-compile torch.mlir --iree-input-type=torch --iree-hal-target-backends=llvm-cpu
"""


def _escape(text: Any) -> str:
    return html.escape(str(text))


def _anchor(line: str) -> str:
    return "line-" + line.replace(":", "-")


def _line_link(line: str) -> str:
    return f'<a href="#{_anchor(line)}">{_escape(line)}</a>' if line else ""


def _row(*cells: str, anchor: str = "", numeric: tuple[int, ...] = ()) -> str:
    body = "".join(
        f'<td class="n">{cell}</td>' if number in numeric else f"<td>{cell}</td>"
        for number, cell in enumerate(cells)
    )
    return f'<tr id="{anchor}">{body}</tr>' if anchor else f"<tr>{body}</tr>"


def _table(columns: list[str], rows: list[str], numeric: tuple[int, ...] = ()) -> str:
    head = "".join(
        f'<th class="n">{column}</th>' if number in numeric else f"<th>{column}</th>"
        for number, column in enumerate(columns)
    )
    return f"<table><tr>{head}</tr>{''.join(rows)}</table>"


def _overview(dump: Dump) -> str:
    rows = []
    for key, value in dump.summary.items():
        if key == "arena bytes":
            key, value = "arena", bytes_text(float(value))
        elif key == "seconds":  # "torch 0.0268526, linalg 0.0598783, ..."
            key = "time"
            parts = [part.rpartition(" ") for part in value.split(", ")]
            value = ", ".join(f"{a} {seconds_text(float(s))}" for a, _, s in parts)
        name = f'<span class="dim">{_escape(key)}</span>'
        rows.append(_row(name, _escape(value)))
    drawing = (
        '<p><a href="graph.svg">The traced graph as a drawing</a></p>'
        if (dump.folder / "graph.dot").exists()
        else ""
    )
    return f"<table>{''.join(rows)}</table>{drawing}"


# -- modules ---------------------------------------------------------------------


#: A top-level entry with more ops than this is collapsed at first. Ops of the entries below
#: it don't count.
FEW = 12
#: The title of ops outside of modules: loss, backward pass, optimizer.
OUTSIDE = "(outside of modules)"


def _modules(dump: Dump) -> str:
    """Returns the ops by module path, as an expandable tree. Ops outside of modules follow,
    by Python line."""
    tree: dict[str, Any] = {}
    ops = [op for op in dump.ops if op.kind != "parameter"]
    for op in sorted(ops, key=lambda op: not op.module):
        path = op.module.split(".") if op.module else [OUTSIDE, op.line]
        node = tree
        for part in filter(None, path):
            node = node.setdefault(part, {})
        node.setdefault("", []).append(op)
    return f"<ul>{_module_items(tree)}</ul>" if tree else "<p>No ops.</p>"


def _count(node: dict[str, Any]) -> int:
    return sum(len(v) if k == "" else _count(v) for k, v in node.items())


def _module_items(node: dict[str, Any], depth: int = 0) -> str:
    items = []
    for op in node.get("", []):
        items.append(
            f'<li class="code"><a href="#op-{op.number}">%{op.number} '
            f"{_escape(op.kind)}</a> <span>{_line_link(op.line)}</span></li>"
        )
    for name, child in node.items():
        if name:
            is_open = depth < 1 and len(child.get("", [])) <= FEW
            items.append(
                f"<li><details{' open' if is_open else ''}><summary>{_escape(name)} "
                f"<span class='dim'>ops: {_count(child)}</span></summary>"
                f"<ul>{_module_items(child, depth + 1)}</ul>"
                "</details></li>"
            )
    return "".join(items)


# -- ops, commands, lines ----------------------------------------------------------


def _ops(ops: list[Op]) -> str:
    rows = [
        _row(
            f"%{op.number}",
            f'<span class="code">{_escape(op.text)}</span>',
            _line_link(op.line),
            _escape(op.module),
            anchor=f"op-{op.number}",
            numeric=(0,),
        )
        for op in ops
    ]
    return _table(["", "op", "line", "module"], rows)


@dataclass
class Times:
    """Times that this process measured with option profile_commands."""

    seconds: list[float] = field(default_factory=list)  # of each command in a run
    runs: int = 0


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


def _computes(command: Command) -> str:
    return (
        f'<span class="code" title="{_escape(command.name)}">'
        f"{_escape(command.computes).replace('+', '+<wbr>')}</span>"
    )


def _command_rows(dump: Dump, measured: Times) -> str:
    times = [seconds_text(seconds) for seconds in measured.seconds]
    rows = [
        _row(
            str(command.number),
            _computes(command),
            time,
            f'<span class="code">{_escape(", ".join(command.types))}</span>',
            _escape(", ".join(command.modules)),
            " ".join(_line_link(line) for line in sorted(command.lines)),
            bytes_text(command.bytes),
            anchor=f"command-{command.number}",
            numeric=(0, 2, 6),
        )
        for command, time in zip(dump.commands, times or [""] * len(dump.commands))
    ]
    columns = ["", "computes", "a run", "results", "modules", "lines", "writes"]
    return _table(columns, rows, numeric=(2, 6))


#: The maximum number of rows in the table of the slowest commands.
SLOWEST = 15


def _times(dump: Dump, measured: Times) -> str:
    if not measured.runs:
        return (
            '<p class="dim">No times: they are measured while option '
            "profile_commands is on.</p>"
        )
    pairs = sorted(zip(measured.seconds, dump.commands), key=lambda pair: -pair[0])
    total = sum(measured.seconds) or 1.0
    slowest = pairs[:SLOWEST]
    rows = [
        _row(
            f'<a href="#command-{command.number}">{command.number}</a>',
            _computes(command),
            " ".join(_line_link(line) for line in sorted(command.lines)),
            seconds_text(seconds),
            f"{seconds / total:.1%}",
            f'<span class="bar" style="width:{seconds / pairs[0][0] * 200:.0f}px">'
            "</span>",
            numeric=(0, 3, 4),
        )
        for seconds, command in slowest
        if seconds
    ]
    text = (
        f"<p>The commands of a run take {seconds_text(total)} (mean of "
        f"{measured.runs}). The slowest:</p>"
    )
    columns = ["", "computes", "lines", "a run", "share", ""]
    return text + _table(columns, rows, numeric=(3, 4))


def _lines(dump: Dump) -> str:
    ops: dict[str, list[Op]] = defaultdict(list)
    commands: dict[str, list[Command]] = defaultdict(list)
    for op in dump.ops:
        if op.line:
            ops[op.line].append(op)
    for command in dump.commands:
        for line in command.lines:
            commands[line].append(command)
    rows = []
    for line in sorted({*ops, *commands}):
        kinds = Counter(op.kind.removeprefix("aten::") for op in ops[line])
        what = ", ".join(f"{n} {k}" if n > 1 else k for k, n in kinds.most_common())
        first = ops[line][0].number if ops[line] else None
        link = f'<a href="#op-{first}">{_escape(what)}</a>' if ops[line] else ""
        calls = " ".join(
            f'<a href="#command-{c.number}">{c.number}</a>' for c in commands[line]
        )
        rows.append(_row(_escape(line), link, calls, anchor=_anchor(line)))
    if not rows:
        return (
            '<p class="dim">No lines: TORCH_LTC_SOURCE_INFO=1 (option source_info) '
            "makes them known.</p>"
        )
    return _table(["line", "ops", "commands"], rows)


# -- buffers -----------------------------------------------------------------------


def _command_link(dump: Dump, number: int, content: str) -> str:
    """Returns `content`, as a link if the plan has a command `number`. The copies to
    results at the end of the program have numbers, but aren't in the plan."""
    if number >= len(dump.commands):
        return content
    return f'<a href="#command-{number}">{content}</a>'


def _buffers(dump: Dump) -> str:
    """Draws the buffers as SVG: lifetimes from left to right; from bottom to top the arena
    as planned, and results above it."""
    placed = dump.plan.offsets()
    if not placed:
        return "<p>No buffers between commands.</p>"
    top = max(offset + buffer.bytes for buffer, offset in placed) or 1
    width, height, left, columns = 1100, 320, 10, len(dump.commands) + 1
    step = (width - left) / columns
    shapes = []
    for number, (buffer, offset) in enumerate(placed):
        x = left + buffer.first * step
        w = max(2.0, (buffer.last - buffer.first + 1) * step - 1)
        h = max(1.5, buffer.bytes / top * height)
        y = height - (offset / top * height) - h
        title = (
            f"{buffer.name}: {bytes_text(buffer.bytes)}, commands {buffer.first} to "
            f"{buffer.last}"
        )
        rectangle = (
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{w:.1f}" height="{h:.1f}" '
            f'fill="{COLORS[number % len(COLORS)]}" stroke="#fff">'
            f"<title>{_escape(title)}</title></rect>"
        )
        shapes.append(_command_link(dump, buffer.first, rectangle))
        if w > 60 and h > 14:
            label = f"{buffer.name} {bytes_text(buffer.bytes)}"
            shapes.append(
                f'<text x="{x + 4:.1f}" y="{y + 12:.1f}">{_escape(label)}</text>'
            )
    axis = (
        f'<line x1="{left}" y1="{height}" x2="{width}" y2="{height}" stroke="#57606a"/>'
        f'<text x="{left}" y="{height + 16}">command 0</text><text x="{width}" '
        f'y="{height + 16}" text-anchor="end">end</text>'
    )
    arena = dump.plan.arena_bytes
    line = height - arena / top * height
    axis += (
        f'<line x1="{left}" y1="{line:.1f}" x2="{width}" y2="{line:.1f}" '
        'stroke="#57606a" stroke-dasharray="4"/>'
    )
    return (
        f'<svg viewBox="0 0 {width + 10} {height + 24}" width="100%" role="img" '
        f'aria-label="Buffers over time">{"".join(shapes)}{axis}</svg>'
        f'<p class="dim">Each rectangle is a buffer; its width is its lifetime, its '
        f"height its size. Below the dashed line is the arena ({bytes_text(arena)}) "
        f"with temporaries at their offsets, above it are new results. "
        "Results that overwrite a parameter aren't drawn.</p>" + _peak(dump)
    )


def _peak(dump: Dump) -> str:
    """Returns a table of the buffers that are alive at the peak."""
    number, alive = dump.plan.peak()
    sizes: Counter[str] = Counter()
    for buffer in alive:
        maker = dump.plan.maker(buffer)
        line = min(maker.lines, default="") if maker else ""
        computes = maker.computes if maker else "copied to a result"
        sizes[_line_link(line) or _escape(computes)] += buffer.bytes
    rows = [
        _row(line, bytes_text(size), numeric=(1,))
        for line, size in sizes.most_common(10)
    ]
    return (
        f"<p>At the peak, {bytes_text(sum(sizes.values()))} are alive at "
        f"{_command_link(dump, number, f'command {number}')}. The largest parts:</p>"
        + _table(["made by", "bytes"], rows, numeric=(1,))
    )


# -- pages -------------------------------------------------------------------------


#: The maximum number of characters of a stage on a page: browsers are slow with more.
SHOWN = 300_000


def _stage(dump: Dump, stage: str) -> str:
    text, file = dump.text(stage), stage_files()[stage]
    cut = (
        f'<p class="dim">The first of {bytes_text(len(text))}; '
        f'<a href="{file}">all of it</a>.</p>'
        if len(text) > SHOWN
        else ""
    )
    return (
        f"<details><summary>{_escape(stage)} <a href='{file}'>{file}</a></summary>"
        f"{cut}<pre>{_escape(text[:SHOWN])}</pre></details>"
    )


def page(dump: Dump) -> str:
    """Returns the page of a program as HTML."""
    name, measured = dump.summary.get("program", "?")[:12], _measured(dump)
    stages = "".join(_stage(dump, stage) for stage in stage_files() if dump.text(stage))
    tensors = _table(
        ["role", "", "shape", "bytes", "donated", "name"],
        [_row(*map(_escape, row), numeric=(1, 3)) for row in dump.tensors],
        numeric=(3,),
    )
    sections = [
        ("overview", "Overview", _overview(dump)),
        ("modules", "Modules", _modules(dump)),
        ("lines", "Python lines", _lines(dump)),
        (
            "commands",
            "Commands",
            f'<div class="scroll">{_command_rows(dump, measured)}</div>',
        ),
        ("times", "Times", _times(dump, measured)),
        ("buffers", "Buffers over time", _buffers(dump)),
        ("ops", "Ops", f'<div class="scroll">{_ops(dump.ops)}</div>'),
        ("tensors", "Inputs and outputs", f'<div class="scroll">{tensors}</div>'),
        ("stages", "Stages", stages),
    ]
    if collectives := two_lanes(dump.commands, measured.seconds):
        sections.insert(5, ("collectives", "Collectives", collectives))
    links = "".join(f'<a href="#{key}">{title}</a>' for key, title, _ in sections)
    body = "".join(
        f'<h2 id="{key}">{title}</h2>{content}' for key, title, content in sections
    )
    return _document(f"Program {name}", f"<nav>{links}</nav>{body}")


def _document(title: str, body: str) -> str:
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{_escape(title)}'
        f"</title><style>{STYLE}</style><h1>{_escape(title)}</h1>{body}</html>\n"
    )


class Pages(list[Path]):
    """The paths of pages. A notebook shows the last page. It is in a frame, because its
    styles and anchors would otherwise affect the notebook."""

    def _repr_html_(self) -> str:
        text = _escape(self[-1].read_text())
        frame = 'style="width:100%;height:40em;border:1px solid #d0d7de"'
        return f'<iframe srcdoc="{text}" {frame}></iframe>'


def write_pages(folder: str | Path) -> Pages:
    """Writes a page for every program below `folder` (or for `folder` itself), and returns
    the paths of the pages. Raises ValueError if there is no program, or a page can't be
    written."""
    folder = Path(folder)
    programs = (
        [folder]
        if (folder / "summary.txt").exists()
        else sorted(path.parent for path in folder.glob("*/summary.txt"))
    )
    if not programs:
        raise ValueError(f"'{folder}' has no dumped program.")
    written, rows = Pages(), []
    try:
        for path in programs:
            dump = read_dump(path)
            if (path / "graph.dot").exists():
                drawing = svg((path / "graph.dot").read_text())
                (path / "graph.svg").write_text(drawing)
            (path / "index.html").write_text(page(dump))
            (path / "README").write_text(
                README.format(
                    program=dump.summary.get("program", "?"),
                    step=dump.summary.get("step", "?"),
                )
            )
            written.append(path / "index.html")
            summary = [
                dump.summary.get(k, "") for k in ("step", "line", "ops", "kernels")
            ]
            reason = dump.summary.get("compiled because", "")
            link = f'<a href="{path.name}/index.html">{_escape(path.name)}</a>'
            rows.append(_row(link, *map(_escape, summary), _escape(reason)))
        if programs != [folder]:
            columns = ["program", "step", "line", "ops", "kernels", "why"]
            text = _document("Dumped programs", _table(columns, rows))
            (folder / "index.html").write_text(text)
            written.insert(0, folder / "index.html")
    except OSError as error:
        raise ValueError(f"The pages can't be written: {error}.") from error
    return written


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m torch_ltc.dump_page",
        description="Writes an index.html for each dumped program.",
    )
    parser.add_argument("folder", type=Path)
    try:
        for path in write_pages(parser.parse_args(arguments).folder):
            print(path)
    except ValueError as error:
        print(f"torch_ltc.dump_page: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
