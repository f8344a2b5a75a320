"""`python -m torch_ltc.dump_page dumps`: writes readable pages for dumped programs.

Each program's folder gets an index.html, a single file that needs no network. It shows
the step's modules, ops, kernels, buffers over time, Python lines and the texts of the
stages, linked with each other. A README in the folder says how to run the stages again.
The parent folder gets an index.html that lists all programs.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from torch_ltc._diagnostics import pages
from torch_ltc._diagnostics.dump_reading import Dump, read_dump
from torch_ltc._diagnostics.graph_drawing import svg
from torch_ltc._diagnostics.program_page import page


class Pages(list[Path]):
    """The paths of pages. A notebook shows the last page."""

    def _repr_html_(self) -> str:
        return pages.fill("notebook.html", page=self[-1].read_text())


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
            _write_program(dump)
            written.append(path / "index.html")
            rows.append((path.name, dump.summary))
        if programs != [folder]:
            text = pages.fill("dumps.html", title="Dumped programs", programs=rows)
            (folder / "index.html").write_text(text)
            written.insert(0, folder / "index.html")
    except OSError as error:
        raise ValueError(f"The pages can't be written: {error}.") from error
    return written


def _write_program(dump: Dump) -> None:
    folder = dump.folder
    if (folder / "graph.dot").exists():
        drawing = svg((folder / "graph.dot").read_text())
        (folder / "graph.svg").write_text(drawing)
    (folder / "index.html").write_text(page(dump))
    known = {key: dump.summary.get(key, "?") for key in ("program", "step")}
    (folder / "README").write_text(pages.fill("README.txt", **known))


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
