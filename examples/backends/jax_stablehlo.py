"""Backend "jax": programs in StableHLO, compiled by XLA and run on the CPU.

pip install jax
"""

import jax
import numpy as np
import torch
import torch_ltc
from jax.extend import backend
from jaxlib import _jax, xla_client

jax.config.update("jax_enable_x64", True)  # keeps 64-bit dtypes
_client = backend.get_backend("cpu")
_device = _client.local_devices()[0]
_VIEWS = {torch.bfloat16: (torch.int16, jax.numpy.bfloat16)}  # NumPy has no bfloat16


def compile(program):
    executable = _client.compile_and_load(
        program.text, _jax.DeviceList((_device,)), xla_client.CompileOptions()
    )

    def array(argument):
        if not isinstance(argument, torch.Tensor):  # a number: float64 or int64
            return jax.device_put(np.array(argument), _device)
        if argument.dtype in _VIEWS:
            bits, dtype = _VIEWS[argument.dtype]
            return jax.device_put(argument.view(bits).numpy().view(dtype), _device)
        return jax.device_put(argument.numpy(), _device)

    def run(*arguments):
        values = [array(argument) for argument in arguments]
        results = executable.execute_sharded(values)
        return [
            np.asarray(shards[0])
            for shards in results.disassemble_into_single_device_arrays()
        ]

    return run


torch_ltc.register_backend("jax", compile, stage="stablehlo")
