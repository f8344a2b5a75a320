"""Prints the cost of tracing an op, from C++ and from Python, and of ending a step.

Costs are in nanoseconds for each kind of op, and in microseconds for a step whose program
is in the program cache.

    ninja -C build tracing-cost
    python benchmarks/tracing_cost.py [build] [--device cpu] [--filter TEXT]

Times are the minimum of several runs, because other load can only add time.
"""

from __future__ import annotations

import argparse
import copy
import ctypes
import time
from collections.abc import Callable
from pathlib import Path

import torch
import torch_ltc
from torch import nn

KINDS = [
    "add", "add, chained", "mul by a number", "relu", "mm", "addmm",
    "sum to a number", "view", "transpose", "add_", "mul_ by a number", "addcdiv_",
]  # fmt: skip
# Ops of one run; fewer than the default of `max_trace_ops`, at which a graph is cut.
OPS = 2000
RUNS = 15


def from_cpp(library: ctypes.CDLL, kind: str, device: str) -> float:
    library.tracingCost.restype = ctypes.c_double
    arguments = kind.encode(), device.encode(), ctypes.c_int64(OPS)
    times = []
    for _ in range(RUNS):
        times.append(library.tracingCost(*arguments))
        torch_ltc.mark_step()  # resets the count of pending ops
    if times[0] < 0:
        raise SystemExit(f"tracing_cost.cpp has no {kind!r}: rebuild it")
    return min(times)


def from_python(kind: str, device: str) -> float:
    a, b, weight, state = (torch.ones(8, 8, device=device) for _ in range(4))

    def chain() -> None:
        nonlocal state
        state = state + b

    calls: dict[str, Callable[[], object]] = {
        "add": lambda: a + b,
        "add, chained": chain,
        "mul by a number": lambda: a * 0.5,
        "relu": lambda: torch.relu(a),
        "mm": lambda: torch.mm(a, weight),
        "addmm": lambda: torch.addmm(b, a, weight),
        "sum to a number": lambda: a.sum(),
        "view": lambda: a.view(-1),
        "transpose": lambda: a.t(),
        "add_": lambda: state.add_(b),
        "mul_ by a number": lambda: state.mul_(0.5),
        "addcdiv_": lambda: state.addcdiv_(a, b, value=0.1),
    }
    call = calls[kind]
    times = []
    with torch.no_grad():
        for _ in range(RUNS):
            state = torch.ones(8, 8, device=device)
            started = time.perf_counter_ns()
            for _ in range(OPS):
                call()
            times.append((time.perf_counter_ns() - started) / OPS)
            del state
            state = torch.ones(8, 8, device=device)
            torch_ltc.mark_step()
    return min(times)


def end_of_step(ops: int) -> tuple[float, float]:
    """Ends a step whose program is in the program cache and has `ops` ops and 50 results.
    Returns the microseconds of `mark_step` and those until the program is scheduled."""
    parts = [torch.ones(8, device="lazy") for _ in range(50)]
    calls, times = [], []
    for _ in range(RUNS):
        for number in range(ops):
            parts[number % 50] = parts[number % 50] + parts[0]
        torch_ltc.wait_device_ops()
        started = time.perf_counter_ns()
        torch_ltc.mark_step()
        calls.append((time.perf_counter_ns() - started) / 1e3)
        times.append(torch_ltc.step_log()[-1]["schedule_seconds"] * 1e6)
        torch_ltc.wait_device_ops()
    return min(calls), min(times)


def step_with_source_info(rounds: int = 40) -> tuple[float, float]:
    """Returns the milliseconds for tracing a transformer's training step without and with
    option source_info. The runs alternate, so that both have the same load."""
    layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True)
    model = nn.Sequential(*(copy.deepcopy(layer) for _ in range(4))).to("lazy")
    optimizer = torch.optim.AdamW(model.parameters())
    inputs = torch.randn(4, 8, 32).to("lazy")

    def trace() -> float:
        torch_ltc.wait_device_ops()
        started = time.perf_counter()
        optimizer.zero_grad()
        model(inputs).square().mean().backward()
        optimizer.step()
        return (time.perf_counter() - started) * 1e3

    times: dict[bool, list[float]] = {False: [], True: []}
    for number in range(rounds):
        for on in (False, True):
            with torch_ltc.config(source_info=on):
                trace()  # looks up the lines and modules, which later calls reuse
                if number > 4:
                    times[on].append(trace())
    return min(times[False]), min(times[True])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=Path, nargs="?", default=Path("build"))
    parser.add_argument("--device", default="lazy")
    parser.add_argument("--filter", default="")
    options = parser.parse_args()
    torch.set_num_threads(1)
    library = ctypes.CDLL(str(options.build.resolve() / "bin" / "tracing-cost.so"))
    print(f"{'ns per op, device ' + options.device:28} {'C++':>8} {'Python':>8}")
    for kind in KINDS:
        if options.filter in kind:
            cpp = from_cpp(library, kind, options.device)
            python = from_python(kind, options.device)
            print(f"{kind:28} {cpp:8.0f} {python:8.0f}", flush=True)
    if options.device == "lazy" and not options.filter:
        for ops in (100, 1000):
            call, schedule = end_of_step(ops)
            print(
                f"mark_step, {ops} known ops: {call:.0f} us, of which "
                f"{schedule:.0f} us until the program is scheduled"
            )
        plain, informed = step_with_source_info()
        print(
            f"a transformer's step: {plain:.2f} ms, with source_info {informed:.2f} ms "
            f"({informed / plain - 1:+.1%})"
        )


if __name__ == "__main__":
    main()
