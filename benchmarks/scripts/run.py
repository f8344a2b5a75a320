"""Runs one script in this process and prints its costs as a JSON object.

python benchmarks/scripts/run.py NAME DEVICE THREADS
"""

from __future__ import annotations

import json
import resource
import sys
import time
from itertools import pairwise

import torch
from catalogue import SETS


def measure(name: str, device: str, threads: int) -> dict:
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    script = next(scripts[name] for scripts in SETS.values() if name in scripts)
    losses, ends, cpu_ends = [], [], []
    cpu, begin = time.process_time(), time.perf_counter()
    for loss in script(device):
        losses.append(loss)
        ends.append(time.perf_counter())
        cpu_ends.append(time.process_time())
    if device == "lazy":
        torch.lazy.synchronize()
    whole = time.perf_counter() - begin
    cpu_begin, cpu = cpu, time.process_time() - cpu
    steps = [after - before for before, after in zip([begin, *ends], ends)]
    cpu_ends = [cpu_begin, *cpu_ends]
    result = {
        "whole": whole,
        "cpu": cpu,
        "steps": steps,
        "cpu_steps": [after - before for before, after in pairwise(cpu_ends)],
        "losses": [float(loss) for loss in losses],
        "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }
    if device == "lazy":
        import torch_ltc

        counted = torch_ltc.metrics()
        names = ("compilations", "implicit_syncs", "fallback_calls", "steps")
        result["metrics"] = {n: counted[n] for n in names}
    return result


if __name__ == "__main__":
    name, device, threads = sys.argv[1:]
    print(json.dumps(measure(name, device, int(threads))))
