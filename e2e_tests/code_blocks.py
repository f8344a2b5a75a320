"""Finds the code blocks of Markdown pages, including those in lists."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

_BLOCK = re.compile(r"^ *```([^\n`]*)\n(.*?)^ *```$", re.M | re.S)


def code_blocks(page: Path, language: str) -> list[tuple[str, str]]:
    """Returns (info string, text without indentation) for each block in `language`."""
    found = _BLOCK.findall(page.read_text())
    return [
        (info, textwrap.dedent(text))
        for info, text in found
        if info.split()[:1] == [language]
    ]


def prose(page: Path) -> str:
    """Returns the page without its code blocks."""
    return _BLOCK.sub("", page.read_text())
