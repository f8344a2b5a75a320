"""Compares training steps on device "lazy" with other frameworks.

    ./dev bench                  # or: python benchmarks/bench.py --help
    ./dev bench --set scripts    # whole scripts: benchmarks/scripts
    ./dev bench --set moving     # loops whose sizes and offsets vary between steps
    ./dev bench --set distributed    # several processes: ranks.py
    ./dev bench --set mechanisms     # torch_ltc without one mechanism: mechanisms.py

docs/benchmarks.md explains how to read the output.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path

import contenders as peers
import picture
import torch_ltc
import workloads
from race import QUIET, Race, Result
from rich.console import Console
from rich.table import Table
from verdict import judge, wrong_losses


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--set", choices=workloads.SETS, default="speed")
    parser.add_argument("--model", nargs="*", help="names, or prefixes of them")
    parser.add_argument("--contender", nargs="*", choices=peers.NAMES)
    parser.add_argument(
        "--quick", action="store_true", help="only eager and torch_ltc, few rounds"
    )
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--seconds", type=float, help="of one round (default 0.5)")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument(
        "--minima",
        action="store_true",
        help="compare the minimum of all rounds: for a shared machine",
    )
    parser.add_argument("--jax-python", type=Path, default=peers.JAX_PYTHON)
    parser.add_argument("--folder", type=Path, default=Path("runs/bench"))
    options = parser.parse_args(arguments)
    options.rounds = options.rounds or (3 if options.quick else 7)
    options.seconds = options.seconds or (0.25 if options.quick else 0.5)
    if options.rounds < 1 or options.threads < 1:
        parser.error("--rounds and --threads must be at least 1")
    return options


def chosen_workloads(options: argparse.Namespace) -> list[str]:
    names = [workload.name for workload in workloads.SETS[options.set]]
    if not options.model:
        return names
    found = [n for n in names if any(n.startswith(m) for m in options.model)]
    if not found:
        raise SystemExit(f"No model has this prefix; models: {', '.join(names)}")
    return found


def chosen_contenders(
    options: argparse.Namespace, workload: str
) -> list[peers.Contender]:
    names = options.contender or (peers.QUICK if options.quick else peers.NAMES)
    if not workloads.find(workload).has_jax_twin:
        names = [name for name in names if name != "jax"]
    return [contender for contender in peers.ALL if contender.name in names]


def _optional(value: float | None, form: str) -> str:
    return form.format(value) if value else ""


def rows(results: dict[str, Result], minima: bool):
    """Yields (cells of the row, whether the contender failed) for each contender. The cells
    of a contender that failed are its name and the reason."""
    eager = results.get("eager")
    for result in results.values():
        if result.failure:
            yield [result.contender, result.failure], True
            continue
        usable = minima or not result.is_noisy
        comparable = usable and eager and (minima or not eager.is_noisy)
        seconds = result.seconds(minima) if usable else min(result.rounds)
        traces = result.ops > 0
        ratio = seconds / eager.seconds(minima) if comparable else None
        yield (
            [
                result.contender,
                f"{seconds * 1e3:.3f}" if usable else f"noisy ({seconds * 1e3:.2f})",
                f"{result.spread:.0%}",
                _optional(ratio, "{:.2f}"),
                _optional(result.first_cold, "{:.2f}"),
                _optional(result.first_warm, "{:.2f}"),
                f"{result.cpu * 1e3:.2f}",
                f"{result.host * 1e3:.2f}",
                f"{result.ops:.0f}" if traces else "",
                f"{result.host / result.ops * 1e6:.2f}" if traces else "",
                f"{result.peak / 2**20:.0f}",
                f"{(result.peak - result.base) / 2**20:.0f}",
                f"{result.loss_difference:.0e}",
                " ".join(f"{k}={v}" for k, v in result.late.items() if v),
            ],
            False,
        )


def show(console: Console, workload: str, results: dict[str, Result], minima: bool):
    table = Table(title=workload, title_justify="left", title_style="bold")
    for column in (
        "", "ms", "spread", "/ eager", "first s", "warm s", "cpu ms", "host ms", "ops",
        "us/op", "peak MB", "+MB", "loss diff", "late",
    ):  # fmt: skip
        table.add_column(column, justify="right" if column else "left")
    for cells, failed in rows(results, minima):
        if failed:
            console.print(f"{cells[0]}: {cells[1]}", soft_wrap=True, markup=False)
        else:
            table.add_row(*cells)
    console.print(table)


def save(options: argparse.Namespace, table: dict[str, dict[str, Result]]) -> Path:
    """Writes the times of all rounds (bench.json) and the picture (bench.svg). Returns
    the path of bench.json."""
    options.folder.mkdir(parents=True, exist_ok=True)
    info = {
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "machine": platform.processor() or platform.machine(),
        "processors": os.cpu_count(),
        "threads": options.threads,
        "minima": options.minima,
        "models": {
            workload: [result.as_dict() for result in results.values()]
            for workload, results in table.items()
        },
    }
    path = options.folder / "bench.json"
    path.write_text(json.dumps(info, indent=1) + "\n")
    ratios = {}
    for workload, results in table.items():
        usable = {
            name: result.seconds(options.minima)
            for name, result in results.items()
            if result.rounds and (options.minima or not result.is_noisy)
        }
        if "eager" in usable:
            ratios[workload] = {k: v / usable["eager"] for k, v in usable.items()}
    if ratios:
        title = f"Time of a training step relative to eager, {options.threads} threads"
        picture.draw(ratios, title, options.folder / "bench.svg")
    return path


#: The programs of the sets that bench.py doesn't run itself. Each program has its own
#: options and prints its own table.
PROGRAMS = {
    "scripts": ["scripts/compare.py"],
    "moving": ["scripts/compare.py", "--set", "moving"],
    "distributed": ["ranks.py"],
    "mechanisms": ["mechanisms.py"],
}


def run_program(name: str, arguments: list[str]) -> int:
    program, *options = PROGRAMS[name]
    command = [sys.executable, str(Path(__file__).parent / program)]
    return subprocess.run([*command, *options, *arguments]).returncode


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["--set"] and arguments[1:2] and arguments[1] in PROGRAMS:
        return run_program(arguments[1], arguments[2:])
    options = parse(arguments)
    # If the output goes to a file, use a width at which the table fits.
    console = Console(width=None if sys.stdout.isatty() else 150)
    if torch_ltc.unavailable_reason():
        console.print(torch_ltc.unavailable_reason(), soft_wrap=True)
        return 1
    settings = peers.Settings(options.threads, options.jax_python)
    table: dict[str, dict[str, Result]] = {}
    with console.status("") as status:
        for workload in chosen_workloads(options):

            def progress(text: str, workload: str = workload) -> None:
                status.update(f"{workload}: {text}")

            race = Race(
                workload, chosen_contenders(options, workload), settings, progress
            )
            results = race.run(options.rounds, options.seconds, not options.quick)
            table[workload] = {result.contender: result for result in results}
            show(console, workload, table[workload], options.minima)
    console.print(f"figures: {save(options, table)}", soft_wrap=True)
    status_code = 0
    if wrong := wrong_losses(table):
        console.print(f"Losses differ from eager's: {'; '.join(wrong)}", soft_wrap=True)
        status_code = 1
    results = [r for by_name in table.values() for r in by_name.values() if r.rounds]
    noisy = [result for result in results if result.is_noisy]
    if noisy and not options.minima:
        console.print(
            f"No verdict: in {len(noisy)} of {len(results)} rows other processes used more "
            f"than {QUIET:.0%} of the processors in most rounds. Run it on a quiet "
            "machine, or with --minima.",
            soft_wrap=True,
        )
        return status_code or 3
    for line in judge(table, lambda result: result.seconds(options.minima)):
        console.print(line, soft_wrap=True)
    return status_code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
