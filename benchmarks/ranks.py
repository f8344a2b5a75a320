"""Compares training steps of DistributedDataParallel on device "lazy" with eager's.

    ./dev bench --set distributed
    ./dev bench --set distributed --network   # 2 ms delay, 1 Gbit/s

The processes of each device form a group; the rounds of both groups alternate. The last
column is the share of a step's communication during which rank 0 on device "lazy" doesn't
wait. It can't reach 100%: the last bucket is reduced after the last gradient.
"""

from __future__ import annotations

import argparse
import datetime
import itertools
import json
import multiprocessing
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
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
        help="a forwarder between the processes: 2 ms delay, 1 Gbit/s",
    )
    parser.add_argument("--folder", type=Path, default=Path("runs/bench"))
    options = parser.parse_args(arguments)
    if options.network and options.ranks != 2:
        parser.error("--network is for two processes")
    return options


def memory(key: str) -> int:
    """Returns VmRSS or VmHWM of this process in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(key + ":"):
            return int(line.split()[1]) * 1024
    return 0


def join(rank: int, ranks: int, path: str, network: bool):
    """Joins the process group. Returns the store, which must live as long as the group."""
    import torch.distributed as dist
    from slow_network import Network, SlowStore

    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    store = dist.FileStore(path, ranks)
    if network:
        store = SlowStore(store, rank, Network(2e-3, 125e6))
    dist.init_process_group(
        "gloo",
        store=store,
        rank=rank,
        world_size=ranks,
        timeout=datetime.timedelta(minutes=5),
    )
    return store


def seconds_of_buckets(ddp) -> float:
    """Returns the time of a step's reductions when nothing else runs."""
    import torch
    import torch.distributed as dist

    sizes = ddp._get_ddp_logging_data()["rebuilt_bucket_sizes"]
    buckets = [torch.ones(int(size) // 4) for size in sizes.split(",")]
    rounds = []
    for _ in range(5):
        dist.barrier()
        began = time.perf_counter()
        for work in [dist.all_reduce(bucket, async_op=True) for bucket in buckets]:
            work.wait()
        rounds.append(time.perf_counter() - began)
    return min(rounds)


def seconds_of_waits(step: Callable[[], None]) -> float:
    """Returns the time that a step's commands wait for other ranks."""
    import torch_ltc

    with torch_ltc.config(profile_commands=True):
        for _ in range(10):
            step()
        torch_ltc.wait_device_ops()
    return sum(
        row["seconds"] / row["calls"]
        for row in torch_ltc.debug.commands()
        if row["name"] == "torch_ltc.collective_wait"
    )


def serve(
    rank: int, ranks: int, device: str, model: str, threads: int, store: str,
    network: bool, channel: Connection,
) -> None:  # fmt: skip
    """Runs one process of a group, which answers requests on `channel`: n >= 0 runs n
    steps, a negative number measures the communication of a step."""
    os.environ["OMP_NUM_THREADS"] = str(threads)
    import torch
    import torch_ltc
    import workloads

    torch.set_num_threads(threads)
    _store = join(rank, ranks, store, network)
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
    numbers = itertools.cycle(range(len(batches)))

    def step() -> torch.Tensor:
        optimizer.zero_grad()
        loss = workload.loss(ddp, batches[next(numbers)])
        loss.backward()
        optimizer.step()
        return loss

    while True:
        steps = channel.recv()
        if steps < 0:
            exchange = seconds_of_buckets(ddp)
            channel.send((exchange, seconds_of_waits(step) if device == "lazy" else 0))
            continue
        began, began_processor = time.perf_counter(), time.process_time()
        for _ in range(steps):
            loss = step()
        torch_ltc.wait_device_ops()
        seconds = (time.perf_counter() - began) / steps
        processor = (time.process_time() - began_processor) / steps
        value = loss.item()
        torch_ltc.wait_for_compilations()
        channel.send((seconds, processor, value, memory("VmHWM") - base))


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
                    rank, options.ranks, device, model, options.threads, store,
                    options.network, theirs,
                ),
            )  # fmt: skip
            process.start()
            self.channels.append(ours)
            self.processes.append(process)

    def run(self, steps: int) -> tuple[float, float, float, int]:
        """Returns seconds and processor seconds per step (the maximum of all ranks),
        the last loss of rank 0, and the maximum memory of a rank in bytes."""
        replies = self._ask(steps)
        seconds, processors, losses, memories = zip(*replies, strict=True)
        return max(seconds), max(processors), losses[0], max(memories)

    def hidden(self) -> float:
        """Returns the share of a step's communication during which rank 0 doesn't wait."""
        exchange, waits = self._ask(-1)[0]
        return max(0.0, 1 - waits / exchange)

    def _ask(self, request: int) -> list:
        for channel in self.channels:
            channel.send(request)
        return [channel.recv() for channel in self.channels]

    def end(self) -> None:
        # Terminate the processes, because a process whose store is written in Python
        # hangs at exit (torch 2.13).
        for process in self.processes:
            process.terminate()
            process.join()


def compare(options: argparse.Namespace, model: str) -> dict[str, dict]:
    """Returns the results of each device: seconds and processor seconds per step in each
    round, the loss after a fixed number of steps, memory in bytes."""
    with tempfile.TemporaryDirectory() as folder:
        groups = {
            device: Group(options, device, model, str(Path(folder) / device))
            for device in DEVICES
        }
        results: dict[str, dict] = {}
        for device, group in groups.items():
            group.run(STEPS_TO_WARM_UP // 2)
            seconds, _, loss, _ = group.run(STEPS_TO_WARM_UP // 2)
            results[device] = {
                "loss": loss, "rounds": [], "processor": [], "estimate": seconds
            }  # fmt: skip
        for _ in range(options.rounds):
            for device, group in groups.items():
                steps = max(2, round(options.seconds / results[device]["estimate"]))
                seconds, processor, _, peak = group.run(steps)
                results[device]["rounds"].append(seconds)
                results[device]["processor"].append(processor)
                results[device].update(estimate=seconds, memory=peak)
        results["lazy"]["hidden"] = groups["lazy"].hidden()
        for group in groups.values():
            group.end()
    return results


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    console = Console(width=None if sys.stdout.isatty() else 120)
    table = Table(title=f"{options.ranks} processes, {options.threads} threads each")
    for column in (
        "",
        "eager ms",
        "lazy ms",
        "/ eager",
        "processor time",
        "eager +MB",
        "lazy +MB",
        "loss",
        "hidden",
    ):
        table.add_column(column, justify="right" if column else "left")
    figures, wrong = {}, []
    for model in options.model:
        results = figures[model] = compare(options, model)
        eager, lazy = (results[device] for device in DEVICES)
        # The minimum, because other processes can only make a round longer.
        times = [min(result["rounds"]) * 1e3 for result in (eager, lazy)]
        processor = min(lazy["processor"]) / min(eager["processor"])
        difference = abs(lazy["loss"] - eager["loss"]) / abs(eager["loss"])
        if difference > 1e-3:
            wrong.append(model)
        table.add_row(
            model, f"{times[0]:.2f}", f"{times[1]:.2f}", f"{times[1] / times[0]:.2f}",
            f"{processor:.2f}",
            f"{eager['memory'] / 2**20:.0f}", f"{lazy['memory'] / 2**20:.0f}",
            f"{difference:.0e}", f"{lazy['hidden']:.0%}",
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
