"""Training steps of DistributedDataParallel on device "lazy" compared with eager's.

    ./dev bench --set distributed
    ./dev bench --set distributed --network   # as root: 2 ms delay, 1 Gbit/s

Each device has separate processes, which form a group; their rounds alternate.
"""

from __future__ import annotations

import argparse
import datetime
import json
import multiprocessing
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from multiprocessing.connection import Connection
from pathlib import Path

from rich.console import Console
from rich.table import Table

MODELS = {"MLP": "perceptron 784", "ResNet-18": "ResNet-18", "BERT-like": "BERT-like"}
DEVICES = ("cpu", "lazy")
STEPS_TO_WARM_UP = 12


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n")[0], allow_abbrev=False
    )
    parser.add_argument("--model", nargs="*", choices=MODELS, default=list(MODELS))
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1, help="of one round")
    parser.add_argument("--threads", type=int, default=1, help="of each process")
    parser.add_argument(
        "--network",
        action="store_true",
        help="in a network namespace with 2 ms delay and 1 Gbit/s (as root)",
    )
    parser.add_argument("--folder", type=Path, default=Path("runs/bench"))
    return parser.parse_args(arguments)


def memory(key: str) -> int:
    """Bytes: VmRSS or VmHWM of this process."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(key + ":"):
            return int(line.split()[1]) * 1024
    return 0


def serve(
    rank: int, ranks: int, device: str, model: str, threads: int, store: str,
    channel: Connection,
) -> None:  # fmt: skip
    """A process of a group: runs the requested number of steps."""
    os.environ["OMP_NUM_THREADS"] = str(threads)
    import torch
    import torch.distributed as dist
    import torch_ltc
    import workloads

    torch.set_num_threads(threads)
    dist.init_process_group(
        "gloo",
        init_method=f"file://{store}",
        rank=rank,
        world_size=ranks,
        timeout=datetime.timedelta(minutes=5),
    )
    workload = workloads.find(MODELS[model])
    base = memory("VmRSS")
    ddp = torch.nn.parallel.DistributedDataParallel(
        workload.model().to(device), gradient_as_bucket_view=True
    )
    optimizer = torch.optim.AdamW(ddp.parameters(), lr=workloads.LEARNING_RATE)
    batches = [
        tuple(tensor.to(device) for tensor in workload.batch(4 * rank + number))
        for number in range(workloads.BATCHES)
    ]
    done = 0
    while steps := channel.recv():
        began = time.perf_counter()
        for _ in range(steps):
            optimizer.zero_grad()
            loss = workload.loss(ddp, batches[done % len(batches)])
            loss.backward()
            optimizer.step()
            done += 1
        torch_ltc.wait_device_ops()
        seconds = (time.perf_counter() - began) / steps
        value = loss.item()
        torch_ltc.wait_for_compilations()
        channel.send((seconds, value, memory("VmHWM") - base))
    dist.destroy_process_group()


class Group:
    """The processes of one device."""

    def __init__(self, options: argparse.Namespace, device: str, model: str, store):
        spawn = multiprocessing.get_context("spawn")
        self.channels, self.processes = [], []
        for rank in range(options.ranks):
            ours, theirs = spawn.Pipe()
            process = spawn.Process(
                target=serve,
                args=(
                    rank, options.ranks, device, model, options.threads, store, theirs,
                ),
                daemon=True,
            )  # fmt: skip
            process.start()
            self.channels.append(ours)
            self.processes.append(process)

    def run(self, steps: int) -> tuple[float, float, int]:
        """Seconds per step, the last loss of rank 0, the maximum memory of a rank."""
        for channel in self.channels:
            channel.send(steps)
        replies = [channel.recv() for channel in self.channels]
        return max(r[0] for r in replies), replies[0][1], max(r[2] for r in replies)

    def end(self) -> None:
        for channel in self.channels:
            channel.send(0)
        for process in self.processes:
            process.join()


def compare(options: argparse.Namespace, model: str) -> dict[str, dict]:
    """By device: seconds of each round, loss after the same steps, memory."""
    with tempfile.TemporaryDirectory() as folder:
        groups = {
            device: Group(options, device, model, str(Path(folder) / device))
            for device in DEVICES
        }
        results: dict[str, dict] = {}
        for device, group in groups.items():
            group.run(STEPS_TO_WARM_UP // 2)
            seconds, loss, _ = group.run(STEPS_TO_WARM_UP // 2)
            results[device] = {"loss": loss, "rounds": [], "estimate": seconds}
        for _ in range(options.rounds):
            for device, group in groups.items():
                steps = max(2, round(options.seconds / results[device]["estimate"]))
                seconds, _, peak = group.run(steps)
                results[device]["rounds"].append(seconds)
                results[device].update(estimate=seconds, memory=peak)
        for group in groups.values():
            group.end()
    return results


def in_slow_network(arguments: list[str]) -> int:
    """The same in a namespace whose only interface is slow."""
    if os.geteuid() or not shutil.which("tc") or not shutil.which("unshare"):
        print("--network needs root, unshare and tc", file=sys.stderr)
        return 1
    probe = ["unshare", "-n", "tc", "qdisc", "add", "dev", "lo", "root", "netem"]
    if subprocess.run([*probe, "delay", "2ms"], capture_output=True).returncode:
        print("skipped: the kernel can't delay packets (no netem)", file=sys.stderr)
        return 0
    script = "ip link set lo up && tc qdisc add dev lo root netem delay 2ms rate 1gbit"
    script += ' && exec "$0" "$@"'
    command = [sys.executable, __file__, *(a for a in arguments if a != "--network")]
    return subprocess.run(["unshare", "-n", "bash", "-c", script, *command]).returncode


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    if options.network:
        return in_slow_network(arguments)
    console = Console(width=None if sys.stdout.isatty() else 120)
    table = Table(title=f"{options.ranks} processes, {options.threads} threads each")
    for column in (
        "",
        "eager ms",
        "lazy ms",
        "/ eager",
        "eager +MB",
        "lazy +MB",
        "loss",
    ):
        table.add_column(column, justify="right" if column else "left")
    figures, wrong = {}, []
    for model in options.model:
        results = figures[model] = compare(options, model)
        eager, lazy = (results[device] for device in DEVICES)
        # The minimum: other processes only add to a round.
        times = [min(result["rounds"]) * 1e3 for result in (eager, lazy)]
        difference = abs(lazy["loss"] - eager["loss"]) / abs(eager["loss"])
        if difference > 1e-3:
            wrong.append(model)
        table.add_row(
            model, f"{times[0]:.2f}", f"{times[1]:.2f}", f"{times[1] / times[0]:.2f}",
            f"{eager['memory'] / 2**20:.0f}", f"{lazy['memory'] / 2**20:.0f}",
            f"{difference:.0e}",
        )  # fmt: skip
    console.print(table)
    ratios = [
        min(r["lazy"]["rounds"]) / min(r["cpu"]["rounds"]) for r in figures.values()
    ]
    console.print(f"geometric mean: {statistics.geometric_mean(ratios):.2f} of eager")
    options.folder.mkdir(parents=True, exist_ok=True)
    path = options.folder / "distributed.json"
    machine = platform.processor() or platform.machine()
    path.write_text(json.dumps({"machine": machine, "models": figures}, indent=1))
    console.print(f"figures: {path}", soft_wrap=True)
    if wrong:
        console.print(f"Losses differ from eager's: {', '.join(wrong)}")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
