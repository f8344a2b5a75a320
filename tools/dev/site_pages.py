"""Hook of MkDocs: adapts pages, which are written for readers of the repository, to the
site."""

from __future__ import annotations

import re
from typing import Any

#: Links to files outside docs/, which aren't on the site: only the link's text remains.
OUTSIDE = re.compile(r"\[([^\]]+)\]\(\s*\.\./[^)]*\)")
#: The mark `no-run` is only for the tests of the examples. With a word after the language,
#: pymdownx.superfences doesn't recognize a fence, and renders the text after the block, up
#: to the next fence, as code.
MARKED_FENCE = re.compile(r"^(\s*```\w+) no-run$", re.MULTILINE)


def on_page_markdown(markdown: str, **_: Any) -> str:
    return MARKED_FENCE.sub(r"\1", OUTSIDE.sub(r"\1", markdown))


def on_page_content(html: str, page: Any, **_: Any) -> str:
    if "```" in html:
        # The tests use this file without MkDocs.
        from mkdocs.exceptions import PluginError

        raise PluginError(f"{page.file.src_uri}: a fence is shown as text")
    return html
