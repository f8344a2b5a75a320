"""Hook of MkDocs: replaces links to files outside docs/, which aren't on the site, by
their text."""

from __future__ import annotations

import re
from typing import Any

OUTSIDE = re.compile(r"\[([^\]]+)\]\(\s*\.\./[^)]*\)")


def on_page_markdown(markdown: str, **_: Any) -> str:
    return OUTSIDE.sub(r"\1", markdown)
