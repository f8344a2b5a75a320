"""Runs StableHLO programs with XLA on the CPU, in a Python environment with JAX."""

from __future__ import annotations

import pickle
import subprocess

import torch
from peers import JAX

# Tensors are passed as bytes with the dtype's name, because NumPy has no bfloat16.
SCRIPT = """
import pickle, sys
import jax, numpy
from jax.extend import backend
from jaxlib import _jax, xla_client
jax.config.update("jax_enable_x64", True)
client = backend.get_backend("cpu")
device = client.local_devices()[0]
results = []
for text, values in pickle.load(sys.stdin.buffer):
    program = client.compile_and_load(
        text, _jax.DeviceList((device,)), xla_client.CompileOptions()
    )
    arrays = [
        jax.device_put(
            numpy.frombuffer(data, jax.numpy.dtype(dtype)).reshape(shape), device
        )
        for data, dtype, shape in values
    ]
    shards = program.execute_sharded(arrays).disassemble_into_single_device_arrays()
    outputs = [numpy.asarray(part[0]) for part in shards]
    results.append([(o.tobytes(), o.dtype.name, o.shape) for o in outputs])
pickle.dump(results, sys.stdout.buffer)
"""


def _packed(tensor: torch.Tensor) -> tuple[bytes, str, tuple[int, ...]]:
    name = str(tensor.dtype).removeprefix("torch.")
    data = tensor.detach().contiguous().flatten().view(torch.uint8)
    return data.numpy().tobytes(), name, tuple(tensor.shape)


def _unpacked(data: bytes, dtype: str, shape: tuple[int, ...]) -> torch.Tensor:
    kind = getattr(torch, dtype)
    if not data:
        return torch.empty(shape, dtype=kind)
    return torch.frombuffer(bytearray(data), dtype=kind).reshape(shape)


def run(
    programs: list[tuple[str, list[torch.Tensor]]],
) -> list[list[torch.Tensor]]:
    """Runs each StableHLO text on its inputs. Returns the results of each as CPU
    tensors."""
    packed = [(text, [_packed(value) for value in values]) for text, values in programs]
    done = subprocess.run(
        [JAX.python(), "-c", SCRIPT], input=pickle.dumps(packed), capture_output=True
    )
    if done.returncode:
        raise AssertionError(done.stderr.decode())
    return [[_unpacked(*o) for o in outputs] for outputs in pickle.loads(done.stdout)]
