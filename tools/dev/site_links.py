"""Hook of MkDocs: links out of docs/ lead nowhere on the site, so that their
words stay and the link goes."""

from __future__ import annotations

import re
from typing import Any

OUTSIDE = re.compile(r"\[([^\]]+)\]\(\s*\.\./[^)]*\)")


def on_page_markdown(markdown: str, **_: Any) -> str:
    return OUTSIDE.sub(r"\1", markdown)
