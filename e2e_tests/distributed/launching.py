"""Runs functions in several processes that form a process group."""

from __future__ import annotations

import datetime
import gc
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def run_ranks(worker: Callable[..., None], ranks: int, *arguments, **options) -> None:
    """Calls `worker(rank, *arguments)` in `ranks` processes that have joined a group.
    `options` are those of `init_process_group`. An error of a process is raised here.
    """
    with tempfile.TemporaryDirectory() as folder:
        mp.start_processes(
            _join,
            (worker, ranks, str(Path(folder) / "store"), arguments, options),
            nprocs=ranks,
            start_method="spawn",
        )


def exit_codes(worker: Callable[..., None], ranks: int, *arguments, **options):
    """Like `run_ranks`, but doesn't end the other ranks when one fails. Returns the exit
    code of each rank.
    """
    with tempfile.TemporaryDirectory() as folder:
        started = mp.start_processes(
            _join,
            (worker, ranks, str(Path(folder) / "store"), arguments, options),
            nprocs=ranks,
            start_method="spawn",
            join=False,
        )
        for process in started.processes:
            process.join()
        return [process.exitcode for process in started.processes]


def _join(rank: int, worker, ranks: int, store: str, arguments, options) -> None:
    torch.set_num_threads(1)
    os.environ["OMP_NUM_THREADS"] = "1"
    options = {
        "backend": "gloo",
        "timeout": datetime.timedelta(seconds=60),
        **options,
    }
    dist.init_process_group(
        init_method=f"file://{store}", rank=rank, world_size=ranks, **options
    )
    torch.manual_seed(rank)
    worker(rank, *arguments)
    # Otherwise tracebacks of caught errors keep the group alive. A thread of Gloo that
    # releases a Python tensor while Python ends aborts the process (torch 2.13).
    gc.collect()
    dist.destroy_process_group()
