"""Normalizes modules of stage `torch` for comparisons that ignore the names of values and
the positions of constants."""

from __future__ import annotations

import re

CONSTANT = re.compile(r"(%[\w-]+) = (torch\.constant\.\w+.*)")
NAME = re.compile(r"%[\w-]+(?:#\d+)?")


def normal_form(text: str) -> list[str]:
    """Returns the lines of the ops in order, with constants in place of their names and
    other values numbered."""
    names: dict[str, str] = {}
    lines = []
    for line in text.splitlines():
        line = line.strip()
        if constant := CONSTANT.fullmatch(line):
            names[constant[1]] = f"<{constant[2]}>"
            continue
        if " = torch." in line and ":" in line.split(" = ")[0]:  # %0:2 = ...
            line = re.sub(r"^(%[\w-]+):\d+", r"\1", line)
        for name in NAME.findall(line):
            base = name.partition("#")[0]
            names.setdefault(base, f"v{sum(n.startswith('v') for n in names.values())}")
        line = NAME.sub(
            lambda match: (
                names[match[0].partition("#")[0]]
                + match[0][len(match[0].partition("#")[0]) :]
            ),
            line,
        )
        lines.append(re.sub(r"@\w+", "@program", line))
    return lines
