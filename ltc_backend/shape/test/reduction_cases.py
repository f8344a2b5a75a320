"""Calls of reductions, scans and sorts."""

from shape_cases import (
    BF16,
    BOOL,
    DTYPES,
    F16,
    F32,
    F64,
    FLOATS,
    I64,
    SHAPES,
    U8,
    T,
    call,
)

DIMS = (0, 1, -1, 2, -3)
DIM_LISTS = (None, [], [0], [-1], [0, 1], [1, -1], [0, 0], [5], [2, 0])


def full(op):
    return [call(T(s, d)) for s in SHAPES for d in DTYPES]


def full_dtype(op):
    return [
        call(T(s, d), dtype=to)
        for s in SHAPES
        for d in DTYPES
        for to in (None, F64, I64, F32)
    ]


def dims(op, **kwargs):
    return [
        call(T(s, d), dim, keep, **kwargs)
        for s in SHAPES
        for d in (F32, I64, U8, BOOL)
        for dim in DIM_LISTS
        for keep in (False, True)
    ]


def dims_dtype(op):
    return dims(op) + dims(op, dtype=F64)


def dims_not_none(op):
    return [c for c in dims(op) if c.args[1] is not None]


def named_dims(op):
    # Leaves out dim=[], which PyTorch, contrary to its documentation, rejects unless
    # keepdim=True.
    return [c for c in dims(op) if c.args[1]]


def one_dim(op):
    return [
        call(T(s, d), dim, keep)
        for s in SHAPES
        for d in (F32, I64, U8, BOOL)
        for dim in DIMS
        for keep in (False, True)
    ]


def one_dim_dtype(op):
    return one_dim(op) + [call(*c.args, dtype=F64) for c in one_dim(op)]


def optional_dim(op):
    return one_dim(op) + [
        call(T(s), None, keep) for s in SHAPES for keep in (False, True)
    ]


def correction(op):
    return [
        call(T(s, d), dim, correction=c, keepdim=keep)
        for s in SHAPES
        for d in (F32, F64, I64)
        for dim in DIM_LISTS
        for c in (None, 0)
        for keep in (False, True)
    ]


def norm_dims(op):
    return [
        call(T(s, d), p, dim, keep)
        for s in SHAPES
        for d in (F32, I64)
        for p in (None, 1, float("inf"))
        for dim in DIM_LISTS
        if dim is not None
        for keep in (False, True)
    ]


def vector_norm(op):
    return [
        call(T(s, d), p, dim, keep, dtype=to)
        for s in SHAPES
        for d in (F32, I64)
        for p in (2, 0)
        for dim in DIM_LISTS
        for keep in (False, True)
        for to in (None, F64)
    ]


def scan(op):
    return [
        call(T(s, d), dim) for s in SHAPES for d in (F32, I64, BOOL) for dim in DIMS
    ]


def scan_dtype(op):
    return scan(op) + [call(*c.args, dtype=F64) for c in scan(op)]


def softmax(op):
    return [
        call(T(s, d), dim, half)
        for s in SHAPES
        for d in FLOATS + (F16, I64)
        for dim in DIMS
        for half in (False, True)
    ]


def safe_softmax(op):
    return [
        call(T(s, d), dim, to)
        for s in SHAPES
        for d in (F32, F64)
        for dim in DIMS
        for to in (None, F64)
    ]


def softmax_backward(op):
    return [
        call(T(s, d), T(s, d), dim, d)
        for s in SHAPES
        for d in (F32, BF16)
        for dim in DIMS
    ]


def sort(op):
    return [
        call(T(s, d), dim, flag)
        for s in SHAPES
        for d in (F32, I64)
        for dim in DIMS
        for flag in (False, True)
    ]


def scan_pair(op):
    # Leaves out empty tensors, because eager doesn't check their dim.
    shapes = [s for s in SHAPES if 0 not in s]
    return [call(T(s, d), dim) for s in shapes for d in (F32, I64) for dim in DIMS]


def sort_stable(op):
    return [call(c.args[0], stable=True, dim=c.args[1]) for c in sort(op)]


def topk(op):
    return [
        call(T(s), k, dim) for s in SHAPES for k in (0, 1, 2, 9, -1) for dim in DIMS
    ]


def count(op):
    return [call(T(s), dim) for s in SHAPES for dim in DIM_LISTS if dim is not None]


GENERATORS = {}
for _generator, _ops in (
    (full_dtype, "sum prod mean"),
    (full, "max min any all"),
    (dims_dtype, "sum.dim_IntList mean.dim"),
    (dims_not_none, "amax amin"),
    (named_dims, "logsumexp"),
    (dims, "any.dims all.dims"),
    (one_dim_dtype, "prod.dim_int"),
    (one_dim, "max.dim min.dim any.dim all.dim median.dim nanmedian.dim"),
    (optional_dim, "argmax argmin"),
    (
        correction,
        "var.correction std.correction var_mean.correction std_mean.correction",
    ),
    (full, "norm.Scalar"),
    (norm_dims, "norm.ScalarOpt_dim"),
    (vector_norm, "linalg_vector_norm"),
    (count, "count_nonzero.dim_IntList"),
    (scan_dtype, "cumsum cumprod"),
    (scan, "logcumsumexp"),
    (softmax, "_softmax _log_softmax"),
    (safe_softmax, "_safe_softmax"),
    (softmax_backward, "_softmax_backward_data _log_softmax_backward_data"),
    (sort, "sort"),
    (scan_pair, "cummax cummin"),
    (sort_stable, "sort.stable"),
    (topk, "topk"),
):
    for _op in _ops.split():
        GENERATORS["aten::" + _op] = _generator
