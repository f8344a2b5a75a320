"""Draws an SVG file with a group of bars for each model."""

from __future__ import annotations

from html import escape
from pathlib import Path

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
    rows, y = [], 46
    for workload, by_contender in ratios.items():
        middle = y + _BAR * len(by_contender) / 2 + 4
        rows.append(_text(_LEFT - 8, middle, workload, "end"))
        for contender, ratio in by_contender.items():
            length = min(ratio, _LIMIT) / _LIMIT * _WIDTH
            rows.append(
                f'<rect x="{_LEFT}" y="{y}" width="{length:.1f}" '
                f'height="{_BAR - 2}" fill="{_COLORS[contender]}"/>'
            )
            label = f"{ratio:.2f} {contender}"
            rows.append(_text(_LEFT + length + 4, y + 10, label, "start", 9))
            y += _BAR
        y += _GAP
    eager = _LEFT + _WIDTH / _LIMIT
    rows.append(
        f'<line x1="{eager}" y1="40" x2="{eager}" y2="{y - _GAP}" stroke="#444" '
        'stroke-dasharray="3 3"/>'
    )
    width = _LEFT + _WIDTH + 130
    path.write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{y}" '
        f'font-family="sans-serif"><rect width="100%" height="100%" fill="white"/>'
        + _text(12, 24, title, "start", 13)
        + "".join(rows)
        + "</svg>\n"
    )


def _text(x: float, y: float, text: str, anchor: str, size: int = 11) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" '
        f'text-anchor="{anchor}">{escape(text)}</text>'
    )
