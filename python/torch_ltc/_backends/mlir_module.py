"""Runs MLIR from other sources with torch_ltc's compiler and runtime."""

from __future__ import annotations

from typing import Any

import torch

from torch_ltc._backend import bindings
from torch_ltc.program import TensorSpec


class CompiledModule:
    """A compiled function. Call it with one CPU tensor for each of `inputs` (or a number
    for an input of rank 0), then one Python number for each of `scalars` ("float" or
    "int"). It returns the list of its outputs, or writes them to `out`. Inputs
    that the program marks `torch_ltc.donatable` may be overwritten. Raises TypeError for a
    wrong number of arguments, RuntimeError for wrong sizes, dtypes or devices."""

    def __init__(self, executable: Any) -> None:
        self._executable = executable
        self.inputs = [TensorSpec.from_row(row) for row in self._executable.inputs()]
        self.outputs = [TensorSpec.from_row(row) for row in self._executable.outputs()]
        self.scalars: list[str] = self._executable.scalars()

    def __call__(
        self,
        *arguments: torch.Tensor | float,
        out: list[torch.Tensor] | None = None,
    ) -> list[torch.Tensor]:
        count = len(self.inputs)
        if len(arguments) != count + len(self.scalars):
            raise TypeError(
                f"The program takes {count} tensors and {len(self.scalars)} numbers, "
                f"but got {len(arguments)} arguments."
            )
        for place, kind in enumerate(self.scalars, count):
            if kind == "int" and not hasattr(arguments[place], "__index__"):
                found = type(arguments[place]).__name__
                raise TypeError(f"Argument {place} must be an int, but got a {found}.")
        tensors = [
            torch.as_tensor(argument, dtype=spec.dtype).contiguous()
            if isinstance(argument, (int, float))
            else argument.contiguous()
            for argument, spec in zip(arguments[:count], self.inputs)
        ]
        if out is None:
            out = [torch.empty(o.shape, dtype=o.dtype) for o in self.outputs]
        self._executable.run(tensors, list(arguments[count:]), out)
        return out


def compile_mlir(module: str | bytes) -> CompiledModule:
    """Compiles a module, given as MLIR text or bytecode, with one function in the torch
    dialect, in TOSA or at the linalg stage. Raises RuntimeError, with the op, if the
    module can't be parsed or lowered."""
    data = module.encode() if isinstance(module, str) else bytes(module)
    return CompiledModule(bindings().compile_module(data))


def bind_program(traced: Any) -> CompiledModule | None:
    """Returns the general executable of a traced program and of earlier programs that
    differ only in sizes, bound to this program's sizes. Returns None for the first of
    these programs, and if they have no general executable."""
    executable = bindings().bind_executable(traced)
    return executable and CompiledModule(executable)
