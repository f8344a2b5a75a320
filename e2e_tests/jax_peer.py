"""Runs StableHLO programs with XLA on the CPU, in a Python that has JAX."""

from __future__ import annotations

import os
import pickle
import subprocess
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).resolve().parents[1]

# Bytes with a dtype's name, since numpy has no bfloat16 of its own.
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


def python() -> str:
    """The interpreter with JAX; skips the test if there is none."""
    named = os.environ.get("TORCH_LTC_JAX_PYTHON", "")
    path = Path(named or ROOT / ".venv-jax" / "bin" / "python")
    if not path.exists():
        pytest.skip("TORCH_LTC_JAX_PYTHON doesn't name the Python of an environment")
    return str(path)


def python_path() -> str:
    """PYTHONPATH of a process of ours that can import JAX."""
    where = "import sysconfig; print(sysconfig.get_paths()['purelib'])"
    answer = subprocess.run(
        [python(), "-c", where], capture_output=True, text=True, check=True
    )
    # After our own: the peer's numpy and the like must not replace ours.
    paths = [os.environ.get("PYTHONPATH", ""), answer.stdout.strip()]
    return os.pathsep.join(path for path in paths if path)


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
    """Results of each StableHLO text for its inputs."""
    packed = [(text, [_packed(value) for value in values]) for text, values in programs]
    done = subprocess.run(
        [python(), "-c", SCRIPT], input=pickle.dumps(packed), capture_output=True
    )
    if done.returncode:
        raise AssertionError(done.stderr.decode())
    return [[_unpacked(*o) for o in outputs] for outputs in pickle.loads(done.stdout)]
