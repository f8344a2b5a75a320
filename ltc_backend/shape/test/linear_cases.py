"""Calls of matrix products."""

from shape_cases import BF16, F32, F64, I64, T, call, product, sample

MATRICES = ((2, 3), (3, 4), (3, 2), (1, 3), (0, 3), (3, 0), (3,), (), (2, 3, 4))
BATCHES = (
    (2, 3, 4),
    (2, 4, 5),
    (1, 4, 5),
    (2, 0, 4),
    (2, 4, 0),
    (0, 3, 4),
    (0, 4, 5),
    (3, 4),
)
ADDED = ((), (1,), (4,), (5,), (2, 4), (3, 5), (2, 1), (2, 3, 5), (1, 1, 5), (0,))
VECTORS = ((3,), (2,), (4,), (0,), (), (1,), (2, 3))
TYPES = ((F32, F32), (F64, F64), (BF16, BF16), (I64, I64), (F32, F64))


def is_checked(*tensors):
    """Whether the dtypes are equal or no tensor is empty: CPU kernels don't check the
    dtypes of empty operands."""
    return len({t.dtype for t in tensors}) == 1 or not any(
        0 in t.shape for t in tensors
    )


def only_checked(calls):
    return [c for c in calls if is_checked(*c.args)]


def pairs(shapes, others=None):
    return lambda op: only_checked(
        call(T(a, d), T(b, e))
        for a in shapes
        for b in others or shapes
        for d, e in TYPES
    )


def sums(shapes, others=None):
    return lambda op: only_checked(
        call(T(s, d), T(a, d), T(b, e))
        for s, a, b, (d, e) in sample(
            op, product(ADDED, shapes, others or shapes, TYPES), 900
        )
    )


def layers(op):
    return [
        call(T(a, d), T(b, e), *bias)
        for a in ((2, 3), (4, 2, 3), (3,), (0, 3), (2, 4))
        for b in ((5, 3), (5, 4), (1, 3))
        for d, e in TYPES
        for bias in ((), (None,), (T((5,), d),), (T((1,), d),))
        if is_checked(T(a, d), T(b, e))
    ]


SQUARES = ((3, 3), (2, 3, 3), (1, 3, 3), (4, 1, 2, 2), (1, 1), (0, 0), (0, 3, 3))
OTHERS = ((3, 4), (2, 3, 1), (4, 3), (5, 1, 3, 4), (3, 0), (0, 4), (3,), (2, 1))


def squares(op):
    return [call(T(s, d)) for s in (*SQUARES, *MATRICES) for d in (F32, F64, BF16, I64)]


def triangular(op):
    return [
        call(T(a, d), T(b, e), upper=True, left=left)
        for a in (*SQUARES, (2, 3))
        for b in OTHERS
        for d, e in TYPES
        for left in (True, False)
    ]


def factored(op):
    return [
        call(T(b, d), T(a, e))
        for a in (*SQUARES, (2, 3))
        for b in OTHERS
        for d, e in TYPES
    ]


def distances(op):
    return [
        call(T(a, d), T(b, e), p, None)
        for a in ((4, 3), (2, 4, 3), (1, 4, 3), (4, 0), (3,))
        for b in ((5, 3), (2, 5, 3), (5, 2), (5, 0))
        for d, e in TYPES
        for p in (0.0, 1.0, 2.0)
    ]


GENERATORS = {
    "aten::mm": pairs(MATRICES),
    "aten::bmm": pairs(BATCHES),
    "aten::addmm": sums(MATRICES),
    "aten::baddbmm": sums(BATCHES),
    "aten::addbmm": sums(BATCHES),
    "aten::mv": pairs(MATRICES, VECTORS),
    "aten::addmv": sums([m for m in MATRICES if 0 not in m], VECTORS),
    "aten::dot": pairs(VECTORS),
    "aten::vdot": pairs(VECTORS),
    "aten::addr": sums(VECTORS),
    "aten::linear": layers,
    "aten::_cdist_forward": distances,
    "aten::linalg_matrix_exp": squares,
    "aten::cholesky_inverse": squares,
    "aten::linalg_solve_triangular": triangular,
    "aten::cholesky_solve": factored,
}
