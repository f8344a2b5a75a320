"""Fills the templates of pages and drawings (templates/). Jinja2, which torch needs as
well, is only imported when a page is written."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from torch_ltc._diagnostics.report import bytes_text, seconds_text

if TYPE_CHECKING:
    from jinja2 import Environment


def fill(template: str, **values: Any) -> str:
    """Returns a template's text with the values in it. HTML and SVG are escaped. Raises
    jinja2.UndefinedError if the template uses another value."""
    return _environment().get_template(template).render(values)


@functools.cache
def _environment() -> Environment:
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("torch_ltc._diagnostics"),
        autoescape=jinja2.select_autoescape(["html", "svg"]),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {
        "anchor": lambda line: "line-" + line.replace(":", "-"),
        "bytes": bytes_text,
        "fixed": lambda number, digits: f"{number:.{digits}f}",
        "seconds": seconds_text,
        "shortened": lambda text: text if len(text) <= 24 else text[:23] + "…",
    }
    return environment
