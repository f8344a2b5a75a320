"""Implements a contender's side of the benchmark's protocol: a request and its answer are
one line of JSON each. This module doesn't import PyTorch, because the JAX contender uses
it as well.

    {"do": "first"}                  runs the first step of the process
    {"do": "losses", "steps": n}     runs n steps, returns their losses
    {"do": "round", "seconds": s}    runs steps for about s seconds, returns their costs
    {"do": "memory"}                 resets the peak memory
    {"do": "end"}                    returns the counters, base and peak memory
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO


def _memory(key: str) -> int:
    """Returns VmRSS or VmHWM of this process in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(key + ":"):
            return int(line.split()[1]) * 1024
    return 0


class Server:
    """Answers the requests. `step(number)` runs a step and returns its loss, an object
    with `item()`; `finish()` waits for all results; `counts()` returns the counters."""

    def __init__(
        self,
        step: Callable[[int], Any],
        finish: Callable[[], None],
        counts: Callable[[], dict[str, Any]],
        base_memory: int,
    ) -> None:
        self.step, self.finish, self.counts = step, finish, counts
        self.number = 0
        self.seconds_per_step = 0.0
        self.base_memory = base_memory

    def _step(self) -> Any:
        loss = self.step(self.number)
        self.number += 1
        return loss

    def first(self) -> dict[str, Any]:
        started = time.perf_counter()
        loss = self._step()
        self.finish()
        seconds = time.perf_counter() - started
        return {"seconds": seconds, "losses": [float(loss.item())]}

    def losses(self, steps: int) -> dict[str, Any]:
        kept = [self._step() for _ in range(steps)]
        losses = [float(loss.item()) for loss in kept]
        self.round(0.0)  # estimates the time of a step if no loss is read
        return {"losses": losses}

    def round(self, seconds: float) -> dict[str, Any]:
        estimate = self.seconds_per_step
        steps = max(2, round(seconds / estimate)) if estimate else 2
        cpu, host = time.process_time(), time.thread_time()
        counts = self.counts()
        started = time.perf_counter()
        for _ in range(steps):
            # The loss isn't kept: faster contenders run more steps, and so would keep
            # more losses in memory.
            self._step()
        self.finish()
        taken = time.perf_counter() - started
        self.seconds_per_step = taken / steps
        after = self.counts()
        return {
            "steps": steps,
            "elapsed": taken,
            "seconds": taken / steps,
            "cpu": (time.process_time() - cpu) / steps,
            "host": (time.thread_time() - host) / steps,
            "ops": (after.get("traced_ops", 0) - counts.get("traced_ops", 0)) / steps,
        }

    def memory(self) -> dict[str, Any]:
        Path("/proc/self/clear_refs").write_text("5")
        return {}

    def end(self) -> dict[str, Any]:
        peak = _memory("VmHWM")
        return {"counts": self.counts(), "peak": peak, "base": self.base_memory}

    def serve(self, channel: TextIO) -> None:
        for line in sys.stdin:
            request = json.loads(line)
            answer = getattr(self, request.pop("do"))(**request)
            print(json.dumps(answer), file=channel, flush=True)


def open_channel() -> TextIO:
    """Returns a stream to the standard output, which is for answers only; redirects what
    libraries print there to stderr."""
    channel = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    return channel


def base_memory() -> int:
    return _memory("VmRSS")
