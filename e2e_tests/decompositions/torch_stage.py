"""Writes programs of the torch dialect as text, decomposes them with ltc-opt, and runs
them.

Programs run op by op with torch itself. A decomposition can thus be compared with the op
that it replaces, and the later stages of the compiler aren't involved.
"""

from __future__ import annotations

import ast
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parents[2]
LTC_OPT = ROOT / "build" / "bin" / "ltc-opt"

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

# The type of a result that the op's mask excludes.
NO_RESULT = "!torch.vtensor<[0],f32>"


@dataclass
class Parameter:
    """A number that is an argument of the program, not a constant."""

    value: float | int


def tensor_type(tensor: torch.Tensor) -> str:
    sizes = ",".join(map(str, tensor.shape))
    return f"!torch.vtensor<[{sizes}],{DTYPES[tensor.dtype]}>"


def overload(name: str):
    """Returns torch's callable for a name such as aten.sum.dim_IntList."""
    parts = name.split(".")
    packet = getattr(getattr(torch.ops, parts[0]), parts[1])
    return getattr(packet, parts[2] if len(parts) > 2 else "default")


def call(name: str, values: list):
    """Calls an op with one value for each argument of its schema."""
    if name == "aten.view":  # in eager, the operand may be non-contiguous
        return values[0].reshape(values[1])
    function = overload(name)
    positional, named = [], {}
    for argument, value in zip(function._schema.arguments, values, strict=True):
        if "ScalarType" in str(argument.real_type) and type(value) is int:
            codes = {code: dtype for dtype, code in SCALAR_TYPES.items()}
            value = codes[value]
        if argument.kwarg_only:
            named[argument.name] = value
        else:
            positional.append(value)
    return function(*positional, **named)


def plain(value):
    """Returns an argument for eager torch, with copies of tensors."""
    if isinstance(value, Parameter):
        return value.value
    if isinstance(value, torch.Tensor):
        return value.clone()
    if isinstance(value, (list, tuple)):
        return [plain(element) for element in value]
    return value


def flat(results) -> list[torch.Tensor | None]:
    """Returns all results as a list, with None for a gradient that wasn't requested."""
    return [results] if isinstance(results, torch.Tensor) else list(results)


class ProgramWriter:
    """Writes the text of a function that calls one op."""

    def __init__(self):
        self.lines: list[str] = []
        self.parameters: list[str] = []
        self.inputs: list = []

    def fresh(self) -> str:
        return f"%v{len(self.lines)}"

    def line(self, text: str, value_type: str) -> tuple[str, str]:
        name = self.fresh()
        self.lines.append(f"  {name} = {text}")
        return name, value_type

    def parameter(self, value, value_type: str) -> tuple[str, str]:
        name = f"%p{len(self.parameters)}"
        self.parameters.append(f"{name}: {value_type}")
        self.inputs.append(value)
        return name, value_type

    def list(self, elements, value_type: str) -> tuple[str, str]:
        written = [self.value(element) for element in elements]
        names = ", ".join(name for name, _ in written)
        types = ", ".join(element_type for _, element_type in written)
        return self.line(
            f"torch.prim.ListConstruct {names} : ({types}) -> {value_type}",
            value_type,
        )

    def value(self, value, schema_type: str = "") -> tuple[str, str]:
        """Writes an argument's value. Returns its name and type."""
        if isinstance(value, torch.Tensor):
            return self.parameter(value, tensor_type(value))
        if isinstance(value, Parameter):
            kind = "int" if isinstance(value.value, int) else "float"
            return self.parameter(value.value, f"!torch.{kind}")
        if value is None:
            return self.line("torch.constant.none", "!torch.none")
        if isinstance(value, torch.dtype):
            value = SCALAR_TYPES[value]
        if isinstance(value, bool):
            return self.line(f"torch.constant.bool {str(value).lower()}", "!torch.bool")
        if isinstance(value, int) and "float" not in schema_type:
            return self.line(f"torch.constant.int {value}", "!torch.int")
        if isinstance(value, (int, float)):
            return self.line(
                f"torch.constant.float {float_text(value)}", "!torch.float"
            )
        if isinstance(value, str):
            return self.line(f'torch.constant.str "{value}"', "!torch.str")
        if any(isinstance(e, torch.Tensor) for e in value):
            optional = any(e is None for e in value)
            return self.list(
                value,
                "!torch.list<optional<vtensor>>"
                if optional
                else "!torch.list<vtensor>",
            )
        kind = "bool" if "bool" in schema_type else "int"
        return self.list(value, f"!torch.list<{kind}>")


def float_text(value: float) -> str:
    if value != value or value in (float("inf"), float("-inf")):
        bits = torch.tensor(float(value), dtype=torch.float64).view(torch.int64)
        return f"0x{int(bits) & (2**64 - 1):016X}"
    text = repr(float(value))
    return text if "." in text else text.replace("e", ".0e")


def write_program(name: str, arguments: list, results) -> tuple[str, list]:
    """Returns the text of a module that calls op `name`, and the inputs of its function.
    The result types are those of `results`."""
    writer = ProgramWriter()
    schema = overload(name)._schema
    operands = [
        writer.value(value, str(argument.type))
        for argument, value in zip(schema.arguments, arguments, strict=True)
    ]
    names = ", ".join(operand for operand, _ in operands)
    types = ", ".join(operand_type for _, operand_type in operands)
    if str(schema.returns[0].type) == "List[Tensor]":
        value_list, _ = writer.line(
            f"torch.{name} {names} : {types} -> !torch.list<vtensor>", ""
        )
        name, names, types = "prim.ListUnpack", value_list, "!torch.list<vtensor>"
    results = flat(results)
    result_types = [NO_RESULT if r is None else tensor_type(r) for r in results]
    made, count = ", ".join(result_types), len(results)
    equals = "%r" if count == 1 else f"%r:{count}"
    writer.lines.append(f"  {equals} = torch.{name} {names} : {types} -> {made}")
    wanted = [number for number, r in enumerate(results) if r is not None]
    returned = ", ".join(f"%r#{i}" for i in wanted) if count > 1 else "%r"
    returned_types = ", ".join(result_types[number] for number in wanted)
    body = "\n".join(writer.lines)
    text = (
        f"func.func @f({', '.join(writer.parameters)}) -> ({returned_types}) {{\n"
        f"{body}\n  return {returned} : {returned_types}\n}}\n"
    )
    return text, writer.inputs


class DecompositionError(Exception):
    pass


def decompose(text: str, legal_ops: str = "") -> str:
    option = f"{{legal-ops={legal_ops}}}" if legal_ops else ""
    pipeline = f"builtin.module(func.func(ltc-mlir-decompose-ops{option}))"
    run = subprocess.run(
        [LTC_OPT, "-", f"--pass-pipeline={pipeline}"],
        input=text,
        capture_output=True,
        text=True,
    )
    if run.returncode != 0:
        raise DecompositionError(f"{run.stderr}\n{text}")
    return run.stdout


def constant(kind: str, text: str):
    if kind == "none":
        return None
    if kind == "bool":
        return text == "true"
    if kind == "str":
        return ast.literal_eval(text)
    if kind == "float" and text.startswith("0x"):
        bits = torch.tensor(int(text, 16), dtype=torch.uint64)
        return float(bits.view(torch.float64))
    return float(text) if kind == "float" else int(text)


# The results of an op have one name and a count, or separate names.
LINE = re.compile(r"\s*(%[\w-]+(?:, %[\w-]+)*)(?::(\d+))? = torch\.([\w.]+)\s*(.*)")


class Evaluator:
    """Runs the only function of a module op by op, and records the names of its ops."""

    def __init__(self, text: str):
        self.text = text
        self.ops: list[str] = []

    def run(self, inputs: list) -> list[torch.Tensor]:
        values = {}
        for number, value in enumerate(inputs):
            values[f"%arg{number}"] = plain(value)
        for line in self.text.splitlines():
            if match := LINE.match(line):
                self.step(values, *match.groups())
            elif match := re.match(r"\s*return (.*) : ", line):
                return [values[name.strip()] for name in match[1].split(",")]
        raise AssertionError("the function has no return")

    def step(self, values, result, count, name, rest):
        if name.startswith("constant."):
            values[result] = constant(name.split(".")[1], rest.strip())
            return
        self.ops.append(name)
        operands, _, types = rest.partition(" : ") if " : " in rest else ("", "", rest)
        operands = [values[o.strip()] for o in operands.split(",") if o.strip()]
        types = types.rpartition("->")[2]
        if name == "prim.ListConstruct":
            values[result] = operands
            return
        if name == "prim.ListUnpack":
            results = operands[0]
        elif name == "prim.NumToTensor.Scalar":
            dtype = next(d for d, t in DTYPES.items() if f",{t}>" in types)
            results = [torch.tensor(operands[0], dtype=dtype)]
        else:
            results = flat(call(name, operands))
        expected = re.findall(r"!torch\.\w+<[^>]*>", types)
        made = [
            said if tensor is None else tensor_type(tensor)  # None: not requested
            for tensor, said in zip(results, expected, strict=True)
        ]
        assert made == expected, f"torch.{name} makes {made}, not {expected}"
        names = [f"{result}#{number}" for number in range(len(results))]
        if count is None:
            names = result.split(", ")
        values.update(zip(names, results, strict=True))
