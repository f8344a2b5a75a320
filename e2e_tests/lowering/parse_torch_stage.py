"""Parses and verifies files with torch-mlir. Runs in torch-mlir's own
environment, which has a different LLVM than torch_ltc: never import this module
elsewhere."""

import sys

from torch_mlir import ir
from torch_mlir.dialects import torch

failed = 0
for path in sys.argv[1:]:
    with ir.Context() as context, open(path) as file:
        torch.register_dialect(context)
        try:
            module = ir.Module.parse(file.read())
            if not module.operation.verify():
                raise ValueError("the verifier rejected it")
        except Exception as error:
            failed += 1
            print(f"{path}: {error}")
print(f"{len(sys.argv) - 1} files, {failed} rejected")
sys.exit(1 if failed else 0)
