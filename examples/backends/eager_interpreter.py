"""Backend "eager-interpreter": runs the torch stage op by op with eager PyTorch (slow)."""

import re
import struct
from ast import literal_eval

import torch
import torch_ltc

DTYPES = {"f64": torch.float64, "f32": torch.float32, "bf16": torch.bfloat16,
          "si64": torch.int64, "si32": torch.int32, "i1": torch.bool}  # fmt: skip
OP = re.compile(r'(?:torch\.operator ")?torch\.([\w.]+)"?\s*(.*)')
VALUE = re.compile(r"%[\w-]+(?:#\d+)?")


def constant(kind, text):
    if kind == "float" and text.startswith("0x"):  # the bits of NaN or an infinity
        return struct.unpack("<d", struct.pack("<Q", int(text, 16)))[0]
    return {"none": lambda _: None, "bool": "true".__eq__}.get(kind, literal_eval)(text)


def call(name, values, dtype):
    if name in ("prim.ListConstruct", "symbolic_int"):  # a symbol's value isn't used
        return values
    if name == "prim.NumToTensor.Scalar":
        return torch.tensor(values[0], dtype=DTYPES[dtype])
    name = re.sub(r"aten\.(_unsafe_)?view", "aten.reshape", name)  # for any strides
    op, overload = (name.split(".") + ["default"])[1:3]
    op = getattr(getattr(torch.ops.aten, op), overload)
    named = {a.name: v for a, v in zip(op._schema.arguments, values) if a.kwarg_only}
    return op(*values[: len(values) - len(named)], **named)


def compile(program):
    steps = []
    for line in program.text.splitlines():
        left, equals, right = line.strip().partition(" = ")
        if equals and (op := OP.match(right)):
            operands = VALUE.findall(op[2].split(" : ")[0])
            dtype = right.rpartition(",")[2].rstrip(">")
            steps.append((VALUE.findall(left), op[1], operands, dtype, op[2]))
    returned = VALUE.findall(program.text.rpartition("return ")[2])

    def run(*arguments):
        values = {f"%arg{i}": value for i, value in enumerate(arguments)}
        for results, name, operands, dtype, text in steps:
            if name.startswith("constant."):
                made = constant(name.split(".")[1], text)
            else:
                made = call(name, [values[operand] for operand in operands], dtype)
            made = made if isinstance(made, tuple) else (made,)
            values.update(zip(results, made))  # %a, %b = ...
            values.update((f"{results[0]}#{i}", v) for i, v in enumerate(made))
        return [values[name] for name in returned]

    return run


torch_ltc.register_backend("eager-interpreter", compile, stage="torch", dynamic=True)
