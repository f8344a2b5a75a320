"""Compares scripts on device "lazy" with eager CPU, each run in its own process.

    ./dev bench --set scripts    # or: python benchmarks/scripts/compare.py --help
    ./dev bench --set moving     # loops whose sizes and offsets vary between steps

In each round, a script runs in eager, on device "lazy" with an empty disk cache, and on
device "lazy" with the cache that the previous run filled. Times are ratios to eager's time
in the same round; only the column `seconds`, the time of eager's whole run, isn't a ratio.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from catalogue import SETS
from rich.console import Console
from rich.table import Table

RUN = Path(__file__).with_name("run.py")

#: Maximum ratios to eager. For the set "scripts": the time of a whole run with an empty
#: ("whole") and with a filled disk cache ("warm"), the time of a steady step, and peak
#: memory. For the set "moving": the processor time of the first and of the second pass.
GOALS = {
    "scripts": {"whole": 1.0, "warm": 1.0, "step": 1.0, "peak": 1.1},
    "moving": {"first": 1.3, "second": 0.85},
}


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--set", choices=SETS, default="scripts")
    parser.add_argument("--model", nargs="*", help="names, or prefixes of them")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--folder", type=Path, default=Path("runs/scripts"))
    return parser.parse_args(arguments)


def run(name: str, device: str, threads: int, cache: str) -> dict:
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": str(threads),
        "TORCH_LTC_CACHE_DIR": cache,
    }
    command = [sys.executable, str(RUN), name, device, str(threads)]
    answer = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=1800
    )
    if answer.returncode:
        raise RuntimeError(f"{name} on {device}: {answer.stderr[-2000:]}")
    return json.loads(answer.stdout.splitlines()[-1])


def steady(result: dict) -> float:
    """Returns the median time of a step in the second half of the run."""
    steps = result["steps"]
    return statistics.median(steps[len(steps) // 2 :])


def passes(result: dict) -> tuple[float, float]:
    """Returns the processor times of the first and of the second half of the steps."""
    steps = result["cpu_steps"]
    middle = len(steps) // 2
    return sum(steps[:middle]), sum(steps[middle:])


def difference(eager: dict, lazy: dict) -> float:
    """Returns the largest difference of the losses, relative to the largest loss."""
    scale = max(abs(loss) for loss in eager["losses"]) or 1.0
    pairs = zip(eager["losses"], lazy["losses"], strict=True)
    return max(abs(a - b) for a, b in pairs) / scale


def one_round(name: str, threads: int) -> dict:
    with tempfile.TemporaryDirectory() as cache:
        eager = run(name, "cpu", threads, cache)
        cold = run(name, "lazy", threads, cache)
        warm = run(name, "lazy", threads, cache)
    first, second = (a / b for a, b in zip(passes(cold), passes(eager)))
    return {
        "seconds": eager["whole"],
        "first": first,
        "second": second,
        "whole": cold["whole"] / eager["whole"],
        "cpu": cold["cpu"] / eager["cpu"],
        "warm": warm["whole"] / eager["whole"],
        "step": steady(cold) / steady(eager),
        "slowest": max(
            ours / steady(eager) for ours in cold["steps"][2:] or cold["steps"]
        ),
        "peak": cold["peak"] / eager["peak"],
        "difference": difference(eager, cold),
        "metrics": cold["metrics"],
    }


def median(rounds: list[dict]) -> dict:
    figures = {
        key: statistics.median(r[key] for r in rounds)
        for key in rounds[0]
        if key != "metrics"
    }
    return figures | {"metrics": rounds[-1]["metrics"]}


COLUMNS = {
    "scripts": ("seconds", "whole", "cpu", "warm", "step", "slowest", "peak"),
    "moving": (
        "seconds",
        "first",
        "second",
        "whole",
        "warm",
        "step",
        "slowest",
        "peak",
    ),
}
COUNTS = ("compilations", "implicit_syncs", "fallback_calls", "steps")


def table(results: dict[str, dict], columns: tuple[str, ...]) -> Table:
    made = Table(title="Scripts on device lazy, relative to eager CPU")
    for title in ("script", *columns, *COUNTS, "difference"):
        made.add_column(title, justify="left" if title == "script" else "right")
    for name, result in results.items():
        made.add_row(
            name,
            *(f"{result[column]:.2f}" for column in columns),
            *(str(result["metrics"][count]) for count in COUNTS),
            f"{result['difference']:.1e}",
        )
    return made


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    begins = tuple(options.model or [""])
    scripts = SETS[options.set]
    names = [name for name in scripts if name.startswith(begins)]
    if not names:
        raise SystemExit(f"No script has this prefix; scripts: {', '.join(scripts)}")
    console, results = Console(width=160), {}
    for name in names:
        rounds = [one_round(name, options.threads) for _ in range(options.rounds)]
        results[name] = median(rounds)
        console.print(name, json.dumps(results[name]), soft_wrap=True)
    console.print(table(results, COLUMNS[options.set]))
    for figure, goal in GOALS[options.set].items():
        values = [result[figure] for result in results.values()]
        worst = max(results, key=lambda name: results[name][figure])
        console.print(
            f"{figure}: median {statistics.median(values):.2f}, "
            f"worst {results[worst][figure]:.2f} ({worst}), goal {goal}"
        )
    options.folder.mkdir(parents=True, exist_ok=True)
    (options.folder / "results.json").write_text(json.dumps(results, indent=1))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
