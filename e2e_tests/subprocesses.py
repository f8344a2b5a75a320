"""Runs Python programs in subprocesses."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path


def run_python(
    program: str,
    timeout: float = 300,
    check: bool = True,
    file: Path | None = None,
    before: Sequence[str] = (),
    **environment: str,
) -> subprocess.CompletedProcess[str]:
    """Runs the text of a program. With `check`, raises AssertionError if the program fails.

    `file`: the path to which the text is written first, for programs whose subprocesses
    import it. `before`: a command, such as an emulator, that gets Python's command as its
    arguments. `environment`: variables to set; an empty value doesn't remove a variable."""
    text = textwrap.dedent(program)
    if file:
        file.write_text(text)
    result = subprocess.run(
        [*before, sys.executable, *([str(file)] if file else ["-c", text])],
        capture_output=True,
        text=True,
        timeout=timeout,
        env={**os.environ, **environment},
    )
    if check and result.returncode:
        raise AssertionError(
            f"exit code {result.returncode}\n{result.stdout}\n{result.stderr}"
        )
    return result
