"""Lowers files of the torch stage to linalg with torch-mlir's own passes. Runs in
torch-mlir's own environment, which has another LLVM than ours: never import
this elsewhere.

Prints one line a file: its name, then "ok" or the first op that torch-mlir
couldn't lower."""

import re
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
        except Exception as error:
            op = re.search(r"'(torch\.[\w.]+)'", str(error))
            print(path, op[1] if op else str(error).splitlines()[0])
            continue
        text = str(module)
        print(path, "ok" if "torch." not in text and "linalg." in text else "left")
