"""Draws the traced graph `debug.dump(..., "dot")` as SVG, without Graphviz.

Ops are arranged in rows, each op below everything that it reads. Parameters, and ops that
only read parameters, are right above their first reader. A box shows the op, the result's
shape and the line; the tooltip shows the whole text. Colors denote modules.
"""

from __future__ import annotations

import itertools
import re
from collections import defaultdict
from dataclasses import dataclass, field

from torch_ltc._diagnostics import pages

WIDTH, HEIGHT, GAP, ROW = 150, 36, 14, 74
COLORS = ("#ddf4ff", "#dafbe1", "#fff8c5", "#ffebe9", "#fbefff", "#fff1e5", "#eef1f4")

_NODE = re.compile(r'^  (\w+) \[label="((?:[^"\\]|\\.)*)"(, shape=box)?\]$', re.M)
_EDGE = re.compile(r"^  (\w+) -> (\w+)$", re.M)


@dataclass
class Node:
    text: str
    is_op: bool
    above: list[str] = field(default_factory=list)  # its operands
    below: list[str] = field(default_factory=list)
    row: int = 0
    place: float = 0.0  # in its row, in boxes from the left

    @property
    def kind(self) -> str:
        found = re.search(r"(\w+::[\w.]+)\(", self.text)
        if found:
            return found[1]
        name = re.search(r'"([^"]*)"', self.text)
        return name[1] if name else " ".join(self.text.split(" ")[1:3]) or self.text

    @property
    def details(self) -> str:
        """Shape and line: "[4,5] train.py:12"."""
        shape = re.match(r"\w+(\[[\d,]*\])", self.text)
        line = re.search(r"# (\S+)", self.text)
        return " ".join(part[1] for part in (shape, line) if part)

    @property
    def module(self) -> str:
        found = re.search(r"# \S+ (\S+)$", self.text)
        return found[1] if found else ""


@dataclass
class Edge:
    """A curve from an operand down to a node."""

    x: float
    y: float
    bend: float  # the height of the curve's control points
    to_x: float
    to_y: float


@dataclass
class Box:
    x: float
    y: float
    color: str
    node: Node
    width: int = WIDTH
    height: int = HEIGHT

    @property
    def middle(self) -> float:
        return self.x + self.width / 2


def read_dot(dot: str) -> dict[str, Node]:
    """Returns the nodes by name; each node follows its operands, as in the dump."""
    nodes = {
        name: Node(re.sub(r"\\(.)", r"\1", label), not box)
        for name, label, box in _NODE.findall(dot)
    }
    for source, target in _EDGE.findall(dot):
        if source not in nodes[target].above:
            nodes[target].above.append(source)
            nodes[source].below.append(target)
    return nodes


def lay_out(nodes: dict[str, Node]) -> None:
    """Assigns rows and places. A node's row is the length of the longest path from a
    parameter; its place is near the mean of its neighbors' places. Parameters, and ops that
    only read parameters (for example, a moment times its decay), are placed right above
    their first reader."""
    for node in nodes.values():
        node.row = 1 + max((nodes[name].row for name in node.above), default=-1)
    for node in reversed(list(nodes.values())):
        early = all(not nodes[name].above for name in node.above)
        if early and node.below:
            node.row = min(nodes[name].row for name in node.below) - 1
    rows: dict[int, list[Node]] = defaultdict(list)
    for node in nodes.values():
        rows[node.row].append(node)
    for row in rows.values():
        for place, node in enumerate(row):
            node.place = float(place)
    for downwards in (True, False, True, False):
        for number in sorted(rows, reverse=not downwards):
            for node in rows[number]:
                near = node.above if downwards else node.below
                if near:
                    node.place = sum(nodes[name].place for name in near) / len(near)
            _spread(rows[number])


def _spread(row: list[Node]) -> None:
    """Moves overlapping boxes to the right, and recenters the row."""
    row.sort(key=lambda node: node.place)
    wanted = sum(node.place for node in row)
    for left, node in itertools.pairwise(row):
        node.place = max(node.place, left.place + 1)
    shift = (wanted - sum(node.place for node in row)) / len(row)
    for node in row:
        node.place += shift


def svg(dot: str) -> str:
    """Returns the drawing as an SVG document."""
    nodes = read_dot(dot)
    if not nodes:
        return '<svg xmlns="http://www.w3.org/2000/svg"/>\n'
    lay_out(nodes)
    left = min(node.place for node in nodes.values())
    width = (max(n.place for n in nodes.values()) - left + 1) * (WIDTH + GAP) + GAP
    height = (max(node.row for node in nodes.values()) + 1) * ROW

    def corner(node: Node) -> tuple[float, float]:
        return (node.place - left) * (WIDTH + GAP) + GAP, node.row * ROW + GAP

    modules = sorted({node.module for node in nodes.values() if node.module})
    color = {name: COLORS[i % len(COLORS)] for i, name in enumerate(modules)}
    edges, boxes = [], []
    for node in nodes.values():
        x, y = corner(node)
        for name in node.above:
            a, b = corner(nodes[name])
            a, b = a + WIDTH / 2, b + HEIGHT
            edges.append(Edge(a, b, (y + b) / 2, x + WIDTH / 2, y))
        boxes.append(Box(x, y, color.get(node.module, "#fff"), node))
    return pages.fill("graph.svg", width=width, height=height, edges=edges, boxes=boxes)
