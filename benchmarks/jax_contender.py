"""Runs the JAX contender: the whole step is jitted; weights and states are donated.

python jax_contender.py WORKLOAD THREADS WEIGHTS.npz
"""

from __future__ import annotations

import json
import os
import sys

import serving

CHANNEL = serving.open_channel()
NAME, THREADS, WEIGHTS = sys.argv[1], int(sys.argv[2]), sys.argv[3]
# Sets XLA's number of threads, which XLA derives from the processors it may run on.
os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:THREADS])

import jax
import jax.numpy as jnp
import numpy
from jax_models import LOSSES

LEARNING_RATE = 1e-4
LOSS = LOSSES[NAME]


def adamw(weight, gradient, first, second, count):
    first = 0.9 * first + 0.1 * gradient
    second = 0.999 * second + 0.001 * gradient * gradient
    scale = jnp.sqrt(second / (1 - 0.999**count)) + 1e-8
    step = LEARNING_RATE / (1 - 0.9**count)
    return weight * (1 - LEARNING_RATE * 0.01) - step * first / scale, first, second


def step(weights, state, first, second, count, batch):
    (loss, state), gradients = jax.value_and_grad(LOSS, has_aux=True)(
        weights, state, batch
    )
    count = count + 1
    new = {
        k: adamw(weights[k], gradients[k], first[k], second[k], count) for k in weights
    }
    weights, first, second = ({k: v[i] for k, v in new.items()} for i in range(3))
    return weights, state, first, second, count, loss


def main() -> None:
    base = serving.base_memory()
    arrays = numpy.load(WEIGHTS)
    named = {
        key.removeprefix("weight:"): jnp.asarray(arrays[key])
        for key in arrays
        if key.startswith("weight:") and "num_batches" not in key
    }
    state = {k: v for k, v in named.items() if "running_" in k}
    weights = {k: v for k, v in named.items() if k not in state}
    batches = []
    while f"batch:{len(batches)}:0" in arrays:
        keys = [k for k in arrays if k.startswith(f"batch:{len(batches)}:")]
        batches.append(tuple(jnp.asarray(arrays[key]) for key in sorted(keys)))
    zeros = [{k: jnp.zeros_like(v) for k, v in weights.items()} for _ in range(2)]
    values = [weights, state, *zeros, jnp.zeros(())]
    jitted = jax.jit(step, donate_argnums=(0, 1, 2, 3))

    def advance(number: int):
        *values[:], loss = jitted(*values, batches[number % len(batches)])
        return loss

    def finish() -> None:
        jax.block_until_ready(values)

    server = serving.Server(advance, finish, dict, base)
    print(json.dumps({"version": jax.__version__}), file=CHANNEL, flush=True)
    server.serve(CHANNEL)


if __name__ == "__main__":
    main()
