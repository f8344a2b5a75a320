"""Runs the code blocks of README.md and docs/.

`python` blocks of one page run in order in one process; a block whose info string has
`no-run` is only compiled. `bash` blocks are checked for syntax, and `./dev` commands in
them must exist. Links to files must be valid.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from code_blocks import code_blocks, prose
from subprocesses import run_python

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
LINK = re.compile(r"\]\((?!https?://|#)([^)#]+)")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_blocks(page: Path, tmp_path: Path) -> None:
    program = [f"import os; os.chdir({str(tmp_path)!r})"]
    for info, text in code_blocks(page, "python"):
        compile(text, str(page), "exec")
        if "no-run" not in info.split():
            program.append(text)
    # Readers use the default tier; other tests use tier `compile`.
    run_python("\n".join(program), TORCH_LTC_TIER="auto")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_shell_blocks(page: Path) -> None:
    commands = (ROOT / "tools" / "dev" / "__main__.py").read_text()
    for _, text in [*code_blocks(page, "bash"), *code_blocks(page, "sh")]:
        check = subprocess.run(["bash", "-n"], input=text, text=True)
        assert check.returncode == 0, text
        for command in re.findall(r"^\./dev ([\w-]+)", text, re.M):
            assert f'"{command}":' in commands, command


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in LINK.findall(prose(page)):
        assert (page.parent / target).exists(), target
