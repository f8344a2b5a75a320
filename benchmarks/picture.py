"""Draws an SVG file with a group of bars for each model, with the template bars.svg."""

from __future__ import annotations

from pathlib import Path

import jinja2

_COLORS = {
    "eager": "#8a8a8a",
    "eager fused": "#bdbdbd",
    "TorchScript LTC": "#c49c6b",
    "compile": "#e1812c",
    "compile step": "#f2b87a",
    "jax": "#3a923a",
    "lazy": "#3274a1",
    "lazy captured": "#0d3b66",
}
_BAR, _GAP, _LEFT, _WIDTH = 13, 16, 160, 520
_LIMIT = 2.0  # times eager; longer bars are cut off, but their labels aren't


def draw(ratios: dict[str, dict[str, float]], title: str, path: Path) -> None:
    """Writes the picture to `path`. `ratios`: for each workload and contender, the time
    relative to eager."""
    groups, y = [], 46
    for workload, by_contender in ratios.items():
        bars = [
            {
                "y": y + _BAR * number,
                "length": min(ratio, _LIMIT) / _LIMIT * _WIDTH,
                "color": _COLORS[contender],
                "label": f"{ratio:.2f} {contender}",
            }
            for number, (contender, ratio) in enumerate(by_contender.items())
        ]
        middle = y + _BAR * len(bars) / 2 + 4
        groups.append({"workload": workload, "middle": middle, "bars": bars})
        y += _BAR * len(bars) + _GAP
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
    )
    text = environment.get_template("bars.svg").render(
        title=title,
        groups=groups,
        eager=_LEFT + _WIDTH / _LIMIT,
        height=y,
        left=_LEFT,
        width=_WIDTH,
        thickness=_BAR - 2,
        gap=_GAP,
    )
    path.write_text(text)
