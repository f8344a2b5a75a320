"""Trains a convolutional network on handwritten digits on device "lazy".

    ./dev train            # or: python examples/train_digits.py --help

The training loop is ordinary: only the device's name is special. The program ends with a
report about the lazy device, and with a checkpoint that is loaded and verified on the
CPU.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
import torch_ltc
from models.convolutional import DigitsNet
from models.data import digits
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.progress import TimeRemainingColumn as Remaining
from rich.table import Table
from torch import nn
from torch.nn import functional as F

WANTED_ACCURACY = 0.97
TEST_IMAGES = 360
TIMING_ROUNDS = 7
TIMING_STEPS = 10

Batch = tuple[torch.Tensor, torch.Tensor]


@dataclass
class Options:
    epochs: int
    batch: int
    seed: int
    out: Path


def parse(arguments: list[str]) -> Options:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("runs/digits"))
    options = Options(**vars(parser.parse_args(arguments)))
    if options.epochs < 1:
        parser.error("--epochs must be at least 1")
    if not 2 <= options.batch <= 1437:
        parser.error("--batch must be between 2 and 1437, the number of images")
    return options


def split() -> tuple[Batch, Batch]:
    """Returns the training data and the test data, in a fixed random order."""
    images, classes = digits()
    order = torch.randperm(len(images), generator=torch.Generator().manual_seed(1))
    test, train = order[:TEST_IMAGES], order[TEST_IMAGES:]
    return (images[train], classes[train]), (images[test], classes[test])


def batches(data: Batch, size: int) -> Iterator[Batch]:
    """Yields the batches of an epoch in random order, without the incomplete last batch."""
    order = torch.randperm(len(data[0]))
    for start in range(0, len(order) - size + 1, size):
        picked = order[start : start + size]
        yield data[0][picked], data[1][picked]


class Training:
    """Model, optimizer and schedule on one device."""

    def __init__(self, device: str, model: nn.Module, steps: int) -> None:
        self.device = device
        self.model = model.to(device)
        self.optimizer = torch.optim.AdamW(
            self.model.parameters(), lr=3e-3, weight_decay=0.01
        )
        self.schedule = torch.optim.lr_scheduler.CosineAnnealingLR(
            self.optimizer, T_max=steps
        )

    def step(self, batch: Batch) -> torch.Tensor:
        """Makes one update; returns the loss, which is still pending on device "lazy"."""
        images, classes = (tensor.to(self.device) for tensor in batch)
        self.optimizer.zero_grad()
        loss = F.cross_entropy(self.model(images), classes)
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()  # ends the step: the graph is compiled and run
        self.schedule.step()
        return loss.detach()

    @torch.no_grad()
    def logits(self, images: torch.Tensor) -> torch.Tensor:
        """Computes the logits in evaluation mode; returns them on the CPU."""
        self.model.eval()
        result = self.model(images.to(self.device))
        if self.device == "lazy":
            torch_ltc.mark_step()  # because no optimizer ends this step
        self.model.train()
        return result.cpu()


def accuracy(logits: torch.Tensor, classes: torch.Tensor) -> float:
    return (logits.argmax(1) == classes).double().mean().item()


def train(options: Options, console: Console, train_data: Batch, test: Batch):
    """Trains on device "lazy". Returns the Training object, its last test accuracy and its
    number of steps."""
    torch.manual_seed(options.seed)
    per_epoch = len(train_data[0]) // options.batch
    total = per_epoch * options.epochs
    training = Training("lazy", DigitsNet(), total)
    torch_ltc.name_parameters(training.model)
    reached = 0.0
    columns = (
        TextColumn("training"),
        BarColumn(),
        MofNCompleteColumn(),
        Remaining(),
        TextColumn("{task.fields[state]}"),
    )
    with Progress(*columns, console=console) as progress:
        bar = progress.add_task("", total=total, state="compiling the first step")
        for epoch in range(options.epochs):
            losses = []
            for batch in batches(train_data, options.batch):
                losses.append(training.step(batch))
                progress.advance(bar)
            mean = torch.stack([loss.cpu() for loss in losses]).mean().item()
            reached = accuracy(training.logits(test[0]), test[1])
            state = f"epoch {epoch + 1}: loss {mean:.4f}, test accuracy {reached:.2%}"
            progress.update(bar, state=state)
    return training, reached, total


def median_step_times(options: Options, data: Batch) -> dict[str, float]:
    """Returns the median seconds per step on "lazy" and "cpu", measured alternately."""
    torch.manual_seed(options.seed)
    steps = TIMING_ROUNDS * TIMING_STEPS
    twins = {name: Training(name, DigitsNet(), steps) for name in ("lazy", "cpu")}
    batch = next(batches(data, options.batch))
    times: dict[str, list[float]] = {name: [] for name in twins}
    for round_number in range(TIMING_ROUNDS + 1):
        for name, twin in twins.items():
            started = time.perf_counter()
            for _ in range(TIMING_STEPS):
                twin.step(batch)
            torch_ltc.wait_device_ops()
            if round_number:  # the first round warms up
                elapsed = time.perf_counter() - started
                times[name].append(elapsed / TIMING_STEPS)
    return {name: statistics.median(values) for name, values in times.items()}


def save_and_verify(options: Options, training: Training, test: Batch) -> Path:
    """Saves a checkpoint, loads it on the CPU and compares the predictions with the
    original model's."""
    path = options.out / "checkpoint.pt"
    state = {
        "model": training.model.state_dict(),
        "optimizer": training.optimizer.state_dict(),
    }
    torch.save(state, path)
    loaded = torch.load(path, map_location="cpu")
    model = DigitsNet()
    model.load_state_dict(loaded["model"])
    restored = Training("cpu", model, 1)
    restored.optimizer.load_state_dict(loaded["optimizer"])
    expected = training.logits(test[0])
    torch.testing.assert_close(restored.logits(test[0]), expected, rtol=1e-4, atol=1e-4)
    return path


def report(console: Console, rows: list[tuple[str, str]]) -> None:
    table = Table(title="Report", title_justify="left", show_header=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for row in rows:
        table.add_row(*row)
    console.print(table)


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    console = Console()
    if torch_ltc.unavailable_reason():
        console.print(torch_ltc.unavailable_reason(), soft_wrap=True)
        return 1
    options.out.mkdir(parents=True, exist_ok=True)
    dumps = Path(torch_ltc.config.dump or options.out / "dumps")
    train_data, test = split()
    torch_ltc.reset_metrics()
    with torch_ltc.debug.dump_to(dumps):
        training, reached, steps = train(options, console, train_data, test)
    torch_ltc.wait_device_ops()
    counts = torch_ltc.metrics()
    # The counters have already been read, so the copies and the timing below don't count
    # as training.
    checkpoint = save_and_verify(options, training, test)
    times = median_step_times(options, train_data)
    ratio = times["cpu"] / times["lazy"]
    report(
        console,
        [
            ("test accuracy", f"{reached:.2%} of {TEST_IMAGES} images"),
            ("steps", str(steps)),
            ("compilations", str(counts["compilations"])),
            ("programs read from the cache", str(counts["program_disk_hits"])),
            ("fallbacks", str(counts["fallback_calls"])),
            ("implicit syncs", str(counts["implicit_syncs"])),
            ("median step, lazy", f"{times['lazy'] * 1e3:.2f} ms"),
            ("median step, eager CPU", f"{times['cpu'] * 1e3:.2f} ms ({ratio:.2f}x)"),
            ("dumps", os.fspath(dumps)),
            ("checkpoint", f"{checkpoint} (loaded to the CPU and verified)"),
        ],
    )
    if reached < WANTED_ACCURACY:
        console.print(
            f"The accuracy is below {WANTED_ACCURACY:.0%}: train longer (--epochs)."
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
