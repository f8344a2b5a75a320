"""Calls of single ATen ops as functions of the torch dialect, with eager's results."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch_text import FunctionText, Parameter, schema_type, tensor_type


@dataclass
class Case:
    """A call of an ATen op. `op` is a name like "add.Tensor"; the arguments are those of
    torch.ops.aten. `tolerance` is relative; None requires equal bits (except for the sign
    of zero)."""

    op: str
    args: tuple
    kwargs: dict = field(default_factory=dict)
    tolerance: float | None = None

    @property
    def overload(self) -> Any:
        packet, _, name = self.op.partition(".")
        return getattr(getattr(torch.ops.aten, packet), name or "default")


@dataclass
class Function:
    """The text of a case's function, the inputs, and eager torch's results."""

    text: str
    tensors: list[torch.Tensor]
    scalars: list[int | float]
    expected: list[torch.Tensor]


def _plain(value: Any) -> Any:
    return value.value if isinstance(value, Parameter) else value


def make_function(case: Case, symbol: str) -> Function:
    schema = case.overload._schema
    eager = case.overload(
        *[_plain(v) for v in case.args],
        **{k: _plain(v) for k, v in case.kwargs.items()},
    )
    expected = list(eager) if isinstance(eager, (tuple, list)) else [eager]
    text = FunctionText()
    operands = []
    for position, argument in enumerate(schema.arguments):
        if position < len(case.args):
            value = case.args[position]
        elif argument.name in case.kwargs:
            value = case.kwargs[argument.name]
        else:
            value = argument.default_value
        operands.append(text.value(value, schema_type(argument)))
    results = [tensor_type(tensor) for tensor in expected]
    count = f":{len(expected)}" if len(expected) > 1 else ""
    used = [f"%result#{i}" for i in range(len(expected))] if count else ["%result"]
    text.lines.append(
        f"%result{count} = torch.aten.{case.op.removesuffix('.default')} "
        f"{', '.join(n for n, _ in operands)} : {', '.join(k for _, k in operands)} -> "
        f"{', '.join(results)}"
    )
    return Function(
        text.module(symbol, used, results),
        [value for value in text.inputs if isinstance(value, torch.Tensor)],
        [value for value in text.inputs if not isinstance(value, torch.Tensor)],
        expected,
    )
