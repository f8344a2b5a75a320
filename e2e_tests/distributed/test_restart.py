"""A job under torchrun whose processes are killed resumes from its checkpoint."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from subprocesses import run_python

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = str(ROOT / "examples" / "train_distributed.py")


def _start(folder: Path, restarts: int, epochs: int) -> subprocess.Popen[str]:
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "TORCH_LTC_TIER": "compile",  # sums in the same order in each run
        "TORCH_LTC_CACHE_DIR": str(folder.parent / "cache"),
        # torch 2.13: processes must not read addresses of those before a restart.
        "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1",
        "PYTHONFAULTHANDLER": "1",
    }
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    launcher += ["--nproc-per-node=2", f"--max-restarts={restarts}"]
    script = [SCRIPT, "--out", str(folder), "--epochs", str(epochs), "--timeout", "20"]
    return subprocess.Popen(
        launcher + script,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def _workers(launcher: int) -> list[int]:
    """Returns the process IDs of the launcher's child processes that run the script."""
    found = []
    for task in Path(f"/proc/{launcher}/task").glob("*/children"):
        for child in map(int, task.read_text().split()):
            try:
                command = Path(f"/proc/{child}/cmdline").read_text()
            except OSError:
                continue
            if SCRIPT in command:
                found.append(child)
    return found


def _kill_at_random(launcher: int, kills: int, seed: int, killed: list[int]) -> None:
    generator = random.Random(seed)
    while len(killed) < kills:
        # The moments range from the import of torch to the last epoch.
        time.sleep(generator.uniform(2, 9))
        try:
            worker = generator.choice(_workers(launcher))
            os.kill(worker, signal.SIGKILL)
        except (IndexError, OSError):  # between two generations of workers
            if not Path(f"/proc/{launcher}").exists():
                return
            continue
        killed.append(worker)


def _output(job: subprocess.Popen[str], timeout: float) -> str:
    """Waits until the job ends, and returns what it printed. Raises AssertionError with
    this text, and with the stacks of the workers, if it doesn't end in time."""
    try:
        return job.communicate(timeout=timeout)[0]
    except subprocess.TimeoutExpired:
        for worker in _workers(job.pid):
            os.kill(worker, signal.SIGABRT)  # faulthandler prints the stacks
        time.sleep(2)
        job.terminate()
        output = job.communicate()[0]
    raise AssertionError(f"the job was still running after {timeout} s:\n{output}")


def _final_loss(output: str) -> float:
    found = re.findall(r"final loss ([0-9.]+)", output)
    # A worker that is killed after it has printed the loss prints the loss again.
    assert len(set(found)) == 1, output
    return float(found[0])


def test_killed_workers_reach_the_same_loss(tmp_path):
    epochs, kills = 12, 10
    undisturbed = _start(tmp_path / "undisturbed", 0, epochs)
    expected = _final_loss(_output(undisturbed, timeout=200))
    assert expected < 0.5

    job = _start(tmp_path / "killed", 3 * kills, epochs)
    killed: list[int] = []
    killer = threading.Thread(
        target=_kill_at_random, args=(job.pid, kills, 7, killed), daemon=True
    )
    killer.start()
    output = _output(job, timeout=400)
    assert job.returncode == 0, output
    assert killed, "nothing was killed"
    assert "connectFullMesh failed" not in output, output
    assert abs(_final_loss(output) - expected) <= 1e-5, (killed, output)


@pytest.mark.parametrize("seed", [3])
def test_random_kills(seed, tmp_path):
    """Runs in a separate process, because a process can't be forked after using torch."""
    program = f"""
        from pathlib import Path
        from distributed.random_kills import run
        print(run(6, {seed}, Path({str(tmp_path)!r})))
    """
    tests = str(Path(__file__).parents[1])
    seen = run_python(program, timeout=500, PYTHONPATH=tests).stdout
    assert "'kills': 6" in seen, seen
