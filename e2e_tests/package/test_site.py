"""The documentation site's navigation lists each page, and no relative link leaves the
site."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

import torch_ltc
import yaml

ROOT = Path(__file__).resolve().parents[2]
SITE = yaml.safe_load((ROOT / "mkdocs.yml").read_text())


def pages(entries: Any) -> list[str]:
    if isinstance(entries, str):
        return [entries]
    parts = entries.values() if isinstance(entries, dict) else entries
    return [page for part in parts for page in pages(part)]


def test_each_page_is_in_the_navigation() -> None:
    folder = ROOT / "docs"
    written = [str(path.relative_to(folder)) for path in folder.rglob("*.md")]
    assert sorted(pages(SITE["nav"])) == sorted([*written, *hook(1)["PAGES"]])


def hook(number: int) -> dict[str, Any]:
    return runpy.run_path(str(ROOT / SITE["hooks"][number]))


def test_links_out_of_the_site_become_words() -> None:
    text = "See [the sweeps](../e2e_tests/sweeps/README.md) and [using](using.md)."
    without = hook(0)["on_page_markdown"](text, page=None)
    assert without == "See the sweeps and [using](using.md)."


def test_generated_pages_have_every_row_of_their_tables() -> None:
    texts = {name: write() for name, write in hook(1)["PAGES"].items()}
    for option in torch_ltc.config.options():
        assert f"| `{option['name']}` |" in texts["options.md"]
        assert f"`{option['environment'].split(', ')[0]}`" in texts["options.md"]
    metrics = torch_ltc.metrics()
    counters = [name for name in metrics if isinstance(metrics[name], int)]
    for name in [*counters, *metrics["timers"]]:
        assert f"| `{name}` |" in texts["metrics.md"]
    include = ROOT / "mlir_lowering" / "include" / "torch_ltc"
    for file in include.rglob("Passes.td"):
        for name in re.findall(r'Pass<"([\w-]+)"', file.read_text()):
            assert f"### `-{name}`" in texts["passes.md"]
    for file in (include / "Dialect" / "Ltc").glob("Ltc*Ops.td"):
        for name in re.findall(r'Op<"(\w+)"', file.read_text()):
            assert f"### `ltc.{name}` " in texts["ltc_dialect.md"]
