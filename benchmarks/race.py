"""Runs all contenders on one workload, in alternating rounds and separate processes."""

from __future__ import annotations

import mmap
import os
import statistics
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from contenders import Contender, Failed, OthersLoad, Process, Settings, export

# Maximum share of the processors that other processes may use in a clean round.
QUIET = 0.08
# Minimum number of clean rounds for a median.
ENOUGH = 3
LOSS_STEPS = 4
# Maximum relative difference of losses. Rounding errors grow with the steps; a wrong
# gradient causes a far larger difference.
LOSS_TOLERANCE = 1e-3


# Memory that the largest model's first step needs.
FIRST_STEP_BYTES = 1 << 30


def touch_memory() -> None:
    """Touches and frees as much memory as a first step needs, if it is available. The
    host of a virtual machine provides memory at the first touch, and may take freed
    memory back. Providing memory takes ten times as long as clearing it, and would be
    counted as the contender's time."""
    pages = os.sysconf("SC_AVPHYS_PAGES") // 2 * mmap.PAGESIZE
    if pages < FIRST_STEP_BYTES:
        return
    with mmap.mmap(-1, FIRST_STEP_BYTES) as memory:
        memory.madvise(mmap.MADV_HUGEPAGE)
        memory[:: mmap.PAGESIZE] = bytes(FIRST_STEP_BYTES // mmap.PAGESIZE)


@dataclass
class Result:
    """The figures of one contender. Times are in seconds per step, memory in bytes. `host`
    is the processor time of the thread that calls the step; `ops` is 0 for contenders that
    don't trace."""

    contender: str
    failure: str = ""
    version: str = ""
    first_cold: float | None = None
    first_warm: float | None = None
    rounds: list[float] = field(default_factory=list)
    loads: list[float] = field(default_factory=list)
    cpu: float = 0.0
    host: float = 0.0
    ops: float = 0.0
    peak: int = 0
    base: int = 0
    losses: list[float] = field(default_factory=list)
    loss_difference: float = 0.0
    counts: dict[str, int] = field(default_factory=dict)
    late: dict[str, int] = field(default_factory=dict)

    def clean(self) -> list[float]:
        return [t for t, load in zip(self.rounds, self.loads) if load <= QUIET]

    @property
    def is_noisy(self) -> bool:
        return len(self.clean()) < min(ENOUGH, len(self.rounds))

    def seconds(self, minima: bool) -> float:
        """The median of the clean rounds, or, with `minima`, the minimum of all rounds."""
        return min(self.rounds) if minima else statistics.median(self.clean())

    @property
    def spread(self) -> float:
        used = self.clean() or self.rounds
        return (max(used) - min(used)) / statistics.median(used)

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


class Race:
    def __init__(
        self,
        workload: str,
        contenders: list[Contender],
        settings: Settings,
        progress: Callable[[str], None],
    ) -> None:
        self.workload, self.settings = workload, settings
        self.progress = progress
        self.results = {c.name: Result(c.name) for c in contenders}
        self.contenders = contenders
        self.processes: dict[str, Process] = {}

    def _attempt(self, name: str, action: Callable[[], Any]) -> Any:
        """Runs `action`. If the contender fails, removes it from the race and records
        the reason in its result."""
        try:
            return action()
        except Failed as failure:
            self.results[name].failure = str(failure)
            if process := self.processes.pop(name, None):
                process.close()
            return None

    def _start(self, contender: Contender, files: Path) -> None:
        result = self.results[contender.name]
        if contender.name == "jax":
            if not self.settings.jax_python.exists():
                raise Failed("not installed; see docs/benchmarks.md")
            export(self.workload, str(files / "weights.npz"))
        process = Process(contender, self.workload, self.settings, files)
        self.processes[contender.name] = process
        result.version = process.version
        touch_memory()
        first = process.ask("first", limit=180)
        result.first_cold = first["seconds"]
        more = process.ask("losses", steps=LOSS_STEPS, limit=180)
        result.losses = first["losses"] + more["losses"]
        process.ask("round", seconds=0.1)
        process.ask("memory")

    def _start_again(self, contender: Contender, files: Path) -> None:
        """Measures the first step of a new process with a filled disk cache."""
        if not contender.cache_variable:
            return
        process = Process(contender, self.workload, self.settings, files)
        try:
            touch_memory()
            answer = process.ask("first", limit=180)
            self.results[contender.name].first_warm = answer["seconds"]
        finally:
            process.close()

    def _round(self, name: str, seconds: float, first: bool) -> None:
        result = self.results[name]
        load = OthersLoad()
        answer = self.processes[name].ask("round", seconds=seconds, limit=180)
        result.loads.append(load.share(answer["cpu"] * answer["steps"]))
        result.rounds.append(answer["seconds"])
        result.ops = answer["ops"]
        for key in ("cpu", "host"):
            value = answer[key]
            setattr(result, key, value if first else min(getattr(result, key), value))

    def run(self, rounds: int, seconds: float, warm_start: bool) -> list[Result]:
        with tempfile.TemporaryDirectory(prefix="torch_ltc-bench-") as folder:
            files = Path(folder)
            try:
                for contender in self.contenders:
                    self.progress(f"{contender.name}: first steps")
                    self._attempt(
                        contender.name, lambda c=contender: self._start(c, files)
                    )
                    if warm_start and not self.results[contender.name].failure:
                        self._attempt(
                            contender.name,
                            lambda c=contender: self._start_again(c, files),
                        )
                self._all_rounds(rounds, seconds)
            finally:
                for process in self.processes.values():
                    process.close()
        return list(self.results.values())

    def _all_rounds(self, rounds: int, seconds: float) -> None:
        before = {
            name: self._attempt(name, lambda n=name: self.processes[n].ask("end"))
            for name in list(self.processes)
        }
        for number in range(rounds):
            self.progress(f"round {number + 1} of {rounds}")
            names = list(self.processes)
            # The order alternates, so that no contender always runs after the same one.
            for name in names if number % 2 == 0 else reversed(names):
                self._attempt(
                    name,
                    lambda n=name, first=number == 0: self._round(n, seconds, first),
                )
        for name in list(self.processes):
            self._attempt(name, lambda n=name: self._end(n, before[n]["counts"]))
        self._compare_losses()

    def _end(self, name: str, before: dict[str, int]) -> None:
        answer = self.processes[name].ask("end")
        result = self.results[name]
        result.peak, result.base = answer["peak"], answer["base"]
        result.counts = answer["counts"]
        result.late = {
            key: value - before[key]
            for key, value in answer["counts"].items()
            if key not in ("steps", "traced_ops")
        }

    def _compare_losses(self) -> None:
        eager = self.results.get("eager")
        if not eager or not eager.losses:
            return
        for result in self.results.values():
            if result.losses:
                result.loss_difference = max(
                    abs(a - b) / abs(b) for a, b in zip(result.losses, eager.losses)
                )
