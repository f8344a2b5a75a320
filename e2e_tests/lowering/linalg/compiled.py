"""Compiles and runs a function with `ltc-run`: the whole compiler and the runtime."""

from __future__ import annotations

import subprocess
from pathlib import Path

import torch
from lowering.linalg import native
from lowering.linalg.case_functions import Function
from torch_text import DTYPES

LTC_RUN = native.LTC_OPT.with_name("ltc-run")


def dense(tensor: torch.Tensor) -> str:
    """Returns the tensor as an MLIR attribute."""
    sizes = "".join(f"{size}x" for size in tensor.shape)
    kind = DTYPES[tensor.dtype].replace("si", "i").replace("ui", "i")
    if tensor.numel() == 0:
        return f"dense<> : tensor<{sizes}{kind}>"
    if tensor.dtype is torch.bool:
        text = str(tensor.tolist()).lower()
        return f"dense<{text}> : tensor<{sizes}{kind}>"
    data = tensor.contiguous().flatten().view(torch.uint8).numpy().tobytes()
    return f'dense<"0x{data.hex().upper()}"> : tensor<{sizes}{kind}>'


def with_values(function: Function) -> str:
    """Returns the function's text with the inputs as attributes of its arguments."""
    text = function.text
    tensors, scalars = iter(function.tensors), iter(function.scalars)
    head, rest = text.split(") -> ", 1)
    name, signature = head.split("(", 1)
    arguments = []
    for argument in filter(None, signature.split("%arg")):
        argument = "%arg" + argument.rstrip(", ")
        if "vtensor" in argument:
            value = dense(next(tensors))
        elif "torch.float" in argument:
            value = f"{next(scalars):e} : f64"
        else:
            value = f"{next(scalars)} : i64"
        arguments.append(f"{argument} {{run.value = {value}}}")
    return f"{name}({', '.join(arguments)}) -> {rest}"


def call(function: Function, folder: Path) -> list[torch.Tensor]:
    """Runs the function. Returns its results with the six digits that `ltc-run` prints."""
    program = folder / "program.mlir"
    program.write_text(native.to_linalg(with_values(function)))
    command = [str(LTC_RUN), str(program)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr)
    results = []
    lines = [line for line in done.stdout.splitlines() if line.startswith("output")]
    for line, expected in zip(lines, function.expected, strict=True):
        numbers = [float(word) for word in line.split("]", 1)[1].split(":")[1].split()]
        values = torch.tensor(numbers, dtype=torch.float64)
        results.append(values.reshape(expected.shape).to(expected.dtype))
    return results
