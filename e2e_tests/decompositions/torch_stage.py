"""Writes programs of the torch dialect as text, decomposes them with ltc-opt, and runs
them.

Programs run op by op with torch itself. A decomposition can thus be compared with the op
that it replaces, and the later stages of the compiler aren't involved.
"""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

import torch
from torch_text import (
    DTYPES,
    SCALAR_TYPES,
    FunctionText,
    Parameter,
    schema_type,
    tensor_type,
)

ROOT = Path(__file__).resolve().parents[2]
LTC_OPT = ROOT / "build" / "bin" / "ltc-opt"

# The type of a result that the op's mask excludes.
NO_RESULT = "!torch.vtensor<[0],f32>"


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


def write_program(name: str, arguments: list, results) -> tuple[str, list]:
    """Returns the text of a module that calls op `name`, and the inputs of its function.
    The result types are those of `results`."""
    text = FunctionText()
    schema = overload(name)._schema
    operands = [
        text.value(value, schema_type(argument))
        for argument, value in zip(schema.arguments, arguments, strict=True)
    ]
    names = ", ".join(operand for operand, _ in operands)
    types = ", ".join(kind for _, kind in operands)
    if str(schema.returns[0].type) == "List[Tensor]":
        result = "!torch.list<vtensor>"
        names = text.line(f"torch.{name} {names} : {types} -> {result}")
        name, types = "prim.ListUnpack", result
    results = flat(results)
    kinds = [NO_RESULT if r is None else tensor_type(r) for r in results]
    count = len(results)
    equals = "%r" if count == 1 else f"%r:{count}"
    text.lines.append(
        f"{equals} = torch.{name} {names} : {types} -> {', '.join(kinds)}"
    )
    wanted = [number for number, r in enumerate(results) if r is not None]
    returned = [f"%r#{i}" for i in wanted] if count > 1 else ["%r"]
    module = text.module("f", returned, [kinds[number] for number in wanted])
    return module, text.inputs


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
