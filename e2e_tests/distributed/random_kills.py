"""Kills ranks of a job at random moments, and restarts the job from its checkpoint.

    cd e2e_tests && python -m distributed.random_kills --full

After each kill (SIGKILL) the other rank must end by itself, with an error, and the
checkpoint must be complete. Each job must end with the loss of a job without kills.
`--full` kills 200 times, in about ten minutes.
"""

from __future__ import annotations

import argparse
import collections
import datetime
import mmap
import multiprocessing
import os
import random
import signal
import tempfile
import time
from pathlib import Path

import torch
import torch.distributed as dist
import torch_ltc
from torch import nn
from torch.nn.parallel import DistributedDataParallel

RANKS = 2
EPOCHS = 4
STEPS = 6
TIMEOUT = 20
PHASES = ["start", "forward", "backward", "optimizer", "read", "checkpoint"]
FORK = multiprocessing.get_context("fork")


def _train(rank: int, folder: Path, launch: int, phase: mmap.mmap) -> None:
    """Runs a rank of the job: resumes from the checkpoint; rank 0 writes one after each
    epoch."""

    def enter(name: str) -> None:
        phase[rank] = PHASES.index(name)

    torch.set_num_threads(1)
    torch_ltc.config.tier = "compile"
    torch_ltc.config.cache_dir = str(folder / "cache")
    dist.init_process_group(
        "gloo",
        init_method=f"file://{folder}/store{launch}",
        rank=rank,
        world_size=RANKS,
        timeout=datetime.timedelta(seconds=TIMEOUT),
    )
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 1)).to("lazy")
    ddp = DistributedDataParallel(model, gradient_as_bucket_view=True)
    optimizer = torch.optim.AdamW(ddp.parameters(), lr=0.01)
    checkpoint = folder / "checkpoint.pt"
    begin, total = 0, 0.0
    if checkpoint.exists():
        state = torch.load(checkpoint, map_location="cpu")
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        begin, total = state["epoch"] + 1, state["loss"]
    dist.barrier()  # the checkpoint is read before rank 0 writes another one
    for epoch in range(begin, EPOCHS):
        generator = torch.Generator().manual_seed(1000 * epoch + rank)
        losses = []
        for _ in range(STEPS):
            enter("forward")
            x = torch.randn(16, 8, generator=generator).to("lazy")
            optimizer.zero_grad()
            loss = (ddp(x) - x.sum(1, keepdim=True)).square().mean()
            enter("backward")
            loss.backward()
            enter("optimizer")
            optimizer.step()
            losses.append(loss.detach())
        enter("read")
        mean = torch.stack(losses).mean()
        dist.all_reduce(mean)
        total = mean.item()
        if rank == 0:
            enter("checkpoint")
            state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
            temporary = checkpoint.with_suffix(".new")
            torch.save({**state, "epoch": epoch, "loss": total}, temporary)
            temporary.replace(checkpoint)
    if rank == 0:
        (folder / "loss").write_text(repr(total))
    dist.destroy_process_group()


def _work(rank: int, folder: Path, launch: int, phase: mmap.mmap) -> None:
    try:
        _train(rank, folder, launch, phase)
    except Exception as error:
        (folder / f"error{launch}").write_text(f"{type(error).__name__}: {error}")
        # The process must end without waiting for data from the killed rank.
        raise SystemExit(3) from None


class Job:
    """A job that is launched again and again until its last epoch has ended."""

    def __init__(self, folder: Path, generator: random.Random) -> None:
        self.folder, self.generator = folder, generator
        self.launches = 0
        self.phases: collections.Counter[str] = collections.Counter()
        self.slowest = 0.0

    def launch(self, kills: bool) -> bool:
        """Launches both ranks and, if `kills`, kills one of them. Returns whether both
        exited with code 0. Raises AssertionError if a rank doesn't end in time."""
        self.launches += 1
        phase = mmap.mmap(-1, RANKS)
        processes = [
            FORK.Process(target=_work, args=(rank, self.folder, self.launches, phase))
            for rank in range(RANKS)
        ]
        for process in processes:
            process.start()
        if kills:
            self._kill(processes, phase)
        began = time.monotonic()
        for process in processes:
            process.join(TIMEOUT + 40)
            if process.is_alive():
                process.kill()
                raise AssertionError(
                    f"a rank was still running {TIMEOUT + 40} s after the kill"
                )
        if kills:
            self.slowest = max(self.slowest, time.monotonic() - began)
        codes = [process.exitcode for process in processes]
        assert all(code in (0, 3, -signal.SIGKILL) for code in codes), codes
        return codes == [0] * RANKS

    def _kill(self, processes: list, phase: mmap.mmap) -> None:
        """Kills a rank at a random moment of a random phase of its Python code. Because
        steps run asynchronously, the worker may still run an earlier phase at that
        moment."""
        victim = self.generator.randrange(RANKS)
        wanted = self.generator.randrange(len(PHASES) if victim == 0 else 5)
        delay = self.generator.uniform(0, 1 if wanted == 0 else 0.05)
        skipped = self.generator.randrange(6)  # entries into the phase before the kill
        process, inside = processes[victim], False
        while process.is_alive() and (skipped or phase[victim] != wanted):
            if wanted == 0:
                break
            skipped -= inside and phase[victim] != wanted and skipped > 0
            inside = phase[victim] == wanted
            time.sleep(0.0003)
        process.join(delay)
        if process.is_alive():
            self.phases[PHASES[phase[victim]]] += 1
            os.kill(process.pid, signal.SIGKILL)

    def check_files(self) -> None:
        checkpoint = self.folder / "checkpoint.pt"
        if checkpoint.exists():
            state = torch.load(checkpoint, map_location="cpu")
            assert set(state) == {"model", "optimizer", "epoch", "loss"}

    def loss(self) -> float:
        return float((self.folder / "loss").read_text())


def run(kills: int, seed: int, folder: Path) -> dict:
    """Runs jobs until `kills` ranks were killed. Returns the number of kills and of jobs,
    the phases in which ranks were killed, and the longest time until both ranks had
    ended."""
    generator = random.Random(seed)
    undisturbed = Job(folder / "undisturbed", generator)
    undisturbed.folder.mkdir()
    assert undisturbed.launch(kills=False)
    expected = undisturbed.loss()
    phases: collections.Counter[str] = collections.Counter()
    jobs, slowest = 0, 0.0
    while sum(phases.values()) < kills:
        job = Job(folder / f"job{jobs}", generator)
        job.folder.mkdir()
        jobs += 1
        ended = False
        while not ended:
            left = kills - sum(phases.values()) - sum(job.phases.values())
            ended = job.launch(kills=left > 0)
            job.check_files()
        # After a kill that follows the last checkpoint, the next launch writes the loss.
        assert abs(job.loss() - expected) <= 1e-6, (job.loss(), expected, jobs)
        phases += job.phases
        slowest = max(slowest, job.slowest)
    return {
        "kills": sum(phases.values()),
        "jobs": jobs,
        "moments": dict(phases),
        "slowest end in seconds": round(slowest, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--full", action="store_true", help="200 kills instead of 10")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        print(run(200 if options.full else 10, options.seed, Path(folder)))


if __name__ == "__main__":
    main()
