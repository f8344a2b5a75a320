"""Calls of gathers, scatters and embeddings."""

from shape_cases import (
    BF16,
    BOOL,
    F32,
    F64,
    I32,
    I64,
    SHAPES,
    U8,
    Index,
    T,
    call,
    product,
    sample,
)

TYPES = (I64, I32, F32)
INDEXED = ((3,), (2, 3), (1, 3), (), (2, 0), (0,), (2, 3, 4))
DIMS = (0, 1, -1, 3)


def index_select(op):
    return [
        call(T(s), d, Index(i, t))
        for s in INDEXED
        for d in DIMS
        for i in ((), (1,), (2,), (0,), (2, 2))
        for t in TYPES
    ]


def gather(op):
    return [
        call(T(s), d, Index(i, t))
        for s in INDEXED
        for d in DIMS
        for i in INDEXED
        for t in TYPES
    ]


def scatter_value(op):
    return [call(*c.args, 1.5) for c in gather(op)]


def scatter(op, *rest):
    cases = product(INDEXED, DIMS, INDEXED, INDEXED, TYPES, (F32, F64))
    cases = [
        call(T(s), d, Index(i, t), T(v, e), *rest)
        for s, d, i, v, t, e in sample(op, cases, 900)
    ]
    return cases + [call(T(s), d, Index(s), T(s), *rest) for s in INDEXED for d in DIMS]


def index(op):
    choices = (
        None,
        Index((2,), I64),
        Index((1, 2), I64),
        Index((), I64),
        Index((3,), I64),
        Index((2,), I32),
        Index((0,), I64),
        T((2,)),
    )
    cases = [
        call(T(s), (a, b, c)[:n])
        for s in SHAPES
        for a in choices
        for b in choices
        for c in (None, Index((2,), I64))
        for n in (1, 2, 3)
        if any((a, b, c)[:n])
    ]
    return sample(op, cases, 900)


def index_put(op):
    values = (T(()), T((2,)), T((1, 2)), T((3,)), T((2, 3)), T((2,), F64), T((0,)))
    cases = [call(*c.args, v) for c in index(op) for v in values]
    masks = [call(T(s), (T(s, BOOL),), T(())) for s in SHAPES if s]
    return sample(op, cases, 900) + masks


def index_add(op):
    cases = product(
        INDEXED, DIMS, ((), (2,), (1,), (3,), (0,), (2, 2)), TYPES, INDEXED, (F32, F64)
    )
    calls = [
        call(T(s), d, Index(i, t), T(v, e))
        for s, d, i, t, v, e in sample(op, cases, 900)
    ]
    return calls + [
        call(T((4, 3)), 0, Index((2,), I64), T((2, 3))),
        call(T((4, 3)), 1, Index((2,), I64), T((4, 2))),
    ]


def index_reduce(op):
    return [call(*c.args, "amax") for c in index_add(op)]


def put(op):
    return [
        call(T(s), Index(i, t), T(v, e))
        for s in INDEXED
        for i in ((), (2,), (0,), (2, 2))
        for v in ((), (2,), (4,), (0,))
        for t in TYPES
        for e in (F32, F64)
    ]


def index_fill(op):
    return [
        call(T(s), d, Index(i, t), 1.5)
        for s in INDEXED
        for d in DIMS
        for i in ((), (1,), (2,), (0,), (2, 2))
        for t in TYPES
    ]


def masked_scatter(op):
    return [
        call(T(s, d), T(m, t), T(v))
        for s in INDEXED
        for m in INDEXED
        for v in ((6,), (30,))
        for d in (F32, F64)
        for t in (BOOL, U8)
    ]


def bucketize(op):
    return [
        call(T(s, d), T(b), out_int32=flag)
        for s in SHAPES
        for d in (F32, I64)
        for b in ((4,), (0,), (2, 2), ())
        for flag in (True, False)
    ]


def embedding(op):
    return [
        call(T(w, d), Index(i, t))
        for w in ((5, 3), (5,), (2, 5, 3), (5, 0))
        for d in (F32, BF16)
        for i in SHAPES
        for t in (I64, I32, F32)
    ]


def embedding_renorm(op):
    return [call(*each.args, 1.0, 2.0) for each in embedding(op)]


def embedding_backward(op):
    return [
        call(T((*i, 3), d), Index(i, t), 5, p, flag)
        for i in SHAPES
        for d in (F32, F64)
        for t in (I64, I32)
        for p in (-1, 1)
        for flag in (False, True)
    ]


def bags(op):
    """Bags whose offsets are zeros: the last bag contains all rows. Eager's kernel
    doesn't check ranks and the number of bags before it reads (PyTorch 2.13)."""
    return [
        call(
            T(w, d), Index((6,), i), Index((o,), j), False, mode, False, scale, last, p
        )
        for w in ((5, 3), (5, 1))
        for d in (F32, F64, BF16, I64)
        for i, j in ((I64, I64), (I32, I32), (I64, I32))
        for o in (2, 3)
        for mode in (0, 1, 2)
        for scale in ((None, T((6,), d)) if mode == 0 else (None,))
        for last in (False, True)
        for p in (-1, 2)
    ]


GENERATORS = {
    "aten::index_select": index_select,
    "aten::gather": gather,
    "aten::index.Tensor": index,
    "aten::index_put": index_put,
    "aten::_unsafe_index_put": index_put,
    "aten::scatter.src": scatter,
    "aten::scatter.value": scatter_value,
    "aten::scatter_add": scatter,
    "aten::scatter_reduce.two": lambda op: scatter(op, "sum"),
    "aten::index_add": index_add,
    "aten::index_copy": index_add,
    "aten::index_reduce": index_reduce,
    "aten::put": put,
    "aten::index_fill.int_Scalar": index_fill,
    "aten::masked_scatter": masked_scatter,
    "aten::bucketize.Tensor": bucketize,
    "aten::embedding": embedding,
    "aten::_embedding_bag": bags,
    "aten::_embedding_bag_forward_only": bags,
    "aten::embedding_renorm": embedding_renorm,
    "aten::embedding_dense_backward": embedding_backward,
}
