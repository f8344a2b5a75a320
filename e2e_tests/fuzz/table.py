"""The ops that programs are drawn from: the rows of the op table, called as a user's
program calls them."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import op_table
import torch

#: Rows that a program can't call, with the reason.
LEFT_OUT = {
    "empty.memory_format": "uninitialized memory",
    "empty_like": "uninitialized memory",
    "new_empty": "uninitialized memory",
    "_efficientzerotensor": "not a tensor that programs may write to",
    "_reshape_copy": "only created by functionalization",
    "_unsafe_index_put": "made by decompositions only",
    "_native_batch_norm_legit": "native_batch_norm is drawn",
    "_native_batch_norm_legit.no_stats": "native_batch_norm is drawn",
    "_native_batch_norm_legit_functional": "native_batch_norm is drawn",
    "_native_batch_norm_legit_no_training": "native_batch_norm is drawn",
    "_neg_view_copy": "eager raises when bools are read; imag of a conjugate uses it",
    "lift_fresh_copy": "made by torch.tensor only",
    "native_dropout_backward": "gradients draw it",
    "sort": "equal elements in no order; sort.stable is drawn",
    "log_sigmoid_backward": "reads the buffer of log_sigmoid_forward; gradients draw it",
    "_functional_assert_async.msg": "ends the step unless its operand is true",
    "exponential": "only the in-place form can be called",
    "random.from": "the name is a keyword of Python; random.to is drawn",
}

#: Families whose backward ops aren't drawn, because their operands must be results of the
#: forward op.
_GRADIENTS = {
    "convolution", "data_movement", "embedding", "loss", "normalization",
    "pooling", "reduction",
}  # fmt: skip


@dataclass(frozen=True)
class Op:
    """An op to draw. `name` and `in_place` are names in torch.ops.aten; `in_place` is ""
    if there is no such op."""

    name: str
    family: str
    schema: torch.FunctionSchema
    in_place: str = ""
    view: bool = False

    @property
    def base(self) -> str:
        return self.name.split(".")[0]


def find(name: str):
    """Returns torch.ops.aten.<name>, or None if there is no such op."""
    base, _, overload = name.partition(".")
    packet = getattr(torch.ops.aten, base, None)
    overload = overload or "default"
    if packet is None or overload not in packet.overloads():
        return None
    return getattr(packet, overload)


def _op(schema_text: str, family: str) -> Op | None:
    name = schema_text.split("(")[0].removeprefix("aten::")
    base, _, overload = name.partition(".")
    if name in LEFT_OUT or ("backward" in base and family in _GRADIENTS):
        return None
    suffix = f".{overload}" if overload else ""
    if family == "random" and find(f"{base}_{suffix}"):
        # Draws the in-place op, which functionalization converts to the functional form.
        in_place = f"{base}_{suffix}"
        if not base.endswith(("_like", "bernoulli")):
            return Op(in_place, family, find(in_place)._schema, in_place)
    view = base.endswith("_copy") and base != "_to_copy"
    if view:
        name = base.removesuffix("_copy") + suffix
        base = base.removesuffix("_copy")
    handle = find(name)
    if handle is None:
        return None
    in_place = f"{base}_{suffix}"
    return Op(name, family, handle._schema, in_place if find(in_place) else "", view)


@functools.cache
def ops() -> list[Op]:
    found: dict[str, Op] = {}
    for row in op_table.rows():
        # PyTorch's kernel computes "host" rows on both devices, and some of these
        # kernels crash on meaningless arguments.
        if row.trace == "dialect" or row.lower == "host":
            continue
        op = _op(row.schema, row.family)
        if op is not None:
            found.setdefault(op.name, op)
    return list(found.values())
