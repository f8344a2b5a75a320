"""Measures what each mechanism of torch_ltc saves, by training without it.

    ./dev bench --set mechanisms    # or: python benchmarks/mechanisms.py --help

All variants of a workload run in alternating rounds, each variant in its own process.
Figures are ratios to the step with all mechanisms on: 1.10 means that a step needs 10%
more time or memory without the mechanism. docs/notes/mechanisms.md gives the decisions
based on these figures.
"""

from __future__ import annotations

import argparse
import os
import sys

import workloads
from contenders import COMPILED, Contender, Settings
from race import Race, Result
from rich.console import Console
from rich.table import Table

ALL_ON = "all on"
#: The environment variables that switch each mechanism off.
MECHANISMS = {
    "donation": {"TORCH_LTC_DONATION": "0"},
    "reused traces": {"TORCH_LTC_REUSE_TRACES": "0"},
    "asynchronous steps": {"TORCH_LTC_ASYNC_EXECUTION": "0"},
}


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", nargs="*", help="names, or prefixes of them")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.5, help="of one round")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    return parser.parse_args(arguments)


def contenders() -> list[Contender]:
    def contender(
        name: str, variables: dict[str, str], step: str = "lazy"
    ) -> Contender:
        return Contender(name, "TORCH_LTC_CACHE_DIR", COMPILED | variables, step)

    return [
        contender(ALL_ON, {}),
        *(contender(name, variables) for name, variables in MECHANISMS.items()),
        # Without constant sizes: each step runs the program for all sizes.
        contender("sizes as constants", {}, "lazy general"),
    ]


def cells(results: list[Result]):
    """Yields a row for each variant: ratios of elapsed time, processor time, time of the
    tracing thread, and peak memory. Times are the minima of all rounds, which other
    processes distort least."""
    base = results[0]
    for result in results:
        yield [
            result.contender,
            f"{result.seconds(minima=True) / base.seconds(minima=True):.2f}",
            f"{result.cpu / base.cpu:.2f}",
            f"{result.host / base.host:.2f}",
            f"{result.peak / base.peak:.2f}",
        ]


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    begins = tuple(options.model or [""])
    console = Console(width=None if sys.stdout.isatty() else 150)
    settings = Settings(options.threads)
    for workload in workloads.SPEED:
        if not workload.name.startswith(begins):
            continue
        race = Race(workload.name, contenders(), settings, lambda text: None)
        results = race.run(options.rounds, options.seconds, warm_start=False)
        table = Table(title=workload.name, title_justify="left")
        for title in ("without", "elapsed", "processor", "tracing thread", "peak"):
            table.add_column(title, justify="left" if title == "without" else "right")
        for result in results:
            if result.failure:
                console.print(f"{workload.name}: {result.contender}: {result.failure}")
                return 1
        for row in cells(results):
            table.add_row(*row)
        console.print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
