"""Parses and verifies the module on stdin with torch-mlir's own dialect.

This runs in a separate process, because torch-mlir contains another copy of MLIR.
"""

import sys

from torch_mlir import ir
from torch_mlir.dialects import torch as torch_dialect

with ir.Context() as context:
    torch_dialect.register_dialect(context)
    module = ir.Module.parse(sys.stdin.read())
    if not module.operation.verify():
        sys.exit("torch-mlir's verifier rejected the module")
    print(
        "accepted by torch-mlir:",
        sum(
            len(function.body.blocks[0].operations)
            for function in module.body.operations
        ),
        "ops",
    )
