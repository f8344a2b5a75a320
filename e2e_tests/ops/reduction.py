"""Reductions of all elements to one, and along dimensions."""

from __future__ import annotations

import torch
from ops.program import (
    ALL,
    BOOL,
    F32,
    F64,
    FLOATS,
    INTS,
    NUMBERS,
    TOLERANCE,
    WIDE,
    Row,
    any_of,
    distinct,
    nonzero,
    positive,
    special,
)
from torch.nn import functional as F

x = any_of(3, 4, 5)


def _few_values(dtype: torch.dtype, generator: torch.Generator) -> torch.Tensor:
    return torch.randint(1, 4, (6, 5), generator=generator).to(dtype)


def _two_nans(dtype: torch.dtype, generator: torch.Generator) -> torch.Tensor:
    values = _few_values(dtype, generator)
    values[1, 2] = values[4, 0] = torch.nan
    return values


SUMS = [
    Row("sum", torch.sum, (x,), ALL),
    Row("sum-dim", lambda a: a.sum(1), (x,), ALL),
    Row("sum-dims-keep", lambda a: a.sum((0, -1), keepdim=True), (x,), ALL),
    Row("sum-dtype", lambda a: a.sum(0, dtype=F64), (x,), ALL),
    Row("sum-rank-0", torch.sum, (any_of(),), NUMBERS),
    Row("sum-empty", lambda a: a.sum(0), (any_of(0, 3),), NUMBERS),
    Row("mean", torch.mean, (x,), FLOATS),
    Row("mean-dim", lambda a: a.mean(-1, keepdim=True), (x,), FLOATS),
    Row("prod", torch.prod, (nonzero(2, 3),), (*WIDE, *INTS), grad=False),
    Row("prod-dim", lambda a: a.prod(1), (nonzero(2, 3),), (*WIDE, *INTS), grad=False),
    Row("cumsum", lambda a: a.cumsum(1), (x,), (*WIDE, *INTS)),
    Row("cumsum-empty", lambda a: a.cumsum(0), (any_of(5, 0),), NUMBERS),
    Row("cumprod", lambda a: a.cumprod(0), (nonzero(3, 4),), (*WIDE, *INTS), grad=False),
    Row("count_nonzero-dims", lambda a: a.count_nonzero((0, 2)), (x,), ALL, grad=False),
    Row("count_nonzero", lambda a: a.count_nonzero(0), (x,), ALL, grad=False),
    Row("bincount-like", lambda a: (a > 0).sum(), (x,), NUMBERS, grad=False),
]  # fmt: skip

EXTREMA = [
    Row("amax", lambda a: a.amax((0, 2)), (distinct(3, 4, 5),), ALL),
    Row("amin", lambda a: a.amin(1, keepdim=True), (distinct(3, 4, 5),), ALL),
    Row("max", torch.max, (distinct(3, 4, 5),), ALL),
    Row("min", torch.min, (distinct(3, 4, 5),), ALL),
    Row("max-dim", lambda a: tuple(a.max(1)), (distinct(3, 4, 5),), NUMBERS),
    Row("min-dim", lambda a: tuple(a.min(-1)), (distinct(3, 4, 5),), NUMBERS),
    Row("max-nan", lambda a: a.amax(0), (lambda d, g: torch.tensor([[1.0, float("nan")], [2.0, 0.0]], dtype=d),), FLOATS, grad=False),
    Row("argmax", lambda a: a.argmax(1), (distinct(3, 4, 5),), NUMBERS, grad=False),
    Row("argmax-all", torch.argmax, (distinct(3, 4, 5),), NUMBERS, grad=False),
    Row("argmin", lambda a: a.argmin(0, keepdim=True), (distinct(3, 4, 5),), NUMBERS, grad=False),
    # Loops over transposed operands run in memory order, but the result is the lowest of
    # the indices of equal elements.
    Row("argmax-ties-transposed", lambda a: (a.t().flatten().argmax(), a.t().argmin(), *a.t().flatten().max(0)), (_few_values,), NUMBERS),
    Row("argmax-nan-transposed", lambda a: (a.t().argmax(), a.t().argmin()), (_two_nans,), FLOATS, grad=False),
    Row("argmax-ties", lambda a: a.argmax(1), (lambda d, g: torch.tensor([[1, 3, 3], [2, 2, 1]], dtype=d),), NUMBERS, grad=False),
    Row("sort", lambda a: tuple(torch.sort(a, -1)), (distinct(3, 7),), NUMBERS),
    Row("sort-descending", lambda a: tuple(torch.sort(a, 0, True)), (distinct(3, 7),), NUMBERS),
    Row("argsort-stable", lambda a: torch.argsort(a, dim=1, stable=True), (any_of(3, 9),), INTS, grad=False),
    Row("topk", lambda a: tuple(torch.topk(a, 3)), (distinct(3, 7),), NUMBERS),
]  # fmt: skip

TRUTH = [
    Row("any", torch.any, (x,), ALL, grad=False),
    Row("any-dim", lambda a: (a > 1).any(1), (x,), NUMBERS, grad=False),
    Row("all", torch.all, (x,), ALL, grad=False),
    Row("all-dim", lambda a: (a > -2).all(-1, keepdim=True), (x,), NUMBERS, grad=False),
    Row("all-bool", lambda a: a.all(0), (x,), (BOOL,), grad=False),
    Row("all-dims", lambda a: torch.all(a, dim=(0, 2)), (x,), ALL, grad=False),
    Row("any-dims", lambda a: torch.any(a, dim=(0, 2)), (x,), ALL, grad=False),
]

STATISTICS = [
    Row("var", torch.var, (x,), WIDE),
    Row("var-dim", lambda a: a.var(1, unbiased=False), (x,), FLOATS),
    Row("std", lambda a: a.std((0, 2), keepdim=True), (x,), WIDE),
    Row("var_mean", lambda a: torch.var_mean(a, 1), (x,), WIDE),
    Row("std_mean", lambda a: torch.std_mean(a, 1), (x,), WIDE),
    Row("norm-2", lambda a: a.norm(), (x,), WIDE),
    Row("norm-1", lambda a: a.norm(1), (nonzero(3, 5),), WIDE),
    Row("norm-dim", lambda a: a.norm(dim=1), (x,), WIDE),
    Row("norm-of-another-dtype", lambda a: torch.norm(a, 2, 1, dtype=torch.float64), (x,), FLOATS),
    Row("vector_norm", lambda a: torch.linalg.vector_norm(a), (x,), WIDE),
    Row("vector_norm-inf", lambda a: torch.linalg.vector_norm(a, float("inf")), (distinct(4, 5),), WIDE),
    Row("logsumexp", lambda a: a.logsumexp(1), (x,), FLOATS),
    Row("logcumsumexp", lambda a: a.logcumsumexp(1), (x,), WIDE),
    Row("logcumsumexp-infinite", lambda a: a.logcumsumexp(0), (lambda d, g: torch.tensor([float("-inf"), float("-inf"), 1.0, float("inf"), 2.0], dtype=d),), WIDE, grad=False),
    Row("cummax", lambda a: tuple(a.cummax(1)), (distinct(3, 7),), NUMBERS),
    Row("cummin-ties", lambda a: tuple(a.cummin(0)), (any_of(9, 2),), INTS, grad=False),
    Row("median", torch.median, (distinct(3, 6),), NUMBERS),
    Row("nanmedian", torch.nanmedian, (special(),), WIDE),
    Row("median-dim", lambda a: tuple(a.median(1)), (distinct(3, 6),), NUMBERS),
    Row("nanmedian-dim", lambda a: tuple(a.nanmedian(0)), (distinct(5, 3),), FLOATS),
    Row("mode", lambda a: tuple(a.mode(1)), (any_of(3, 20, low=0, high=3),), (*INTS, BOOL), grad=False),
    Row("histc", lambda a: a.histc(5, -2, 2), (any_of(30),), WIDE, grad=False),
    Row("sort-ties", lambda a: tuple(a.round().sort()), (any_of(3, 40),), NUMBERS, grad=False),
    Row("topk-ties", lambda a: tuple(a.round().topk(9)), (any_of(3, 40),), NUMBERS, grad=False),
    Row("kthvalue-ties", lambda a: tuple(a.round().kthvalue(9)), (any_of(3, 40),), WIDE, grad=False),
    Row("kthvalue", lambda a: tuple(a.kthvalue(2, 1)), (distinct(3, 6),), NUMBERS),
    Row("aminmax", lambda a: tuple(torch.aminmax(a)), (distinct(3, 6),), NUMBERS),
    Row("nansum", lambda a: a.nansum(1), (x,), WIDE),
    Row("renorm", lambda a: a.renorm(2, 0, 1.5), (x,), WIDE),
    Row("cdist", torch.cdist, (any_of(4, 3), any_of(5, 3)), WIDE),
    Row("cdist-product", lambda a, b: torch.cdist(a, b, compute_mode="use_mm_for_euclid_dist"), (any_of(4, 3), any_of(5, 3)), WIDE),
    Row("pdist", F.pdist, (any_of(5, 3),), WIDE),
    Row("normalize", lambda a: F.normalize(a, dim=1), (x,), WIDE),
    Row("cosine_similarity", lambda a, b: F.cosine_similarity(a, b, dim=1), (x, any_of(3, 4, 5)), WIDE),
]  # fmt: skip

SOFTMAX = [
    Row("softmax", lambda a: F.softmax(a, -1), (x,), FLOATS),
    Row("softmax-dim-0", lambda a: F.softmax(a, 0), (x,), FLOATS),
    Row("softmax-large", lambda a: F.softmax(a * 100, 1), (x,), WIDE),
    Row(
        "softmax-dtype",
        lambda a: F.softmax(a, 1, dtype=F32),
        (x,),
        FLOATS,
        tolerance=TOLERANCE[F32],
    ),
    Row("log_softmax", lambda a: F.log_softmax(a, 1), (x,), FLOATS),
    Row("softmin", lambda a: F.softmin(a, 1), (positive(3, 5),), FLOATS),
]

ROWS = [*SUMS, *EXTREMA, *TRUTH, *STATISTICS, *SOFTMAX]
