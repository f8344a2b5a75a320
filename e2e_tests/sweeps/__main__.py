"""Sweeps OpInfo entries and writes the outcome of each:

    python -m sweeps results.json [--dtype float32] [--limit 1] [--only regex]

A subprocess sweeps the entries, so that a crash counts as the outcome of one entry and the
sweep continues. Run the command in `e2e_tests/`.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from pathlib import Path


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m sweeps")
    parser.add_argument("results", type=Path)
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--limit", type=int, help="samples of each part")
    parser.add_argument("--only", default="", help="entries that match")
    parser.add_argument("--parts", default="")
    parser.add_argument("--worker", type=int, help=argparse.SUPPRESS)
    return parser.parse_args()


def _worker(options: argparse.Namespace) -> None:
    """Prints one line of JSON for each entry, starting at entry `options.worker`."""
    import dataclasses

    import torch
    from sweeps import opinfo

    dtype = getattr(torch, options.dtype)
    parts = options.parts.split(",") if options.parts else list(opinfo.PARTS)
    if dtype in opinfo.FORWARD_DTYPES and not options.parts:
        parts = ["function"]
    chosen = [
        op
        for op in opinfo.entries(dtype)
        if re.search(options.only, opinfo.entry_name(op))
    ]
    for number, op in enumerate(chosen):
        if number < options.worker:
            continue
        line = {"number": number, "entry": opinfo.entry_name(op)}
        print(json.dumps(line), flush=True)
        line["parts"] = {
            part: dataclasses.asdict(opinfo.sweep_part(op, part, dtype, options.limit))
            for part in parts
        }
        print(json.dumps(line), flush=True)


def main() -> None:
    options = _arguments()
    if options.worker is not None:
        _worker(options)
        return
    found: dict[str, dict] = {}
    start = 0
    while True:
        command = [sys.executable, "-m", "sweeps", *sys.argv[1:], "--worker", str(start)]  # fmt: skip
        begun = None
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            for text in process.stdout or ():
                if not text.startswith('{"number"'):
                    continue
                line = json.loads(text)
                start = line["number"] + 1
                if "parts" in line:
                    found[line["entry"]] = line["parts"]
                    begun = None
                    options.results.write_text(json.dumps(found, indent=1))
                else:
                    begun = line["entry"]
        if begun is not None:
            found[begun] = {
                "function": {
                    "status": "error",
                    "samples": 0,
                    "fallbacks": [],
                    "detail": f"the process ended with {process.returncode}",
                }
            }
        options.results.write_text(json.dumps(found, indent=1))
        if begun is None:
            break


if __name__ == "__main__":
    main()
