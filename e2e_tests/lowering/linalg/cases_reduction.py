"""Reductions and scans."""

from __future__ import annotations

import torch
from lowering.linalg.case_functions import Case
from lowering.linalg.inputs import (
    BF16,
    BOOL,
    F32,
    F64,
    I8,
    I32,
    I64,
    U8,
    random,
    special,
)

CASES: list[Case] = []


def add(op: str, *args, tolerance: float | None = None, **kwargs) -> None:
    CASES.append(Case(op, args, kwargs, tolerance))


for dtype in (F32, F64, BF16, I64, I32, U8, I8, BOOL):
    x = random(2, 3, 4, dtype=dtype)
    add("sum", x, tolerance=1e-5)
    add("prod", x, tolerance=1e-5)
    for dims, keep in (([1], False), ([-1, 0], True), ([], False), (None, True)):
        add("sum.dim_IntList", x, dims, keep, tolerance=1e-5)
    add("prod.dim_int", x, -2, True, tolerance=1e-5)
    for op in ("any", "all"):
        add(op, x)
        add(f"{op}.dim", x, 1, True)
        add(f"{op}.dims", x, [0, 2])
        add(f"{op}.dims", x, [])
    for op in ("amax", "amin"):
        add(op, x, [0, 2], True)
        add(op, x)
    for op in ("max", "min"):
        add(op, x)
        add(f"{op}.dim", x, 1)
        add(f"{op}.dim", x, -1, True)
    if dtype is not BOOL:
        for op in ("argmax", "argmin"):
            add(op, x)
            add(op, x, 1)
            add(op, x, -1, True)
    add("cumsum", x, 1, tolerance=1e-5)
    add("cumprod", x, -1, tolerance=1e-5)
for dtype in (F32, F64, BF16):
    x = random(2, 3, 4, dtype=dtype)
    add("mean", x, tolerance=1e-5)
    add("mean.dim", x, [0, -1], True, tolerance=1e-5)
add("mean", random(0))
add("sum", random(3, dtype=BF16), dtype=F32)
add("sum", random(3, dtype=I64), dtype=F32)
add("sum", torch.full((3000,), 0.1, dtype=BF16), tolerance=1e-6)

# NaN and ties.
for dtype in (F32, BF16):
    x = torch.stack([special(dtype), special(dtype).flip(0)])
    for op in ("max", "min"):
        add(op, x)
        add(f"{op}.dim", x, 1)
        add(f"{op}.dim", x, 0)
        add(f"a{op}", x, [1])
        add(f"arg{op}", x, 1)
        add(f"arg{op}", x)
ties = torch.tensor([[1, 3, 3, 2], [5, 5, 5, 5], [0, -1, -1, 0]])
for op in ("max.dim", "min.dim", "argmax", "argmin"):
    add(op, ties, 1)
    add(op, ties.float(), 1)
add("max.dim", torch.full((2, 3), float("-inf")), 1)
add("min.dim", torch.full((2, 3), float("inf")), 1)

# Tensors of rank 0, and tensors without elements.
for op in ("sum", "prod", "max", "min", "argmax", "any", "all"):
    add(op, torch.tensor(2.5))
add("max.dim", torch.tensor(2.5), 0)
add("sum.dim_IntList", torch.tensor(2.5), [0], True)
add("cumsum", torch.tensor(2.5), 0)
for op in ("sum", "prod", "any", "all"):
    add(op, random(0, 3))
add("sum.dim_IntList", random(0, 3), [0])
add("sum.dim_IntList", random(3, 0), [0])
add("amax", random(3, 0), [0])

boundaries = torch.tensor([-1.0, 0.0, 0.5, 2.0])
for right in (False, True):
    add("bucketize.Tensor", special(), boundaries, right=right)
    add("bucketize.Tensor", special(), boundaries, out_int32=True, right=right)
add("bucketize.Tensor", torch.arange(-3, 3), torch.tensor([-2, 0, 1]))
add("bucketize.Tensor", random(3), torch.empty(0))

for dtype in (F32, BF16, I64, U8):
    for descending in (False, True):
        add(
            "sort.stable",
            random(3, 7, dtype=dtype),
            stable=True,
            dim=1,
            descending=descending,
        )
        add("sort.stable", special(dtype), stable=True, dim=0, descending=descending)
add("sort", random(5, 1, 3), 0)
add("sort", torch.tensor(2.5), -1)
add("sort", random(0, 3), 1)
add("topk", random(2, 9), 3)
add("topk", random(9, 2), 4, 0, False)
