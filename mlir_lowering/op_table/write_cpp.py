"""Generates lists of ops, as C++ macros, from the op table."""

import op_schema


def camel(name):
    return "".join(word.capitalize() for word in name.split("_"))


def lower_camel(name):
    """The name of a member: gradOutput for grad_output."""
    return name[0] + camel(name)[1:]


def missing_ops(rows):
    names = sorted({row.emit for row in rows if not row.torch_mlir})
    lines = [f'TORCH_MLIR_MISSING_OP("torch.{name}")' for name in names]
    return "// Generated from the op table.\n" + "\n".join(lines) + "\n"


def elementwise_rows(rows):
    """Returns one row for each op that a scalar builder lowers."""
    distinct = {}
    for row in rows:
        if row.family == "elementwise" and row.lower not in op_schema.STRUCTURED:
            distinct.setdefault(row.emit, row)
    return distinct.values()


def arguments_of_builder(builder, rows):
    """Returns the names of the arguments that all rows of a scalar builder have; one row has
    no others."""
    lists = [[argument.name for argument in row.arguments] for row in rows]
    names = min(lists, key=len)
    for row, others in zip(rows, lists):
        if others[: len(names)] != names:
            raise op_schema.TableError(
                f"{row.schema}: another row with lower = '{builder}' has the arguments "
                + ", ".join(names)
            )
    return names


def scalar_builders(rows):
    """Returns, for each scalar builder, a struct of its arguments and its declaration."""
    rows_of_builder = {}
    for row in elementwise_rows(rows):
        rows_of_builder.setdefault(row.lower, []).append(row)
    text = "// Generated from the op table: scalar builders and their arguments.\n"
    for builder, same in rows_of_builder.items():
        names = [lower_camel(name) for name in arguments_of_builder(builder, same)]
        values = ", ".join(f"{name}{{operands[{i}]}}" for i, name in enumerate(names))
        struct = f"{camel(builder)}Arguments"
        text += f"""struct {struct} {{
  Argument {", ".join(names)};
  explicit {struct}(ValueRange operands) : {values} {{}}
}};
Value emit{camel(builder)}(ElementwiseBody &s, {struct} args);
"""
    return text


def elementwise_table(rows):
    """Returns one ELEMENTWISE_OP(op name, scalar builder, dtype rule, divides) for each op
    that a scalar builder lowers."""
    lines = []
    for row in elementwise_rows(rows):
        divides = str("divides" in row.flags).lower()
        lines.append(
            f'ELEMENTWISE_OP("{row.emit}", {camel(row.lower)}, {row.dtype}, {divides})'
        )
    return "// Generated from the op table.\n" + "\n".join(lines) + "\n"


def lowered_ops(rows):
    """Returns one LOWERED_OP for each op that is lowered without a decomposition."""
    names = sorted({row.emit for row in rows if row.lower not in ("decompose", "none")})
    lines = [f'LOWERED_OP("{name}")' for name in names]
    return "// Generated from the op table.\n" + "\n".join(lines) + "\n"


def scalar_positions(row):
    names = {*row.varies, *row.parameters}
    return [i for i, a in enumerate(row.arguments) if a.name in names]


def scalars_of_ops(rows):
    """Returns, by op, the positions of the arguments that may be dynamic scalars in any of
    the op's rows."""
    positions = {}
    for row in rows:
        positions.setdefault(row.emit, set()).update(scalar_positions(row))
    return {op: sorted(numbers) for op, numbers in positions.items()}


def host_ops(rows):
    """Returns one HOST_OP(op, positions...) for each op that PyTorch's kernel computes,
    with the positions of the arguments that may be dynamic scalars."""
    calls = {
        (f'"{row.emit}"', *map(str, scalar_positions(row)))
        for row in rows
        if row.lower == "host"
    }
    lines = [f"HOST_OP({', '.join(call)})" for call in sorted(calls)]
    return "// Generated from the op table.\n" + "\n".join(lines) + "\n"


def list_result_ops(rows):
    names = sorted({row.emit for row in rows if row.result_types == ["Tensor[]"]})
    lines = [f'LIST_RESULT_OP("torch.{name}")' for name in names]
    return "// Generated from the op table.\n" + "\n".join(lines) + "\n"


def varying_lists(rows):
    """Returns one VARYING_LIST(op, position) for each list of ints that may be dynamic
    scalars."""
    lines = sorted(
        {
            f'VARYING_LIST("{row.emit}", {position})'
            for row in rows
            for position in scalar_positions(row)
            if row.arguments[position].type.endswith("[]")
        }
    )
    return "// Generated from the op table.\n" + "\n".join(lines) + "\n"


def numbers_of_programs(row):
    """Returns the names of the arguments that may be dynamic scalars. An argument with the
    suffix "!" always is one; any other becomes one once its value has differed."""
    parameters = (
        f"{name}!=0" if name in row.constant_at_zero else f"{name}!"
        for name in row.parameters
    )
    return ",".join([*row.varies, *parameters])


def updated_operands(row):
    return ",".join(map(str, row.updates))


def traced_rows(rows):
    return [row for row in rows if row.trace != "dialect"]


def op_rules(rows):
    """Returns the rules that rows may name, as macros. The rules are in a separate file,
    because most of the backend depends on them, and they change less often than rows."""
    parts = [
        ("OP_FAMILY", sorted({row.family for row in traced_rows(rows)})),
        ("OP_SHAPE_RULE", op_schema.SHAPE_RULES),
        (
            "OP_DTYPE_RULE",
            [r if r != "bool" else "boolean" for r in op_schema.DTYPE_RULES],
        ),
        ("OP_STRIDE_RULE", [camel(rule) for rule in op_schema.STRIDE_RULES]),
        ("OP_TRACE_KIND", ("node", "random")),
    ]
    text = "// Generated from the op table. Define the macros you need.\n"
    for macro, names in parts:
        lines = "\n".join(f"{macro}({name})" for name in names)
        text += f"#ifdef {macro}\n{lines}\n#undef {macro}\n#endif\n"
    return text


def op_records(rows):
    lines = []
    for row in traced_rows(rows):
        dtype = "boolean" if row.dtype == "bool" else row.dtype
        schema = row.schema.replace('"', '\\"')
        flags = "".join(f", .{lower_camel(flag)} = true" for flag in row.flags)
        lines.append(
            f'OP_RECORD("{schema}", "{row.emit}", {row.family}, '
            f"{row.shape}, {dtype}, {camel(row.strides)}, {row.trace}, "
            f'"{numbers_of_programs(row)}", "{",".join(row.sizes)}", '
            f'"{row.element}", "{updated_operands(row)}"{flags})'
        )
    body = "\n".join(lines)
    return f"// Generated from the op table.\n{body}\n#undef OP_RECORD\n"
