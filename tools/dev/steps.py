"""Runs a step again only if its inputs have changed: a stamp stores their digest.

The state is in `.dev/`: `stamps/NAME` and `logs/NAME.log`.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
STATE = ROOT / ".dev"
LAST_LINES = 25


class StepFailed(Exception):
    """Raised if a step fails; the text is the complete message for the user."""


def say(text: str) -> None:
    print(f"./dev: {text}", file=sys.stderr, flush=True)


def digest(parts: Iterable[str | Path]) -> str:
    """Returns the digest of the texts, and of the contents of the paths."""
    result = hashlib.sha256()
    for part in parts:
        data = part.read_bytes() if isinstance(part, Path) else part.encode()
        result.update(len(data).to_bytes(8, "little") + data)
    return result.hexdigest()


def run_logged(
    name: str,
    command: Sequence[str],
    advice: str,
    environment: Mapping[str, str] | None = None,
    append: bool = False,
) -> None:
    """Runs a command and writes its output to the step's log. Raises StepFailed, with
    `advice`, if the command fails."""
    log = STATE / "logs" / f"{name}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab" if append else "wb") as output:
        output.write(("$ " + " ".join(command) + "\n").encode())
        output.flush()
        try:
            code = subprocess.run(
                command,
                cwd=ROOT,
                env={**os.environ, **(environment or {})},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            ).returncode
        except OSError as error:
            output.write(f"{error}\n".encode())
            code = 127
    if code:
        raise StepFailed(failure_text(name, command, code, log, advice))


def failure_text(
    name: str, command: Sequence[str], code: int, log: Path, advice: str
) -> str:
    lines = log.read_text(errors="replace").splitlines()
    # With parallel jobs the cause may be far above the end.
    first = next((line for line in lines if "error:" in line.lower()), None)
    lines = lines[-LAST_LINES:]
    return "\n".join(
        [
            f"step '{name}' failed (exit code {code}).",
            f"  command: {' '.join(command)}",
            *([f"  first error: {first.strip()}"] if first else []),
            f"  last lines of {log.relative_to(ROOT)}:",
            *(f"    {line}" for line in lines),
            f"  what to do: {advice}",
        ]
    )


def once(
    name: str, depends_on: Iterable[str | Path], action: Callable[[], None]
) -> None:
    """Runs `action` unless it has succeeded before with the same inputs."""
    stamp = STATE / "stamps" / name
    wanted = digest(depends_on)
    if stamp.exists() and stamp.read_text() == wanted:
        return
    say(f"{name} ...")
    started = time.monotonic()
    action()
    stamp.parent.mkdir(parents=True, exist_ok=True)
    stamp.write_text(wanted)
    say(f"{name}: done in {time.monotonic() - started:.0f} s")


def forget(name: str) -> None:
    (STATE / "stamps" / name).unlink(missing_ok=True)


@contextmanager
def exclusive(what: str) -> Iterator[None]:
    """Makes other ./dev processes in this folder wait while this one runs `what`."""
    STATE.mkdir(exist_ok=True)
    with (STATE / f"{what}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"waiting for the {what} of another ./dev in this folder ...")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
