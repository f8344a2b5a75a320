"""The documentation site: each page is in its navigation, and links stay inside."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
SITE = yaml.safe_load((ROOT / "mkdocs.yml").read_text())


def pages(entries: Any) -> list[str]:
    if isinstance(entries, str):
        return [entries]
    parts = entries.values() if isinstance(entries, dict) else entries
    return [page for part in parts for page in pages(part)]


def test_each_page_is_in_the_navigation() -> None:
    listed = pages(SITE["nav"])
    assert sorted(listed) == sorted(p.name for p in (ROOT / "docs").glob("*.md"))


def test_links_out_of_the_site_become_words() -> None:
    hook = runpy.run_path(str(ROOT / SITE["hooks"][0]))["on_page_markdown"]
    text = "See [the sweeps](../e2e_tests/sweeps/README.md) and [using](using.md)."
    assert hook(text, page=None) == "See the sweeps and [using](using.md)."
