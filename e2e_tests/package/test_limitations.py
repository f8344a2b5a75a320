"""docs/limitations.md lists every name of torch that the package replaces."""

from __future__ import annotations

from pathlib import Path

from subprocesses import run_python

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "limitations.md"
REPLACED = (ROOT / "tools" / "dev" / "replaced_names.py").read_text()


def test_each_replaced_name_is_listed() -> None:
    output = run_python(REPLACED, TORCH_DEVICE_BACKEND_AUTOLOAD="0").stdout
    replaced = {tuple(line.split()) for line in output.splitlines()}
    assert ("torch", "save") in replaced
    page = PAGE.read_text()
    missing = {f"{owner}.{name}" for owner, name in replaced if name not in page}
    assert not missing
