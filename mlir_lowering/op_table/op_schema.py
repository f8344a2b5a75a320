"""Reads and checks the rows of the op table, and parses their torch schemas."""

import dataclasses
import re
import tomllib

#: Fields that are true or false (default).
FLAGS = (
    "divides", "checks_values", "overlaps", "real_result", "casts_out", "plain_out", "wants_contiguous", "repeats_edges",
    "foreach",
)  # fmt: skip
FIELDS = {
    "schema", "emit", "shape", "dtype", "strides", "lower", "trace", "hooks", "torch_mlir", "varies",
    "parameters", "sizes", "element", "updates", "generator_overload", *FLAGS,
}  # fmt: skip
# ltc_backend/shape has functions with these names, in files named after the families.
SHAPE_RULES = (
    # elementwise
    "self",
    "broadcast",
    "broadcast_pair",
    "floating_self",
    "clipped_self",
    "floating_broadcast",
    "mish_backward",
    "numeric_self",
    "numeric_broadcast",
    "integral_broadcast",
    "shift",
    "difference",
    "addcdiv",
    "same_dtype_broadcast",
    "copy",
    "clamp",
    "lerp",
    "fill",
    "masked_fill",
    "log_sigmoid",
    "glu",
    "glu_backward",
    "dropout",
    "fake_quantize",
    "fake_quantize_tensors",
    "fake_quantize_channels",
    "fused_fake_quantize",
    "adam_update",
    "lstm_gates",
    "lstm_gates_backward",
    # reduction
    "reduction",
    "listed_reduction",
    "floating_reduction",
    "reduction_pair",
    "norm",
    "extremum",
    "extremum_pair",
    "scan",
    "softmax",
    "sort",
    "topk",
    # data_movement
    "view",
    "expand",
    "permute",
    "transpose",
    "t",
    "unsqueeze",
    "squeeze",
    "select",
    "slice",
    "diagonal",
    "as_strided",
    "unfold",
    "select_backward",
    "slice_backward",
    "diagonal_backward",
    "unfold_backward",
    "select_scatter",
    "slice_scatter",
    "diagonal_scatter",
    "as_strided_scatter",
    "cat",
    "stack",
    "split",
    "split_with_sizes",
    "unbind",
    "repeat",
    "flip",
    "roll",
    "triangle",
    "pixel_shuffle",
    "pixel_unshuffle",
    "constant_pad",
    "reflection_pad1d",
    "reflection_pad2d",
    "replication_pad1d",
    "replication_pad2d",
    # linear
    "mm",
    "bmm",
    "euclidean_dist",
    "square_matrices",
    "solved_matrices",
    "addmm",
    "baddbmm",
    "addbmm",
    "mv",
    "dot",
    "addr",
    "linear",
    "linear_backward",
    "attention",
    "short_attention",
    "attention_backward",
    # convolution
    "convolution",
    "convolution_backward",
    # pooling
    "max_pool2d",
    "max_pool2d_backward",
    "fractional_max_pool3d_backward",
    "avg_pool2d",
    "avg_pool2d_backward",
    "adaptive_pool2d",
    "adaptive_pool2d_backward",
    "adaptive_max_pool2d",
    "upsample2d",
    "upsample2d_backward",
    # normalization
    "layer_norm",
    "layer_norm_backward",
    "rms_norm",
    "rms_norm_backward",
    "batch_norm",
    "batch_norm_inference",
    "batch_norm_functional",
    "batch_norm_backward",
    "group_norm",
    "group_norm_backward",
    # indexing
    "index",
    "index_put",
    "index_select",
    "gather",
    "scatter",
    "index_add",
    "index_copy",
    "put",
    "index_fill",
    "masked_scatter",
    "bucketize",
    # recurrence
    "lstm",
    "lstm_backward",
    "gru",
    "gru_backward",
    "rnn",
    "rnn_backward",
    # embedding
    "embedding",
    "embedding_backward",
    "embedding_renorm",
    "embedding_bag",
    "embedding_bag_forward_only",
    # loss
    "loss",
    "loss_backward",
    "soft_margin_loss",
    "binary_cross_entropy_backward",
    "cross_entropy",
    "nll_loss",
    "nll_loss_backward",
    "nll_loss2d",
    "nll_loss2d_backward",
    "ctc_loss_backward",
    # constructor
    "sizes",
    "scalar",
    "length",
    "eye",
    "arange",
    "lower_triangle_indices",
    "upper_triangle_indices",
    # The shape is computed by torch's Meta kernel.
    "meta",
)
DTYPE_RULES = (
    "self",
    "promote",
    "promote_float",
    "bool",
    "boolean_or_byte",
    "int64",
    "argument",
    "sum",
    "div_mode",
    "half_to_float",
    "fill_value",
    "range",
    "meta",
)
STRIDE_RULES = (
    "contiguous",
    "view",
    "elementwise",
    "elementwise_first_last",
    "elementwise_reversed",
    "rrelu_backward",
    "angle",
    "like_self",
    "index",
    "preserve",
    "memory_format",
    "input_format",
    "constant_pad",
    "convolution",
    "batch_norm",
    "cat",
    "stack",
    "roll",
    "heads_inside",
    "matrix_columns",
    "fft",
)
TRACE_KINDS = ("node", "random", "dialect")
#: Values of `lower` that aren't scalar builders.
STRUCTURED = ("linalg", "library", "host", "decompose", "none")
HOOKS = ("fold", "canonicalize", "verify")
#: Types of arguments that may be dynamic scalars or lists of them.
NUMBER_TYPES = ("int", "SymInt", "float", "Scalar", "int[]", "SymInt[]")


class TableError(Exception):
    """An error in the table; the message names the file and the row."""


@dataclasses.dataclass
class Argument:
    name: str
    type: str  # "Tensor", "Tensor?", "SymInt[]", "Scalar", ...


@dataclasses.dataclass
class Row:
    family: str
    schema: str
    arguments: list
    result_types: list
    emit: str
    shape: str
    dtype: str
    strides: str
    lower: str
    trace: str
    hooks: list
    torch_mlir: bool
    varies: list
    parameters: list
    constant_at_zero: list  # those of `parameters` that are constants if they are 0
    sizes: list
    element: str
    updates: list
    flags: list  # those of FLAGS that are true

    @property
    def class_name(self):
        """The name of the C++ class: Aten_SoftmaxOp for aten._softmax, AtenAddTensorOp for
        aten.add.Tensor."""
        name = ""
        for part in self.emit.split("."):
            underscores = len(part) - len(part.lstrip("_"))
            words = part.split("_")
            name += "_" * underscores
            name += "".join(w[:1].upper() + w[1:] for w in words)
        return name + "Op"


def parse_arguments(text):
    arguments = []
    for piece in split_top_level(text):
        if piece == "*":
            continue
        type_text, _, rest = piece.rpartition(" ")
        name = rest.partition("=")[0]
        # Drop aliasing ("Tensor(a!)") and the length of a list ("int[2]").
        type_text = re.sub(r"\([a-z!]*\)", "", type_text)
        type_text = re.sub(r"\[\d+\]", "[]", type_text)
        arguments.append(Argument(name, type_text))
    return arguments


def split_top_level(text):
    pieces, depth, begin = [], 0, 0
    for index, char in enumerate(text):
        depth += (char in "([") - (char in ")]")
        if char == "," and depth == 0:
            pieces.append(text[begin:index].strip())
            begin = index + 1
    pieces.append(text[begin:].strip())
    return [piece for piece in pieces if piece]


def parse_schema(schema, where):
    match = re.fullmatch(r"(aten|torch_ltc)::([\w.]+)\((.*)\) -> (.+)", schema)
    if not match:
        raise TableError(f"{where}: cannot read the schema '{schema}'")
    namespace, name, arguments, results = match.groups()
    if results.startswith("("):
        results = results[1:-1]
    types = [
        re.sub(r"\([a-z!]*\)", "", piece).split(" ")[0]
        for piece in split_top_level(results)
    ]
    for type_text in types:
        if type_text not in ("Tensor", "Tensor[]"):
            raise TableError(f"{where}: results must be tensors: '{schema}'")
    return f"{namespace}.{name}", parse_arguments(arguments), types


def with_generator_overloads(entries):
    """Yields the entries, and after an entry with `generator_overload` the same entry for
    the overload of this name, whose first keyword argument is a generator."""
    for entry in entries:
        entry = dict(entry)
        overload = entry.pop("generator_overload", None)
        yield entry
        if overload:
            name, _, rest = entry["schema"].partition("(")
            rest = rest.replace("*, ", "*, Generator? generator, ", 1)
            schema = f"{name.partition('.')[0]}.{overload}({rest}"
            yield entry | {"schema": schema}


def load_family(path, family):
    with path.open("rb") as file:
        table = tomllib.load(file)
    rows = []
    for entry in with_generator_overloads(table["ops"]):
        where = f"{path.name}: {entry.get('schema', entry)}"
        unknown = set(entry) - FIELDS
        if unknown:
            raise TableError(f"{where}: unknown field {sorted(unknown)[0]}")
        fields = {
            "strides": "contiguous",
            "trace": "node",
            "hooks": [],
            "torch_mlir": True,
            "varies": [],
            "parameters": [],
            "element": "",
            "updates": [0],
        }
        fields |= table["default"] | entry
        zeros = [p[:-3] for p in fields["parameters"] if p.endswith("!=0")]
        fields["constant_at_zero"] = zeros
        fields["parameters"] = [p.removesuffix("!=0") for p in fields["parameters"]]
        fields["flags"] = [flag for flag in FLAGS if fields.pop(flag, False)]
        name, arguments, results = parse_schema(fields.pop("schema"), where)
        fields.setdefault("emit", name)
        if "sizes" not in entry:
            fields["sizes"] = default_sizes(arguments, table["default"].get("sizes"))
        row = Row(
            family=family,
            schema=entry["schema"],
            arguments=arguments,
            result_types=results,
            **fields,
        )
        check_row(row, where)
        rows.append(row)
    return rows


def default_sizes(arguments, names):
    """Returns those entries of `names`, the family's default, that name a number of the
    schema. Without a default, returns the names of the arguments of type SymInt."""
    if names is None:
        return [
            a.name
            for a in arguments
            if a.type.rstrip("?").removesuffix("[]") == "SymInt"
        ]
    numbers = {a.name for a in arguments if a.type.rstrip("?") in NUMBER_TYPES}
    return [word for word in names if name_of_size(word) in numbers]


def name_of_size(word):
    """Returns "padding" for the entry "padding>=0" of the column `sizes`."""
    return re.sub(">=[01]$", "", word)


def check_row(row, where):
    for field, allowed in (
        ("shape", SHAPE_RULES),
        ("dtype", DTYPE_RULES),
        ("strides", STRIDE_RULES),
        ("trace", TRACE_KINDS),
    ):
        value = getattr(row, field)
        if value not in allowed:
            raise TableError(
                f"{where}: {field} = '{value}' is not one of " + ", ".join(allowed)
            )
    for hook in row.hooks:
        if hook not in HOOKS:
            raise TableError(f"{where}: unknown hook '{hook}'")
    for name in row.varies:
        argument = next((a for a in row.arguments if a.name == name), None)
        if argument is None or argument.type.rstrip("?") not in NUMBER_TYPES:
            raise TableError(f"{where}: varies: '{name}' isn't a number of the schema")
    for name in row.parameters:
        argument = next((a for a in row.arguments if a.name == name), None)
        if argument is None or argument.type.rstrip("?") not in ("Scalar", "float"):
            raise TableError(
                f"{where}: parameters: '{name}' isn't a Scalar or float of the schema"
            )
        if name in row.varies:
            raise TableError(f"{where}: '{name}' is in both `varies` and `parameters`")
    for word in row.sizes:
        name = name_of_size(word)
        argument = next((a for a in row.arguments if a.name == name), None)
        if argument is None or argument.type.rstrip("?") not in {*NUMBER_TYPES, "str"}:
            raise TableError(f"{where}: sizes: '{word}' isn't a number of the schema")
    if row.element and not any(
        a.name == row.element and a.type == "Scalar" for a in row.arguments
    ):
        raise TableError(
            f"{where}: element: '{row.element}' isn't a Scalar of the schema"
        )
    tensors = [a for a in row.arguments if a.type.rstrip("?") == "Tensor"]
    for operand in row.updates if row.updates != [0] else ():
        if operand >= len(tensors):
            raise TableError(f"{where}: updates: there is no operand {operand}")
    if row.lower in STRUCTURED:
        return
    if row.family != "elementwise":
        raise TableError(
            f"{where}: lower = '{row.lower}': scalar builders are for elementwise ops"
        )


def check_rows(rows):
    """Raises a TableError if a schema has two rows, or if rows that emit the same op
    differ in their operands, `torch_mlir` or `hooks`."""
    schemas, emitted = set(), {}
    for row in rows:
        name = row.schema.partition("(")[0]
        if name in schemas:
            raise TableError(f"{name} has two rows")
        schemas.add(name)
        first = emitted.setdefault(row.emit, row)
        types = [argument.type for argument in row.arguments]
        if types != [argument.type for argument in first.arguments]:
            raise TableError(
                f"{name} and {first.schema} emit {row.emit} with different operands"
            )
        for field in ("torch_mlir", "hooks"):
            if getattr(row, field) != getattr(first, field):
                raise TableError(f"{row.emit}: {field} differs between rows")
