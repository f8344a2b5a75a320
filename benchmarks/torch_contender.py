"""Runs a PyTorch contender: trains one workload on request."""

from __future__ import annotations

import argparse
import json

import serving

CHANNEL = serving.open_channel()

import torch
from training_steps import STEPS
from workloads import BATCHES, Workload, find


def _export(workload: Workload, path: str) -> None:
    """Writes weights and batches to `path`, for contenders without PyTorch."""
    import numpy

    arrays = {
        f"weight:{k}": v.numpy() for k, v in workload.model().state_dict().items()
    }
    for number in range(BATCHES):
        for index, tensor in enumerate(workload.batch(number)):
            arrays[f"batch:{number}:{index}"] = tensor.numpy()
    numpy.savez(path, **arrays)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("contender", choices=STEPS)
    parser.add_argument("workload")
    parser.add_argument("threads", type=int)
    parser.add_argument("--export")
    options = parser.parse_args()
    workload = find(options.workload)
    if options.export:
        return _export(workload, options.export)
    torch.set_num_threads(options.threads)
    base = serving.base_memory()
    contender = STEPS[options.contender](workload)
    batches = [contender.place(workload.batch(number)) for number in range(BATCHES)]
    torch.manual_seed(1)
    server = serving.Server(
        lambda number: contender.step(batches[number % BATCHES]),
        contender.finish,
        contender.counts,
        base,
    )
    print(json.dumps({"version": torch.__version__}), file=CHANNEL, flush=True)
    server.serve(CHANNEL)


if __name__ == "__main__":
    main()
