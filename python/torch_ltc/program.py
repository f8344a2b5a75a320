"""Presents a traced program to other tools: its MLIR module, inputs and outputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch

from torch_ltc._backend import bindings

#: Stages at which a program is available as MLIR text or bytecode.
MODULE_STAGES = ("torch-raw", "torch", "linalg", "tosa", "stablehlo")
#: Stages at which a program for all sizes is available.
SYMBOLIC_STAGES = ("torch-raw", "torch")


@dataclass(frozen=True)
class TensorSpec:
    """An input or output of a program. Its memory is contiguous and row-major."""

    name: str  # "encoder.layer.0.weight", or ""
    #: In a program for all sizes, None for a size that varies.
    shape: tuple[int | None, ...]
    dtype: torch.dtype
    #: Whether the tensor has a name, like parameters, buffers and optimizer states.
    is_parameter: bool = False
    #: Whether this input isn't read after the run, so that its memory may be reused.
    donatable: bool = False

    @classmethod
    def from_row(cls, row: dict[str, Any]) -> TensorSpec:
        """Converts a row of the bindings' `inputs()` or `outputs()`."""
        return cls(
            name=row["name"],
            shape=tuple(row["sizes"]),
            dtype=getattr(torch, row["dtype"]),
            is_parameter=bool(row["name"]),
            donatable=row.get("donatable", False),
        )

    def __str__(self) -> str:
        dtype = str(self.dtype).removeprefix("torch.")
        sizes = ("?" if size is None else str(size) for size in self.shape)
        text = f"{dtype}[{','.join(sizes)}]"
        return f"{self.name}: {text}" if self.name else text


class SymbolicTrace:
    """A general graph with the interface of a traced program."""

    def __init__(
        self,
        general: Any,
        stage: str,
        legal_ops: tuple[str, ...] = (),
        ranges: Sequence[tuple[str, int, int]] = (),
    ) -> None:
        """Raises RuntimeError if the graph has no symbolic form at this stage."""
        self._general = general
        self.name: str = general.name
        self._ranges = list(ranges)
        self._samples = [
            general.instantiate(values, general.name)
            for values in general.stand_ins()[:2]
        ]
        self.entry: str = self._samples[0].entry
        self.symbolic = self._at(stage, list(legal_ops), bytecode=False)

    def _at(self, stage: str, legal_ops: list[str], bytecode: bool) -> Any:
        return bindings().SymbolicProgram(
            self._general, self._ranges, stage, legal_ops, bytecode
        )

    def inputs(self) -> list[dict[str, Any]]:
        return _unified(*(sample.inputs() for sample in self._samples))

    def outputs(self) -> list[dict[str, Any]]:
        return _unified(*(sample.outputs() for sample in self._samples))

    def scalars(self) -> list[tuple[str, float | None]]:
        sizes = [("int", None)] * len(self.symbolic.parameters())
        return self._samples[0].scalars() + sizes

    def text(self, stage: str, legal_ops: list[str], locations: bool) -> str:
        return self._at(stage, legal_ops, bytecode=False).module().decode()

    def bytecode(self, stage: str, legal_ops: list[str]) -> bytes:
        return self._at(stage, legal_ops, bytecode=True).module()


def _unified(
    rows: list[dict[str, Any]], others: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Returns `rows` with None for each size that differs in `others`."""
    return [
        {
            **row,
            "sizes": [
                a if a == b else None for a, b in zip(row["sizes"], other["sizes"])
            ],
        }
        for row, other in zip(rows, others)
    ]


class Program:
    """A traced program as an MLIR function. The function's arguments are `inputs`, then a
    number for each of `scalars`; its results are `outputs`."""

    def __init__(
        self, traced: Any, stage: str = "torch", legal_ops: tuple[str, ...] = ()
    ) -> None:
        self.traced = traced
        self.stage = stage
        self.legal_ops = legal_ops
        #: The hash of the computation, in hexadecimal: the program's name in all logs and
        #: dumps.
        self.name: str = traced.name
        #: The function's name in the module.
        self.entry: str = "main" if stage == "stablehlo" else traced.entry
        self.inputs = [TensorSpec.from_row(row) for row in traced.inputs()]
        self.outputs = [TensorSpec.from_row(row) for row in traced.outputs()]
        #: Whether this is a program for all sizes: sizes that vary are None in `inputs`
        #: and `outputs`, and `?` in the module.
        self.is_dynamic = isinstance(traced, SymbolicTrace)
        #: The type of each scalar argument: int or float (64 bits). At stages tosa and
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
        return self.traced.bytecode(self.stage, list(self.legal_ops))

    def text_at(self, stage: str, locations: bool = False) -> str:
        """Returns the module at any stage of `MODULE_STAGES` as MLIR text. `locations`:
        whether the text contains `loc(...)`."""
        return self.traced.text(stage, list(self.legal_ops), locations)

    def __repr__(self) -> str:
        return (
            f"Program({self.name[:12]}, stage {self.stage!r}, {len(self.inputs)} "
            f"inputs, {len(self.scalars)} scalars, {len(self.outputs)} outputs)"
        )
