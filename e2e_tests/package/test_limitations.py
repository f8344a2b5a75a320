"""docs/limitations.md lists every name of torch that the package replaces."""

from __future__ import annotations

from pathlib import Path

from subprocesses import run_python

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "limitations.md"
REPLACED = (ROOT / "tools" / "dev" / "replaced_names.py").read_text()


def test_each_replaced_name_is_listed_with_its_moment() -> None:
    output = run_python(REPLACED, TORCH_DEVICE_BACKEND_AUTOLOAD="0").stdout
    replaced = {tuple(line.split()) for line in output.splitlines()}
    assert ("import", "torch", "save") in replaced
    at_import, later = PAGE.read_text().split("its first lazy tensor:")
    page = {"import": at_import, "tensor": later}
    missing = [row for row in sorted(replaced) if row[2] not in page[row[0]]]
    assert not missing
