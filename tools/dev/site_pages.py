"""Hook of MkDocs: adapts pages, which are written for a reader of the repository, to the
site."""

from __future__ import annotations

import re
from typing import Any

#: Links to files outside docs/, which aren't on the site: only their text stays.
OUTSIDE = re.compile(r"\[([^\]]+)\]\(\s*\.\./[^)]*\)")
#: What the tests of the examples read; pymdownx.superfences takes a fence with a word after
#: the language for text, and then the text up to the next fence for code.
MARKED_FENCE = re.compile(r"^(\s*```\w+) no-run$", re.MULTILINE)


def on_page_markdown(markdown: str, **_: Any) -> str:
    return MARKED_FENCE.sub(r"\1", OUTSIDE.sub(r"\1", markdown))


def on_page_content(html: str, page: Any, **_: Any) -> str:
    if "```" in html:
        # The tests use this file without MkDocs.
        from mkdocs.exceptions import PluginError

        raise PluginError(f"{page.file.src_uri}: a fence is shown as text")
    return html
