"""Generates the ODS (TableGen) text of the dialect's ops."""

CONSTRAINTS = {
    "Tensor": "Torch_Tensor",
    "Tensor?": "Torch_OptionalTensor",
    "Tensor[]": "Torch_TensorList",
    "Tensor?[]": "Torch_OptionalTensorList",
    "Scalar": "Torch_Scalar",
    "Scalar?": "Torch_OptionalScalar",
    "int": "Torch_Int",
    "int?": "Torch_OptionalInt",
    "int[]": "Torch_IntList",
    "int[]?": "Torch_OptionalIntList",
    "float": "Torch_Float",
    "float?": "Torch_OptionalFloat",
    "float[]?": "Torch_OptionalFloatList",
    "bool": "Torch_Bool",
    "bool?": "Torch_OptionalBool",
    "bool[]": "Torch_BoolList",
    "str": "Torch_String",
    "str?": "Torch_OptionalString",
    "Device?": "Torch_OptionalDevice",
    "Generator?": "Torch_OptionalGenerator",
}
# Enumerations are represented by their integer values.
INTEGER_TYPES = ("SymInt", "ScalarType", "Layout", "MemoryFormat")


def constraint(argument_type):
    for name in INTEGER_TYPES:
        argument_type = argument_type.replace(name, "int")
    return CONSTRAINTS[argument_type]


def result_names(row):
    count = len(row.result_types)
    return ["result"] if count == 1 else [f"result{i}" for i in range(count)]


def op_definition(row):
    arguments = ",\n    ".join(f"{constraint(a.type)}:${a.name}" for a in row.arguments)
    results = ", ".join(
        f"{constraint(t)}:${n}" for t, n in zip(row.result_types, result_names(row))
    )
    schema = row.schema.replace('"', '\\"')
    lines = [
        f'def Torch_{row.class_name} : Torch_AtenOp<"{row.emit}"> {{',
        f'  let summary = "`{schema}`";',
        f"  let arguments = (ins\n    {arguments});",
        f"  let results = (outs {results});",
    ]
    names = {
        "fold": "hasFolder",
        "canonicalize": "hasCanonicalizer",
        "verify": "hasVerifier",
    }
    lines += [f"  let {names[hook]} = 1;" for hook in row.hooks]
    return "\n".join(lines + ["}"])


def chunk_ods(chunk):
    header = '// Generated from the op table.\ninclude "torch_ltc/Dialect/Torch/TorchBase.td"\n'
    return "\n\n".join([header] + [op_definition(r) for r in chunk.rows]) + "\n"
