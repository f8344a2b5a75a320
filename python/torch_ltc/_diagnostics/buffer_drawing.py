"""Places the rectangles of a program's buffers in a drawing: time runs from left to right;
the arena is at the bottom, as planned, and results are above it."""

from __future__ import annotations

from dataclasses import dataclass, field

from torch_ltc._diagnostics.dump_reading import Buffer, Plan

WIDTH, HEIGHT, LEFT = 1100, 320, 10
COLORS = ("#54aeff", "#4ac26b", "#d4a72c", "#ff8182", "#c297ff", "#7ee2e2", "#ffb77c")


@dataclass
class Rectangle:
    x: float
    y: float
    width: float
    height: float
    color: str
    buffer: Buffer

    @property
    def has_label(self) -> bool:
        return self.width > 60 and self.height > 14


@dataclass
class Drawing:
    arena_bytes: int
    arena_y: float = 0.0  # of the line between the arena and results
    rectangles: list[Rectangle] = field(default_factory=list)
    width: int = WIDTH
    height: int = HEIGHT
    left: int = LEFT


def draw_buffers(plan: Plan) -> Drawing:
    """Returns the drawing of the plan's new buffers, which may be none."""
    drawing = Drawing(plan.arena_bytes)
    placed = plan.offsets()
    if not placed:
        return drawing
    top = max(offset + buffer.bytes for buffer, offset in placed) or 1
    step = (WIDTH - LEFT) / (len(plan.commands) + 1)
    drawing.arena_y = HEIGHT - plan.arena_bytes / top * HEIGHT
    for number, (buffer, offset) in enumerate(placed):
        height = max(1.5, buffer.bytes / top * HEIGHT)
        drawing.rectangles.append(
            Rectangle(
                x=LEFT + buffer.first * step,
                y=HEIGHT - (offset / top * HEIGHT) - height,
                width=max(2.0, (buffer.last - buffer.first + 1) * step - 1),
                height=height,
                color=COLORS[number % len(COLORS)],
                buffer=buffer,
            )
        )
    return drawing
