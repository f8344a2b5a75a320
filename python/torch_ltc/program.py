"""The interface of a traced program to other tools: MLIR, inputs, outputs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch

#: Stages at which a program is available as MLIR text or bytecode.
MODULE_STAGES = ("torch-raw", "torch", "linalg", "tosa", "stablehlo")


@dataclass(frozen=True)
class TensorSpec:
    """An input or output. Its memory is contiguous and row-major."""

    name: str  # "encoder.layer.0.weight", "" if it has none
    shape: tuple[int, ...]
    dtype: torch.dtype
    #: A named tensor: a parameter, a buffer, or a state of an optimizer.
    is_parameter: bool = False
    #: This input isn't read after the run, so its memory may be reused.
    donatable: bool = False

    @classmethod
    def from_row(cls, row: dict[str, Any]) -> TensorSpec:
        """From an entry of the bindings' `inputs()` or `outputs()`."""
        return cls(
            name=row["name"],
            shape=tuple(row["sizes"]),
            dtype=getattr(torch, row["dtype"]),
            is_parameter=bool(row["name"]),
            donatable=row.get("donatable", False),
        )

    def __str__(self) -> str:
        dtype = str(self.dtype).removeprefix("torch.")
        text = f"{dtype}[{','.join(map(str, self.shape))}]"
        return f"{self.name}: {text}" if self.name else text


class Program:
    """One MLIR function. Its arguments are `inputs`, then one number for each of
    `scalars`; its results are `outputs`."""

    def __init__(
        self, traced: Any, stage: str = "torch", legal_ops: tuple[str, ...] = ()
    ) -> None:
        self._traced = traced
        self.stage = stage
        self.legal_ops = legal_ops
        #: Hash of the computation, in hexadecimal: the program's name in all logs and
        #: dumps.
        self.name: str = traced.name
        #: The function's name in the module.
        self.entry: str = "main" if stage == "stablehlo" else traced.entry
        self.inputs = [TensorSpec.from_row(row) for row in traced.inputs()]
        self.outputs = [TensorSpec.from_row(row) for row in traced.outputs()]
        #: Type of each scalar argument: int or float (64 bits). At stages tosa and
        #: stablehlo these arguments are tensors of rank 0.
        self.scalars: list[type] = [
            int if kind == "int" else float for kind, _ in traced.scalars()
        ]

    @cached_property
    def text(self) -> str:
        """The module at `stage` as MLIR text."""
        return self.text_at(self.stage)

    @cached_property
    def bytecode(self) -> bytes:
        """The module at `stage` as MLIR bytecode."""
        return self._traced.bytecode(self.stage, list(self.legal_ops))

    def text_at(self, stage: str, locations: bool = False) -> str:
        """The module at another stage of `MODULE_STAGES`."""
        return self._traced.text(stage, list(self.legal_ops), locations)

    def __repr__(self) -> str:
        return (
            f"Program({self.name[:12]}, stage {self.stage!r}, {len(self.inputs)} "
            f"inputs, {len(self.scalars)} scalars, {len(self.outputs)} outputs)"
        )
