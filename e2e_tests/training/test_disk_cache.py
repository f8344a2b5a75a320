"""Programs and kernels are kept on disk, so that a second process compiles nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from subprocesses import run_python

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"

PROGRAM = f"""
import json, sys, time
sys.path.insert(0, {str(EXAMPLES)!r})
import torch, torch_ltc
from models import tasks
task = tasks.TASKS["test"]["lenet"]
torch.manual_seed(0)
model = task.model().to("lazy")
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
losses, times = [], []
for step in range(4):
    batch = tasks.to(task.batch(step), "lazy")
    started = time.perf_counter()
    optimizer.zero_grad()
    loss = task.loss(model, batch)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
    times.append(time.perf_counter() - started)
print(json.dumps({{
    "losses": losses, "first": times[0],
    **{{k: v for k, v in torch_ltc.metrics().items() if isinstance(v, int)}},
    "cache": torch_ltc.metrics()["cache"],
    "mlir": "libMLIR" in open("/proc/self/maps").read(),
}}))
"""


def run(**environment: str) -> dict:
    return json.loads(run_python(PROGRAM, **environment).stdout.splitlines()[-1])


def test_second_process_compiles_nothing(own_cache: str) -> None:
    first = run()
    assert first["compilations"] > 0
    second = run()
    assert second["compilations"] == 0
    assert second["program_disk_hits"] == first["compilations"]
    assert second["losses"] == first["losses"]
    assert second["first"] < 1.0
    assert not second["mlir"], "a disk hit must not load MLIR"


def test_cache_off_and_no_folder(own_cache: str) -> None:
    result = run(TORCH_LTC_CACHE="0")
    assert result["compilations"] > 0
    assert not os.path.exists(own_cache) or not os.listdir(own_cache)


def test_corrupt_entries_are_rebuilt_with_a_warning(own_cache: str) -> None:
    first = run()
    for path in Path(own_cache).rglob("*"):
        if path.is_file() and path.stat().st_size > 200:
            data = bytearray(path.read_bytes())
            data[len(data) // 2] ^= 0xFF
            path.write_bytes(bytes(data[: max(100, len(data) - 7)]))
    result = run_python(PROGRAM)
    second = json.loads(result.stdout.splitlines()[-1])
    assert second["compilations"] == first["compilations"]
    assert second["cache_rejected"] > 0
    assert second["losses"] == first["losses"]
    assert "cache" in result.stderr.lower()
    assert run()["compilations"] == 0, "the rebuilt entries are invalid"


def test_processes_at_the_same_time(own_cache: str) -> None:
    environment = dict(os.environ)
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, env=environment
        )
        for _ in range(3)
    ]
    outputs = [process.communicate(timeout=300)[0] for process in processes]
    assert all(process.returncode == 0 for process in processes)
    losses = [json.loads(text.splitlines()[-1])["losses"] for text in outputs]
    assert losses[0] == losses[1] == losses[2]
    assert run()["compilations"] == 0


def test_size_limit(own_cache: str) -> None:
    run(TORCH_LTC_CACHE_SIZE_MB="1")
    size = sum(p.stat().st_size for p in Path(own_cache).rglob("*") if p.is_file())
    assert size <= 1.2 * (1 << 20)


def test_unwritable_folder_is_reported_once_and_training_continues(tmp_path) -> None:
    # A file in place of the folder: no user can write there.
    blocked = tmp_path / "file"
    blocked.write_text("")
    result = run_python(PROGRAM, TORCH_LTC_CACHE_DIR=str(blocked / "cache"))
    assert json.loads(result.stdout.splitlines()[-1])["compilations"] > 0
    assert result.stderr.count(str(blocked)) == 1, result.stderr


def test_a_full_disk_loses_nothing() -> None:
    # No file may grow beyond 4 KB: for the cache this is a full disk.
    limited = (
        "import resource, signal\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))\n"
    )
    result = run_python(limited + PROGRAM, TORCH_LTC_CACHE_DIR=_fresh())
    answer = json.loads(result.stdout.splitlines()[-1])
    assert len(answer["losses"]) == 4
    assert "cache" in result.stderr.lower()


def _fresh() -> str:
    import tempfile

    return tempfile.mkdtemp(dir=os.environ["TORCH_LTC_TEST_SESSION"])
