"""Writes functions of the torch dialect as text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

DTYPES = {
    torch.float64: "f64",
    torch.float32: "f32",
    torch.float16: "f16",
    torch.bfloat16: "bf16",
    torch.int64: "si64",
    torch.int32: "si32",
    torch.int16: "si16",
    torch.int8: "si8",
    torch.uint8: "ui8",
    torch.bool: "i1",
}
# Values of c10::ScalarType.
SCALAR_TYPES = {
    torch.uint8: 0,
    torch.int8: 1,
    torch.int16: 2,
    torch.int32: 3,
    torch.int64: 4,
    torch.float16: 5,
    torch.float32: 6,
    torch.float64: 7,
    torch.bool: 11,
    torch.bfloat16: 15,
}
# The type of a list's element, for each element type of a schema.
ELEMENTS = {
    "int": "!torch.int",
    "bool": "!torch.bool",
    "float": "!torch.float",
    "Tensor": "!torch.vtensor",
    "Tensor?": "!torch.optional<vtensor>",
}


@dataclass(frozen=True)
class Parameter:
    """A number that is a dynamic scalar of the program, not a constant."""

    value: int | float


def tensor_type(tensor: torch.Tensor) -> str:
    sizes = ",".join(map(str, tensor.shape))
    return f"!torch.vtensor<[{sizes}],{DTYPES[tensor.dtype]}>"


def schema_type(argument: Any) -> str:
    """Returns an argument's type in the syntax of schemas, such as "Tensor?[]"."""
    text = str(argument.type)
    if text.startswith("Optional["):
        return _required(text.removeprefix("Optional[").removesuffix("]")) + "?"
    return _required(text)


def _required(text: str) -> str:
    if text.startswith("List["):
        inner = text.removeprefix("List[").removesuffix("]")
        if inner.startswith("Optional["):
            return inner.removeprefix("Optional[").removesuffix("]") + "?[]"
        return inner + "[]"
    return text


def _float_text(value: float) -> str:
    if value != value or value in (float("inf"), float("-inf")):
        bits = torch.tensor(value, dtype=torch.float64).view(torch.int64).item()
        return f"0x{bits & (2**64 - 1):016X}"
    return f"{value:.17e}"


class FunctionText:
    """Collects the parameters and the lines of one function."""

    def __init__(self) -> None:
        #: The values of the parameters.
        self.inputs: list[Any] = []
        self.signature: list[str] = []
        self.lines: list[str] = []

    def line(self, text: str) -> str:
        """Adds a line with one result; returns its name."""
        name = f"%v{len(self.lines)}"
        self.lines.append(f"{name} = {text}")
        return name

    def constant(self, kind: str, text: str = "") -> tuple[str, str]:
        return self.line(f"torch.constant.{kind} {text}".rstrip()), f"!torch.{kind}"

    def parameter(self, value: Any) -> tuple[str, str]:
        name = f"%arg{len(self.signature)}"
        if isinstance(value, torch.Tensor):
            kind = tensor_type(value)
        else:
            value = value.value
            kind = "!torch.float" if isinstance(value, float) else "!torch.int"
        self.inputs.append(value)
        self.signature.append(f"{name}: {kind}")
        return name, kind

    def list_of(self, values: Any, element: str) -> tuple[str, str]:
        parts = [self.value(v, element) for v in values]
        if element == "Tensor?" and all(v is not None for v in values):
            element = "Tensor"
        names = ", ".join(name for name, _ in parts)
        kinds = ", ".join(kind for _, kind in parts)
        result = f"!torch.list<{ELEMENTS[element].removeprefix('!torch.')}>"
        text = f"torch.prim.ListConstruct {names} : ({kinds}) -> {result}"
        return self.line(text), result

    def value(self, value: Any, kind: str) -> tuple[str, str]:
        """Adds a Python argument of schema type `kind`; returns its SSA name and type."""
        if value is None:
            return self.constant("none")
        if isinstance(value, (torch.Tensor, Parameter)):
            return self.parameter(value)
        if isinstance(value, torch.dtype):
            return self.constant("int", str(SCALAR_TYPES[value]))
        if isinstance(value, (list, tuple)):
            return self.list_of(value, kind.rstrip("?").removesuffix("[]"))
        if isinstance(value, bool) and kind.startswith("bool"):
            return self.constant("bool", "true" if value else "false")
        if isinstance(value, str):
            return self.constant("str", f'"{value}"')
        if isinstance(value, float) or kind.startswith("float"):
            return self.constant("float", _float_text(float(value)))
        return self.constant("int", str(int(value)))

    def module(self, symbol: str, returned: list[str], kinds: list[str]) -> str:
        """Returns the text of a module with the function, which returns these values."""
        types = ", ".join(kinds)
        lines = [*self.lines, f"return {', '.join(returned)} : {types}"]
        body = "\n  ".join(lines)
        head = f"func.func @{symbol}({', '.join(self.signature)}) -> ({types})"
        return f"{head} {{\n  {body}\n}}\n"
