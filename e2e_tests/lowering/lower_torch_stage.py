"""Lowers files of the torch stage to linalg with torch-mlir's own passes. Runs in
torch-mlir's own environment, which has a different LLVM than torch_ltc: never import this
module elsewhere. Prints a line for each file: its name, "ok" or "failed"."""

import sys

from torch_mlir import ir
from torch_mlir.dialects import torch
from torch_mlir.passmanager import PassManager

PIPELINE = (
    "builtin.module(func.func(torch-decompose-complex-ops),"
    "torch-backend-to-linalg-on-tensors-backend-pipeline)"
)

for path in sys.argv[1:]:
    with ir.Context() as context, open(path) as file:
        torch.register_dialect(context)
        module = ir.Module.parse(file.read())
        try:
            PassManager.parse(PIPELINE).run(module.operation)
        except Exception:
            print(path, "failed")
        else:
            print(path, "ok" if "torch." not in str(module) else "failed")
