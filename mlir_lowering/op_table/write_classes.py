"""Generates the C++ classes of the dialect's ops and their registration."""

INCLUDE = "torch_ltc/Dialect/Torch"

#: The function of namespace `kind` (lib/Dialect/Torch/AtenOps.cpp) for each torch type.
KINDS = {
    "Tensor": "tensor",
    "Tensor?": "optionalTensor",
    "Tensor[]": "tensors",
    "Tensor?[]": "optionalTensors",
    "Scalar": "scalar",
    "Scalar?": "optionalScalar",
    "int": "integer",
    "int?": "optionalInteger",
    "int[]": "integers",
    "int[]?": "optionalIntegers",
    "float": "floating",
    "float?": "optionalFloat",
    "float[]?": "optionalFloats",
    "bool": "boolean",
    "bool?": "optionalBoolean",
    "bool[]": "booleans",
    "str": "string",
    "str?": "optionalString",
    "Device?": "optionalDevice",
    "Generator?": "optionalGenerator",
}
# Enumerations are represented by their integer values.
INTEGER_TYPES = ("SymInt", "ScalarType", "Layout", "MemoryFormat")
#: The declaration that each hook adds to an op's class.
HOOKS = {
    "fold": "mlir::OpFoldResult fold();",
    "canonicalize": "static void getCanonicalizationPatterns("
    "mlir::RewritePatternSet &patterns, mlir::MLIRContext *context);",
    "verify": "llvm::LogicalResult verify();",
}


def kind(argument_type):
    for name in INTEGER_TYPES:
        argument_type = argument_type.replace(name, "int")
    return KINDS[argument_type]


def kinds(types):
    return "{" + ", ".join(f"&kind::{kind(name)}" for name in types) + "}"


def getter(name):
    """The name of an operand's getter: getGradOutput for grad_output."""
    return "get" + "".join(word[:1].upper() + word[1:] for word in name.split("_"))


def dynamic_scalars(positions):
    """Overrides the member of AtenOp that returns these positions."""
    numbers = ", ".join(map(str, positions))
    return [
        "  static llvm::ArrayRef<unsigned> getDynamicScalars() {",
        f"    static constexpr unsigned positions[] = {{{numbers}}};",
        "    return positions;",
        "  }",
    ]


def op_class(row, scalars):
    name = row.class_name
    lines = [
        f"/// `{row.schema}`",
        f"class {name} : public AtenOp<{name}> {{",
        "public:",
        "  using AtenOp::AtenOp;",
        "  static constexpr llvm::StringLiteral getOperationName() {",
        f'    return "torch.{row.emit}";',
        "  }",
    ]
    for index, argument in enumerate(row.arguments):
        body = f"return getOperation()->getOperand({index});"
        lines.append(f"  mlir::Value {getter(argument.name)}() {{ {body} }}")
    single = len(row.result_types) == 1
    for index in range(len(row.result_types)):
        body = f"return getOperation()->getResult({index});"
        suffix = "" if single else index
        lines.append(f"  mlir::Value getResult{suffix}() {{ {body} }}")
    if single:
        lines.append("  mlir::Type getType() { return getResult().getType(); }")
    if scalars:
        lines += dynamic_scalars(scalars)
    lines += [f"  {HOOKS[hook]}" for hook in row.hooks]
    return "\n".join(lines + ["};"])


def family_header(family, rows, scalars_of_op):
    guard = f"TORCH_LTC_DIALECT_TORCH_TORCHOPS_{family.upper()}_H"
    classes = "\n".join(op_class(row, scalars_of_op[row.emit]) for row in rows)
    ids = "\n".join(
        f"MLIR_DECLARE_EXPLICIT_TYPE_ID(mlir::torch_ltc::torch::{row.class_name})"
        for row in rows
    )
    return f"""// Generated from the op table: the ops of the family {family}.
#ifndef {guard}
#define {guard}

#include "{INCLUDE}/AtenOp.h"
#include "{INCLUDE}/TorchOps.h"

namespace mlir::torch_ltc::torch {{
// So that code can use the names of ops, but not those of the dialect's types,
// which are also names of MLIR (FloatType).
inline namespace ops {{
{classes}
}} // namespace ops
}} // namespace mlir::torch_ltc::torch

{ids}

#endif // {guard}
"""


def registration(row):
    name = row.class_name
    parts = [
        "*this",
        f"{name}::getOperationName()",
        f"TypeID::get<{name}>()",
        '"' + " ".join(argument.name for argument in row.arguments) + '"',
        kinds(argument.type for argument in row.arguments),
        kinds(row.result_types),
    ]
    if row.hooks:
        parts.append(f"hooksOf<{name}>()")
    return f"registerAtenOp({', '.join(parts)});"


def op_list(rows_of_family):
    """Returns AtenOps.inc: the includes of the families' headers, the list of classes, and
    the registration of the ops."""
    parts = {
        "ATEN_FAMILIES": [
            f'#include "{INCLUDE}/TorchOps_{family}.h"' for family in rows_of_family
        ],
        "ATEN_OP": [
            f"ATEN_OP({row.class_name})"
            for rows in rows_of_family.values()
            for row in rows
        ],
        "ATEN_REGISTRATION": [
            registration(row) for rows in rows_of_family.values() for row in rows
        ],
    }
    text = "// Generated from the op table. Define the macro of the part you need.\n"
    for macro, lines in parts.items():
        body = "\n".join(lines)
        text += f"#ifdef {macro}\n{body}\n#undef {macro}\n#endif\n"
    return text
