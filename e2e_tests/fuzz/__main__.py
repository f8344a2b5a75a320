"""Compares the random programs of some seeds with eager, in a subprocess that may crash:

    python -m fuzz --seeds 0-9999 [--loops | --large] [--results results.json] [--shrink]

Prints the failures and, at the end, how many programs agree. Run it in `e2e_tests/`.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m fuzz")
    parser.add_argument("--seeds", required=True, help="first-last")
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument(
        "--loops", dest="kind", action="store_const", const="loops", default="",
        help="training loops, not ops",
    )  # fmt: skip
    kind.add_argument(
        "--large", dest="kind", action="store_const", const="large",
        help="ops on larger tensors",
    )  # fmt: skip
    parser.add_argument("--results", type=Path, help="a JSON file")
    parser.add_argument("--shrink", action="store_true", help="print short programs")
    parser.add_argument("--text", action="store_true", help="print the programs only")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def _span(text: str) -> tuple[int, int]:
    first, _, last = text.partition("-")
    return int(first), int(last or first)


def _drawer(kind: str):
    from fuzz.drawing import draw, draw_large
    from fuzz.loops import draw_loop

    return {"": draw, "large": draw_large, "loops": draw_loop}[kind]


def _worker(first: int, last: int, kind: str) -> None:
    """Prints one line of JSON before and one after each program."""
    from fuzz.comparison import difference

    draw = _drawer(kind)
    for seed in range(first, last + 1):
        print(json.dumps({"seed": seed}), flush=True)
        program = draw(seed)
        found = difference(program)
        ops = [line.op for line in program.lines if line.op]
        print(json.dumps({"seed": seed, "found": found, "ops": ops}), flush=True)


def _sweep(first: int, last: int, kind: str):
    """Yields the result of each seed; a crash of the subprocess is the result of the
    seed that it was running."""
    while first <= last:
        command = [sys.executable, "-m", "fuzz", "--worker", "--seeds", f"{first}-{last}"]  # fmt: skip
        command += [f"--{kind}"] if kind else []
        begun = None
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            for text in process.stdout or ():
                if not text.startswith('{"seed"'):
                    continue
                row = json.loads(text)
                begun = row["seed"] if "found" not in row else None
                first = row["seed"] + 1
                if begun is None:
                    yield row
        if begun is None:
            return
        yield {
            "seed": begun,
            "found": f"the process ended with {process.returncode}",
            "ops": [],
        }


def main() -> None:
    options = _arguments()
    first, last = _span(options.seeds)
    if options.worker:
        _worker(first, last, options.kind)
        return
    if options.text or options.shrink:
        _show(first, last, options.shrink, options.kind)
        return
    agreed, ops, failed, begun = 0, {}, {}, time.monotonic()
    for row in _sweep(first, last, options.kind):
        for name in row["ops"]:
            ops[name] = ops.get(name, 0) + 1
        if row["found"]:
            failed[row["seed"]] = row["found"]
            print(f"seed {row['seed']}: {row['found'][:400]}", flush=True)
        else:
            agreed += 1
        if options.results:
            summary = {
                "seeds": [first, row["seed"]],
                "agreed": agreed,
                "failed": failed,
                "seconds": round(time.monotonic() - begun),
                "ops": ops,
            }
            options.results.write_text(json.dumps(summary, indent=1))
    print(f"{agreed} programs agree, {len(failed)} differ, {len(ops)} ops were drawn")
    sys.exit(1 if failed else 0)


def _show(first: int, last: int, short: bool, kind: str) -> None:
    from fuzz.comparison import difference
    from fuzz.program import Program
    from fuzz.shrinking import shrink

    def fails(program: Program) -> bool:
        try:
            return bool(difference(program))
        except Exception:  # eager rejects a line that needs a removed one
            return False

    draw = _drawer(kind)
    for seed in range(first, last + 1):
        program = draw(seed)
        if short:
            program = shrink(program, fails)
        print(f"# seed {seed}\n{program.text()}\n")
        if short:
            print(f"# {difference(program) or 'agrees'}\n")


if __name__ == "__main__":
    main()
