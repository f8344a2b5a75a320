"""Builds a torch-dialect function that calls one ATen op."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch

DTYPES = {
    torch.float32: "f32",
    torch.float64: "f64",
    torch.bfloat16: "bf16",
    torch.float16: "f16",
    torch.int64: "si64",
    torch.int32: "si32",
    torch.int16: "si16",
    torch.int8: "si8",
    torch.uint8: "ui8",
    torch.bool: "i1",
}


@dataclass(frozen=True)
class Parameter:
    """A number that is a dynamic scalar of the program, not a constant."""

    value: int | float


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


def tensor_type(tensor: torch.Tensor) -> str:
    sizes = ",".join(str(size) for size in tensor.shape)
    return f"!torch.vtensor<[{sizes}],{DTYPES[tensor.dtype]}>"


class FunctionText:
    """Collects arguments and constants of one function."""

    def __init__(self) -> None:
        self.tensors: list[torch.Tensor] = []
        self.scalars: list[int | float] = []
        self.signature: list[str] = []
        self.lines: list[str] = []
        self.names = 0

    def name(self) -> str:
        self.names += 1
        return f"%v{self.names}"

    def constant(self, kind: str, text: str) -> tuple[str, str]:
        name = self.name()
        self.lines.append(f"{name} = torch.constant.{kind} {text}".rstrip())
        return name, f"!torch.{kind}"

    def parameter(self, value: Any) -> tuple[str, str]:
        name = f"%arg{len(self.signature)}"
        if isinstance(value, torch.Tensor):
            self.tensors.append(value)
            kind = tensor_type(value)
        else:
            self.scalars.append(value.value)
            kind = "!torch.float" if isinstance(value.value, float) else "!torch.int"
        self.signature.append(f"{name}: {kind}")
        return name, kind

    def list_of(self, values: Any, element: str) -> tuple[str, str]:
        parts = [self.value(v, element) for v in values]
        kind = {
            "int": "!torch.int",
            "bool": "!torch.bool",
            "float": "!torch.float",
            "Tensor": "!torch.vtensor",
            "Tensor?": "!torch.optional<vtensor>",
        }[element]
        if element == "Tensor?" and all(v is not None for v in values):
            kind = "!torch.vtensor"
        short = kind.removeprefix("!torch.")
        name = self.name()
        names = ", ".join(n for n, _ in parts)
        kinds = ", ".join(k for _, k in parts)
        self.lines.append(
            f"{name} = torch.prim.ListConstruct {names} : ({kinds}) -> !torch.list<{short}>"
        )
        return name, f"!torch.list<{short}>"

    def value(self, value: Any, kind: str) -> tuple[str, str]:
        """Adds a Python argument of schema type `kind`; returns its SSA name and type."""
        if value is None:
            return self.constant("none", "")
        if isinstance(value, (torch.Tensor, Parameter)):
            return self.parameter(value)
        if isinstance(value, torch.dtype):
            return self.constant("int", str(_dtype_number(value)))
        if isinstance(value, (list, tuple)):
            return self.list_of(value, kind.rstrip("?").removesuffix("[]"))
        if isinstance(value, bool) and kind.startswith("bool"):
            return self.constant("bool", "true" if value else "false")
        if isinstance(value, str):
            return self.constant("str", f'"{value}"')
        if isinstance(value, float) or kind.startswith("float"):
            return self.constant("float", _float_text(float(value)))
        return self.constant("int", str(int(value)))


def _dtype_number(dtype: torch.dtype) -> int:
    order = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64,
             torch.float16, torch.float32, torch.float64)  # fmt: skip
    return {torch.bool: 11, torch.bfloat16: 15}.get(dtype) or order.index(dtype)


def _float_text(value: float) -> str:
    if value != value or value in (float("inf"), float("-inf")):
        bits = torch.tensor(value, dtype=torch.float64).view(torch.int64).item()
        return f"0x{bits & (2**64 - 1):016X}"
    return f"{value:.17e}"


def _schema_kind(argument: Any) -> str:
    text = str(argument.type)
    if text.startswith("Optional["):
        return _plain_kind(text.removeprefix("Optional[").removesuffix("]")) + "?"
    return _plain_kind(text)


def _plain_kind(text: str) -> str:
    if text.startswith("List["):
        inner = text.removeprefix("List[").removesuffix("]")
        if inner.startswith("Optional["):
            return inner.removeprefix("Optional[").removesuffix("]") + "?[]"
        return inner + "[]"
    return text


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
        operands.append(text.value(value, _schema_kind(argument)))
    results = ", ".join(tensor_type(t) for t in expected)
    count = f":{len(expected)}" if len(expected) > 1 else ""
    name = case.op.removesuffix(".default")
    used = [f"%result#{i}" for i in range(len(expected))] if count else ["%result"]
    text.lines.append(
        f"%result{count} = torch.aten.{name} {', '.join(n for n, _ in operands)} : "
        f"{', '.join(k for _, k in operands)} -> {results}"
    )
    text.lines.append(f"return {', '.join(used)} : {results}")
    body = "\n  ".join(text.lines)
    head = f"func.func @{symbol}({', '.join(text.signature)}) -> ({results})"
    return Function(f"{head} {{\n  {body}\n}}\n", text.tensors, text.scalars, expected)
