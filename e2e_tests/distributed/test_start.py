"""Ranks with an empty disk cache compile each program once between them."""

from __future__ import annotations

import json

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


def test_a_killed_process_holds_nobody_up(tmp_path):
    program = """
        import os, signal, threading, time, torch, torch_ltc
        from pathlib import Path

        folder = Path(os.environ["TORCH_LTC_CACHE_DIR"])
        if os.environ["ROLE"] == "killed":
            # While it compiles: it has the lock.
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
    cache = str(tmp_path / "cache")
    killed = run_python(
        program, check=False, TORCH_LTC_CACHE_DIR=cache, ROLE="killed",
        TORCH_LTC_TIER="compile",
    )  # fmt: skip
    assert killed.returncode == -9
    again = run_python(
        program, TORCH_LTC_CACHE_DIR=cache, ROLE="other", TORCH_LTC_TIER="compile",
        timeout=60,
    )  # fmt: skip
    assert float(again.stdout) > 0
