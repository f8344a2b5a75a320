"""Tracks which numbers don't depend on the order of computation.

A compiler may round differently from eager, and then a comparison, a floor or an argmax
of a rounded number may have a different result. Such ops are drawn only if their operands
are exact: made from inputs by data movement or exact arithmetic.
"""

from __future__ import annotations

import torch
from fuzz import table
from fuzz.program import parts

#: Ops that move values: exact operands give exact results.
MOVING = {"data_movement", "constructor", "random"}

#: Arithmetic that is exact while the numbers are few and small (`is_small`).
EXACT = {
    "neg", "abs", "relu", "floor", "ceil", "round", "trunc", "frac", "sign", "sgn",
    "bitwise_not", "logical_not", "isnan", "isinf", "isposinf", "isneginf", "signbit",
    "hardtanh", "threshold", "hardshrink", "softshrink", "add", "sub", "rsub", "mul",
    "floor_divide", "remainder", "fmod", "copysign", "heaviside", "maximum",
    "minimum", "fmax", "fmin", "eq", "ne", "lt", "le", "gt", "ge", "logical_and",
    "logical_or", "logical_xor", "bitwise_and", "bitwise_or", "bitwise_xor",
    "bitwise_left_shift", "bitwise_right_shift", "__lshift__", "__rshift__", "where",
    "clamp", "clamp_min", "clamp_max", "addcmul", "masked_fill", "_to_copy", "clone",
    "alias", "detach", "glu", "copy", "sum", "prod", "cumsum", "cumprod", "cummax",
    "cummin", "amax", "amin", "max", "min", "any", "all", "argmax", "argmin",
    "count_nonzero", "sort", "topk", "mm", "bmm", "addmm", "baddbmm", "mv", "dot",
    "vdot", "addmv", "addbmm", "addr", "embedding", "max_pool2d_with_indices",
    "adaptive_max_pool2d", "upsample_nearest2d", "index_select", "gather", "index",
    "index_put", "scatter", "scatter_add", "index_fill", "put", "searchsorted",
    "index_add", "index_copy", "masked_scatter", "bucketize",
}  # fmt: skip

#: Ops whose result may change a lot if an operand changes a little.
JUMPS = {
    "floor", "ceil", "round", "trunc", "frac", "sign", "sgn", "signbit", "angle",
    "threshold", "hardshrink", "div.Tensor_mode", "div.Scalar_mode", "floor_divide",
    "remainder", "fmod", "atan2", "copysign", "heaviside", "cummax", "cummin",
    "max.dim", "min.dim", "median", "sort", "topk", "max_pool2d_with_indices",
    "adaptive_max_pool2d", "threshold_backward", "hardshrink_backward",
    "softshrink_backward", "hardtanh_backward", "hardsigmoid_backward",
    "hardswish_backward", "leaky_relu_backward", "bernoulli", "logit_backward",
    "elu_backward", "sinc", "pow.Scalar", "pow.Tensor_Tensor",
}  # fmt: skip


def storage(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage()._cdata


def overlaps_itself(tensor: torch.Tensor) -> bool:
    """Whether two indices refer to the same element in memory. Eager doesn't always
    detect this."""
    if not tensor.numel():
        return False
    elements = tensor.untyped_storage().nbytes() // tensor.element_size()
    places = torch.arange(elements).as_strided(
        tensor.shape, tensor.stride(), tensor.storage_offset()
    )
    return places.unique().numel() < tensor.numel()


def is_small(tensor: torch.Tensor) -> bool:
    """Whether sums and products of the elements need no rounding. True for meta tensors,
    which have no data: torch's formulas create them to compute shapes."""
    tensor = parts(tensor)
    if not tensor.is_floating_point() or tensor.is_meta:
        return True
    bits = {torch.bfloat16: 2, torch.float16: 3}.get(tensor.dtype, 10)
    scaled = tensor.detach().double() * 2**bits
    return bool(((scaled == scaled.round()) & (scaled.abs() <= 4**bits)).all())


class Exactness:
    def __init__(self) -> None:
        # Keeps the storages alive: the address of a freed one would be reused.
        self._rounded: dict[int, torch.UntypedStorage] = {}

    def rounded(self, tensor: torch.Tensor) -> bool:
        return storage(tensor) in self._rounded

    def allows(self, op: table.Op, tensors: list[torch.Tensor]) -> bool:
        jumps = op.base.rstrip("_") in JUMPS or op.name in JUMPS
        return not (jumps and any(self.rounded(t) for t in tensors))

    def allows_results(
        self, tensors: list[torch.Tensor], written: list[torch.Tensor]
    ) -> bool:
        """Whether the results may be drawn: integers and bools, which count as exact,
        must not depend on rounded numbers."""
        if all(t.is_floating_point() or t.is_complex() for t in written):
            return True
        return not any(self.rounded(t) for t in tensors)

    def note(self, op, tensors, written, in_place: bool) -> None:
        """Records which written values are rounded."""
        given = any(self.rounded(t) for t in tensors)
        exact = (op.family in MOVING and op.base != "linspace") or op.view
        if not exact and (op.base.rstrip("_") in EXACT or op.base in EXACT):
            exact = all(is_small(t) for t in (*tensors, *written))
        for tensor in written:
            if given or not exact:
                self._rounded[storage(tensor)] = tensor.untyped_storage()
            elif not in_place and not op.view:
                self._rounded.pop(storage(tensor), None)
