"""Together, ranks that share an empty disk cache compile each program only once."""

from __future__ import annotations

import contextlib
import fcntl
import glob
import json
import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from distributed.launching import run_ranks
from distributed.start_cases import count_compilations
from subprocesses import run_python


@pytest.mark.parametrize("tier", ["compile", "auto"])
def test_one_compilation_for_all_ranks(tier, tmp_path):
    ranks = 4
    run_ranks(count_compilations, ranks, tier, str(tmp_path))
    reports = [
        json.loads((tmp_path / f"rank{rank}.json").read_text()) for rank in range(ranks)
    ]
    programs = reports[0]["programs"]
    assert programs > 0, reports
    assert {report["programs"] for report in reports} == {programs}, reports
    assert sum(report["compilations"] for report in reports) == programs, reports
    assert not list((tmp_path / "cache").glob("tmp-*")), "a lock is left"


#: Compiles one program. With ROLE=killed, the process is killed while it holds the lock,
#: and leaves the lock's file.
PROGRAM = """
import os, signal, threading, time, torch, torch_ltc
from pathlib import Path

folder = Path(os.environ["TORCH_LTC_CACHE_DIR"])
if os.environ["ROLE"] == "killed":
    def watch():
        while not list(folder.glob("tmp-compiling-*")):
            time.sleep(0.0005)
        os.kill(os.getpid(), signal.SIGKILL)
    threading.Thread(target=watch, daemon=True).start()
x = torch.arange(64.0, device="lazy").view(8, 8)
for _ in range(20):
    x = (x @ x).softmax(0).tanh()
print(x.sum().item())
"""


def _leave_lock_file(cache: Path) -> Path:
    """Kills a process that runs PROGRAM. Returns the lock file that it leaves."""
    killed = run_python(
        PROGRAM, check=False, TORCH_LTC_CACHE_DIR=str(cache), ROLE="killed",
        TORCH_LTC_TIER="compile",
    )  # fmt: skip
    assert killed.returncode == -9
    (file,) = cache.glob("tmp-compiling-*")
    return file


def _run_program(cache: Path) -> float:
    result = run_python(
        PROGRAM, TORCH_LTC_CACHE_DIR=str(cache), ROLE="other",
        TORCH_LTC_TIER="compile", timeout=60,
    )  # fmt: skip
    return float(result.stdout)


def _count_opened(file: Path) -> int:
    """Returns how many file descriptors on this machine refer to `file`."""
    count = 0
    for link in glob.glob("/proc/[0-9]*/fd/*"):
        with contextlib.suppress(OSError):  # closed meanwhile, or another user's
            count += os.readlink(link) == str(file)
    return count


def _lock(file: Path) -> int:
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    return descriptor


def test_a_killed_process_holds_nobody_up(tmp_path):
    cache = tmp_path / "cache"
    _leave_lock_file(cache)
    assert _run_program(cache) > 0


def test_a_lock_on_a_removed_file_excludes_nobody(tmp_path):
    cache = tmp_path / "cache"
    file = _leave_lock_file(cache)
    first = _lock(file)
    with ThreadPoolExecutor() as pool:
        run = pool.submit(_run_program, cache)
        while _count_opened(file) < 2:  # the program waits for the lock
            time.sleep(0.01)
        # A starting process removes lock files that nobody has locked; another process then
        # creates and locks a new file.
        file.unlink()
        second = _lock(file)
        os.close(first)
        with pytest.raises(TimeoutError):
            run.result(timeout=3)
        os.close(second)
        assert run.result() > 0
