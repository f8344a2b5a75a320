"""Backend "torch-mlir": torch-mlir's own lowering from the torch stage to linalg, then
torch_ltc's compiler. If it computes correct values where torch_ltc doesn't, the error is
in our lowering.

    pip install torch-mlir    # in another environment: it has its own LLVM

TORCH_MLIR_PYTHON selects that environment's Python; the default is the current Python.
"""

import os
import subprocess
import sys

import torch_ltc

LOWER = """
import sys
from torch_mlir import ir
from torch_mlir.dialects import torch
from torch_mlir.passmanager import PassManager
PIPELINE = ("builtin.module(func.func(torch-decompose-complex-ops),"
            "torch-backend-to-linalg-on-tensors-backend-pipeline)")
with ir.Context() as context:
    torch.register_dialect(context)
    module = ir.Module.parse(sys.stdin.read())
    PassManager.parse(PIPELINE).run(module.operation)
    print(module)
"""


def compile(program):
    python = os.environ.get("TORCH_MLIR_PYTHON", sys.executable)
    lowered = subprocess.run(
        [python, "-c", LOWER], input=program.text, capture_output=True, text=True
    )
    if lowered.returncode:
        raise RuntimeError(lowered.stderr.strip())
    return torch_ltc.compile_mlir(lowered.stdout)


# aten ops for which torch-mlir 20261001 has no linalg lowering: they run eagerly.
unsupported = [
    "aten.avg_pool2d_backward",
    "aten.embedding_dense_backward",
    "aten.max_pool2d_with_indices_backward",
    "aten.select_backward",
]
torch_ltc.register_backend("torch-mlir", compile, unsupported_ops=unsupported)
