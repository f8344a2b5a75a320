"""Data movement, constructors, matrix products."""

from __future__ import annotations

import torch
from lowering.linalg.case_functions import Case
from lowering.linalg.inputs import BF16, BOOL, F32, F64, I32, I64, U8, random
from torch_text import Parameter

CASES: list[Case] = []


def add(op: str, *args, tolerance: float | None = None, **kwargs) -> None:
    CASES.append(Case(op, args, kwargs, tolerance))


x = random(2, 3, 4)
for sizes in ([6, 4], [2, 12], [4, 3, 2], [24], [2, 3, 2, 2], [-1, 8], [1, 2, 3, 4, 1],
              [3, 8]):  # fmt: skip
    add("view", x, sizes)
add("_unsafe_view", x, [8, 3])
add("view", random(1, 1), [])
add("view", random(), [1, 1])
add("view", random(0, 3), [3, 0, 2])
for dtype in (F32, BF16, I64, U8, BOOL):
    y = random(2, 3, 4, dtype=dtype)
    add("permute", y, [2, 0, 1])
    add("cat", [y, random(2, 1, 4, dtype=dtype)], 1)
    add("slice.Tensor", y, 2, 1, None, 2)
add("permute", x, [0, -1, 1])
add("transpose.int", x, 0, -1)
add("t", random(2, 3))
add("t", random(3))
add("expand", random(3, 1), [2, 3, 4])
add("expand", random(3, 1), [-1, 4])
add("expand", random(), [2])
add("repeat", random(2, 3), [2, 1, 3])
add("repeat", random(2), [0, 2])
add("unsqueeze", x, -1)
add("unsqueeze", x, 0)
add("squeeze", random(1, 3, 1))
add("squeeze.dim", random(1, 3, 1), -1)
add("squeeze.dims", random(1, 3, 1), [0, 1])
for dim, start, end, step in ((0, 1, None, 1), (1, -2, None, 1), (2, 0, -1, 2), (2, 3, 1, 1),
                              (1, None, 9223372036854775807, 1), (-1, -100, 100, 3)):  # fmt: skip
    add("slice.Tensor", x, dim, start, end, step)
    part = torch.ops.aten.slice(x, dim, start, end, step)
    add("slice_scatter", x, random(*part.shape), dim, start, end, step)
    if start is not None and end is not None:
        add("slice_backward", part.contiguous(), x.shape, dim, start, end, step)
for dim, index in ((0, 1), (1, -1), (-1, 2)):
    add("select.int", x, dim, index)
    part = torch.select(x, dim, index).contiguous()
    add("select_scatter", x, random(*part.shape), dim, index)
    add("select_backward", part, x.shape, dim, index)
add("cat", [random(2, 3), random(0), random(1, 3)], 0)
add("cat", [random(2, 3), torch.arange(3)[None]], 0)
add("cat", [random(2, 0), random(2, 2)], -1)
add("stack", [random(2, 3), random(2, 3)], -1)
add("stack", [random(), random()])
add("flip", x, [0, -1])
add("flip", x, [])
add("roll", x, [1], [2])
add("roll", x, [5])
add("roll", x, [-1, 2], [0, 1])
add("constant_pad_nd", x, [1, 2], 0.5)
add("constant_pad_nd", x, [-1, 2, 1, -1], 0)
add("constant_pad_nd", random(2, 3, dtype=I64), [0, 0, 1, 1], 7)
add("constant_pad_nd", x, [1, 0, 0, 0, 2, 0], Parameter(1.5))
for diagonal in (-1, 0, 1, 5, -5):
    add("tril", random(2, 3, 4), diagonal)
    add("triu", random(3, 4, dtype=I64), diagonal)
    add("diagonal", x, min(max(diagonal, -2), 2), 1, 2)
add("tril", random(3, 3, dtype=BOOL))
add("diagonal", x, 0, 0, 1)
add("diagonal", random(3, 3), 5)
add("diagonal_scatter", x, random(4, 2), 0, 0, 1)
add("diagonal_backward", random(4, 2), [2, 3, 4], 0, 0, 1)
add("unfold", x, 2, 3, 1)
add("unfold", x, 1, 2, 2)
add("unfold_backward", random(2, 3, 2, 3), [2, 3, 4], 2, 3, 1)
add("as_strided", random(12), [2, 3], [1, 4], 2)
add("as_strided", random(12), [], [], 2)
add("as_strided", random(3, 4), [3, 2, 2], [4, 1, 1])
add("as_strided_scatter", random(3, 4), random(2, 2), [2, 2], [5, 2], 1)
add("reflection_pad1d", random(2, 3, 5), [2, 3])
add("replication_pad1d", random(3, 5), [2, 3])
add("reflection_pad2d", random(2, 4, 5), [1, 2, 3, 0])
add("replication_pad2d", random(1, 2, 4, 5), [1, 2, 3, 1])
add("copy", random(2, 3), random(3, dtype=F64))
add("upsample_nearest2d", random(1, 2, 3, 4), [6, 6])
add("upsample_nearest2d", random(1, 2, 3, 4), [6, 8], 2.0, 2.0)
add(
    "upsample_nearest2d_backward",
    random(1, 2, 6, 6),
    [6, 6],
    [1, 2, 3, 4],
    tolerance=1e-6,
)

for sizes, scales in (((5, 7), ()), ((7, 3), ()), ((2, 3), ()), ((6, 9), (2.0, 2.5))):
    add(
        "upsample_nearest2d_backward",
        random(1, 2, *sizes),
        list(sizes),
        [1, 2, 3, 4],
        *scales,
        tolerance=1e-6,
    )

# Constructors.
for dtype in (F32, BF16, I64, BOOL):
    add("zeros", [2, 3], dtype=dtype)
    add("ones", [2], dtype=dtype)
    add("full", [2], 3, dtype=dtype)
add("full", [2, 2], Parameter(2.5))
add("full", [], Parameter(3))
add("full_like", random(3, dtype=I64), 2.7)
add("zeros_like", x)
add("ones_like", x, dtype=I64)
add("new_full", x, [2], 4.5)
add("new_zeros", x, [2])
add("new_ones", x, [2], dtype=I32)
add("fill.Scalar", x, 4)
add("fill.Tensor", x, torch.tensor(4))
add("zero", x)
add("scalar_tensor", Parameter(0.1))
add("scalar_tensor", 3, dtype=I64)
add("arange", 5)
add("arange", 5.5)
add("arange.start", 2, 7, dtype=F32)
add("arange.start_step", 1.0, 3.0, 0.3, tolerance=1e-7)
add("arange.start_step", 9, 0, -2)
add("arange", 5, dtype=BF16)
add("linspace", -1.0, 2.0, 7, tolerance=1e-6)
add("linspace", -1.0, 2.0, 1)
add("linspace", 0, 10, 5, dtype=F64, tolerance=1e-12)
add("eye", 3)
add("eye.m", 2, 4, dtype=I64)
add("tril_indices", 3, 4, 1)
add("triu_indices", 3, 4, -1)

# Matrix products.
for dtype, tolerance in ((F32, 1e-5), (F64, 1e-12), (I64, None), (I32, None)):
    a, b = random(3, 5, dtype=dtype), random(5, 4, dtype=dtype)
    add("mm", a, b, tolerance=tolerance)
    add(
        "bmm",
        random(2, 3, 5, dtype=dtype),
        random(2, 5, 4, dtype=dtype),
        tolerance=tolerance,
    )
    add("mv", a, random(5, dtype=dtype), tolerance=tolerance)
    add("dot", random(5, dtype=dtype), random(5, dtype=dtype), tolerance=tolerance)
    add("addmm", random(4, dtype=dtype), a, b, beta=2, alpha=3, tolerance=tolerance)
add("addmm", random(3, 4), random(3, 5), random(5, 4), tolerance=1e-5)
add(
    "addmm",
    torch.full((4,), float("nan")),
    random(3, 5),
    random(5, 4),
    beta=0,
    tolerance=1e-5,
)
add(
    "baddbmm",
    random(2, 3, 4),
    random(2, 3, 5),
    random(2, 5, 4),
    beta=Parameter(0.5),
    tolerance=1e-5,
)
add("addmv", random(3), random(3, 5), random(5), tolerance=1e-5)
add("mm", random(3, 0), random(0, 4))
