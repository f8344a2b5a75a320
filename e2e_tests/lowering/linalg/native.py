"""Compiles functions of the linalg stage with MLIR's own passes (loops, no fusion, no
library) and runs them, so that a wrong value is a bug in the conversion."""

from __future__ import annotations

import ctypes
import os
import subprocess
from pathlib import Path

import torch
from lowering.linalg.case_functions import Function

ROOT = Path(__file__).resolve().parents[3]
LTC_OPT = Path(os.environ.get("LTC_OPT", ROOT / "build" / "bin" / "ltc-opt"))
LLVM_BIN = Path(os.environ.get("LLVM_BIN", "/usr/lib/llvm-22/bin"))

# The second pass expands library calls and removes bounds checks, because both need
# torch_ltc's runtime.
TO_LINALG = [
    "--ltc-mlir-convert-torch-to-linalg",
    "--ltc-mlir-expand-library-calls",
]
TO_LLVM = [
    "--llvm-request-c-wrappers",
    "--one-shot-bufferize=bufferize-function-boundaries "
    "function-boundary-type-conversion=identity-layout-map",
    "--buffer-results-to-out-params=modify-public-functions",
    "--convert-linalg-to-loops",
    "--expand-strided-metadata",
    "--lower-affine",
    "--arith-expand=include-bf16=true",
    "--convert-scf-to-cf",
    "--convert-math-to-llvm",
    "--convert-math-to-libm",
    "--finalize-memref-to-llvm",
    "--convert-func-to-llvm",
    "--convert-arith-to-llvm",
    "--convert-cf-to-llvm",
    "--convert-index-to-llvm",
    "--reconcile-unrealized-casts",
]


def run_tool(command: list[str], source: str = "") -> str:
    done = subprocess.run(command, input=source, capture_output=True, text=True)
    if done.returncode:
        errors = [line for line in done.stderr.splitlines() if "error:" in line]
        raise RuntimeError("\n".join([f"{command[0]} failed:", *errors]))
    return done.stdout


def to_linalg(source: str) -> str:
    return run_tool([str(LTC_OPT), *TO_LINALG], source)


def compile_module(source: str, folder: Path) -> ctypes.CDLL:
    """Returns a shared library with one symbol for each function of the torch-dialect
    module."""
    lowered = run_tool([str(LTC_OPT), *TO_LINALG, *TO_LLVM], source)
    llvm_ir = run_tool([str(LLVM_BIN / "mlir-translate"), "--mlir-to-llvmir"], lowered)
    assembly, library = folder / "cases.s", folder / "cases.so"
    llc = [str(LLVM_BIN / "llc"), "-O1", "-relocation-model=pic", "-mcpu=native"]
    run_tool([*llc, "-o", str(assembly)], llvm_ir)
    # Copies of non-contiguous buffers call memrefCopy, which this library defines.
    runtime = LLVM_BIN.parent / "lib" / "libmlir_c_runner_utils.so"
    link = ["gcc", "-shared", "-o", str(library), str(assembly), str(runtime)]
    run_tool([*link, f"-Wl,-rpath,{runtime.parent}", "-lm"])
    return ctypes.CDLL(str(library))


def descriptor(tensor: torch.Tensor) -> ctypes.Array:
    """Returns the struct that represents a contiguous tensor as a memref: two pointers,
    offset, sizes, strides."""
    pointer = tensor.data_ptr()
    words = [pointer, pointer, 0, *tensor.shape, *tensor.stride()]
    return (ctypes.c_int64 * len(words))(*words)


def call(library: ctypes.CDLL, symbol: str, function: Function) -> list[torch.Tensor]:
    """Calls the compiled function `symbol`; returns its results in order."""
    outputs = [torch.empty(t.shape, dtype=t.dtype) for t in function.expected]
    # Inputs are copied, because bufferization treats a function's arguments as writable.
    inputs = [t.clone(memory_format=torch.contiguous_format) for t in function.tensors]
    arguments: list = []
    tensors, scalars = iter(inputs), iter(function.scalars)
    for part in function.text.split("(", 1)[1].split(") -> ")[0].split("%arg")[1:]:
        if "vtensor" in part:
            arguments.append(descriptor(next(tensors)))
        elif "torch.float" in part:
            arguments.append(ctypes.c_double(next(scalars)))
        else:
            arguments.append(ctypes.c_int64(next(scalars)))
    arguments += [descriptor(t) for t in outputs]
    entry = getattr(library, f"_mlir_ciface_{symbol}")
    entry.restype = None
    entry(*arguments)
    return outputs
