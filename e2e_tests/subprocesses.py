"""Python programs in processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap


def run_python(
    program: str, timeout: float = 300, check: bool = True, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Runs a program's text. A value of None-like "" is set, not removed."""
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
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
