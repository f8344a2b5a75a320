"""Prints a module that contains each op of the op table once.

Each operand has a type that the schema allows; tensors have unknown sizes, so that they
are valid operands of every op.
"""

import pathlib
import sys

table = pathlib.Path(__file__).parents[3] / "op_table"
sys.path.insert(0, str(table))
sys.dont_write_bytecode = True

import generate

TENSOR = "!torch.vtensor"
TYPES = {
    "Tensor": TENSOR,
    "Tensor?": TENSOR,
    "Tensor[]": "!torch.list<vtensor>",
    "Tensor?[]": "!torch.list<optional<vtensor>>",
    "Scalar": "!torch.float",
    "Scalar?": "!torch.int",
    "int": "!torch.int",
    "int?": "!torch.none",
    "int[]": "!torch.list<int>",
    "int[]?": "!torch.list<int>",
    "float": "!torch.float",
    "float?": "!torch.none",
    "float[]?": "!torch.list<float>",
    "bool": "!torch.bool",
    "bool?": "!torch.bool",
    "bool[]": "!torch.list<bool>",
    "str": "!torch.str",
    "str?": "!torch.str",
    "Device?": "!torch.none",
    "Generator?": "!torch.none",
}


def type_of(schema_type):
    for name in ("SymInt", "ScalarType", "Layout", "MemoryFormat"):
        schema_type = schema_type.replace(name, "int")
    return TYPES[schema_type]


def function_of(index, row):
    types = [type_of(argument.type) for argument in row.arguments]
    # torch-mlir's verifiers require lists of ints to be constructed in place.
    names = [
        "%dims" if t == "!torch.list<int>" else f"%a{i}" for i, t in enumerate(types)
    ]
    results = [type_of(t) for t in row.result_types]
    parameters = ", ".join(f"{n}: {t}" for n, t in zip(names, types) if n != "%dims")
    left = f"%r:{len(results)}" if len(results) > 1 else "%r"
    dims = (
        "  %i0 = torch.constant.int 0\n  %i1 = torch.constant.int 1\n"
        "  %dims = torch.prim.ListConstruct %i0, %i1 : "
        "(!torch.int, !torch.int) -> !torch.list<int>\n"
    )
    return (
        f"func.func @f{index}({parameters}) {{\n{dims}"
        f"  {left} = torch.{row.emit} {', '.join(names)} : "
        f"{', '.join(types)} -> {', '.join(results)}\n  return\n}}"
    )


rows = generate.load_rows(table)
emitted = {row.emit: row for row in rows if row.trace != "random"}
print("\n".join(function_of(i, row) for i, row in enumerate(emitted.values())))
