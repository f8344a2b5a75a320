"""Reads and writes at indices that a tensor contains; embeddings."""

from __future__ import annotations

import torch
from lowering.linalg.case_functions import Case
from lowering.linalg.inputs import BF16, BOOL, F32, F64, I32, I64, random, random_index
from torch_text import Parameter

CASES: list[Case] = []


def add(op: str, *args, tolerance: float | None = None, **kwargs) -> None:
    CASES.append(Case(op, args, kwargs, tolerance))


x = random(5, 6, 7)
add("gather", x, 1, random_index(5, 3, 7, size=6))
add("gather", x, -1, random_index(2, 3, 4, size=7))
add("gather", torch.tensor(2.0), 0, torch.tensor(0))
add("gather", x, 0, random_index(3, 6, 7, size=5), sparse_grad=False)
add("index_select", x, 1, torch.tensor([5, 0, 0]))
add("index_select", x, -1, torch.tensor([2], dtype=I32))
add("index_select", x, 0, torch.tensor(3))

one = random_index(4, size=5, negative=True)
two = random_index(4, size=6)
add("index.Tensor", x, [one])
add("index.Tensor", x, [one, two])
add("index.Tensor", x, [None, two])
add("index.Tensor", x, [None, two, random_index(3, 1, size=7)])
add("index.Tensor", x, [one, None, random_index(3, 4, size=7)])
add("index.Tensor", x, [one[:, None].contiguous(), two, one])
add("index.Tensor", x, [torch.tensor(2)])
add("index.Tensor", random(5, dtype=I64), [one])
add("index.Tensor", random(5, 3, dtype=BOOL), [one])

for accumulate in (False, True):
    distinct = torch.tensor([4, 0, 2])
    add("index_put", x, [distinct], random(3, 6, 7), accumulate, tolerance=1e-6)
    add("index_put", x, [None, distinct], random(3, 7), accumulate, tolerance=1e-6)
    add(
        "index_put",
        x,
        [distinct, None, distinct],
        random(3, 6),
        accumulate,
        tolerance=1e-6,
    )
    add("index_put", x, [distinct, distinct], random(), accumulate, tolerance=1e-6)
    add("index_put", x, [distinct - 5], random(1, 1, 7), accumulate, tolerance=1e-6)
    mask = random(5, 6, dtype=BOOL)
    add("index_put", x, [mask], random(), accumulate, tolerance=1e-6)
add("index_put", x, [torch.tensor([1, 1, 1])], random(3, 6, 7), True, tolerance=1e-6)

index = torch.stack([torch.randperm(6, generator=torch.Generator().manual_seed(i))[:4]
                     for i in range(3)])  # fmt: skip
for dtype in (F32, F64, BF16, I64):
    target = random(5, 6, dtype=dtype)
    source = random(3, 4, dtype=dtype)
    add("scatter.src", target, 1, index, source)
    add("scatter.value", target, -1, index, 2)
    add("scatter_add", target, 1, torch.zeros_like(index), source, tolerance=1e-5)
    for reduce in ("sum", "prod", "mean", "amax", "amin"):
        for include in (True, False):
            add("scatter_reduce.two", target, 1, index // 2, source, reduce,
                include_self=include, tolerance=2e-2 if dtype is BF16 else 1e-5)  # fmt: skip
add("scatter.value", random(5, 6), 0, index % 3, Parameter(1.5))
add("scatter.src", torch.tensor(2.0), 0, torch.tensor(0), torch.tensor(3.0))
add("index_add", x, 1, torch.tensor([1, 1, 4]), random(5, 3, 7), tolerance=1e-5)
add(
    "index_add",
    x,
    0,
    torch.tensor([3]),
    random(1, 6, 7),
    alpha=Parameter(0.5),
    tolerance=1e-5,
)
add("index_copy", x, 2, torch.tensor([6, 2]), random(5, 6, 2))
add("index_fill.int_Scalar", x, 1, torch.tensor([0, 3]), 9)
mask = random(5, 6, 7, dtype=BOOL)
add("masked_scatter", x, mask, random(210))
add("masked_scatter", x, random(6, 1, dtype=BOOL), random(210))

weight = random(10, 4)
for shape in ((3,), (2, 3), ()):
    indices = random_index(*shape, size=10)
    add("embedding", weight, indices)
    add(
        "embedding_dense_backward",
        random(*shape, 4),
        indices,
        10,
        -1,
        False,
        tolerance=1e-5,
    )
add("embedding", weight, random_index(2, 3, size=10).to(I32), 3)
same = torch.tensor([1, 2, 1, 1, 3])
add("embedding_dense_backward", random(5, 4), same, 10, 1, False, tolerance=1e-5)
add("embedding_dense_backward", random(5, 4), same, 10, 3, False, tolerance=1e-5)
add(
    "embedding_dense_backward",
    random(5, 4, dtype=F64),
    same,
    10,
    -1,
    False,
    tolerance=1e-12,
)
