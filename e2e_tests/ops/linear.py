"""Matrix products."""

from __future__ import annotations

import torch
from ops.program import FLOATS, I64, INTS, WIDE, Row, any_of, mask
from torch.nn import functional as F

a = any_of(5, 7)
b = any_of(7, 3)


def regular(*shape):
    """Makes symmetric positive definite matrices that are far from singular."""

    def make(dtype, generator):
        x = any_of(*shape)(dtype, generator)
        return x @ x.mT + 2 * torch.eye(shape[-1], dtype=dtype)

    return make


square, columns, stacked = regular(3, 3), any_of(3, 2), any_of(2, 3, 4)

ROWS = [
    Row("mm", torch.mm, (a, b), FLOATS),
    Row("mm-integers", torch.mm, (a, b), INTS, grad=False),
    Row("mm-transposed-left", lambda x, y: x.t() @ y, (any_of(7, 5), b), FLOATS),
    Row("mm-transposed-right", lambda x, y: x @ y.t(), (a, any_of(3, 7)), FLOATS),
    Row("mm-transposed-both", lambda x, y: x.t() @ y.t(), (any_of(7, 5), any_of(3, 7))),
    Row("mm-of-slices", lambda x, y: x[:, 1:4] @ y[2:5], (a, b), FLOATS),
    Row("mm-empty", torch.mm, (any_of(5, 0), any_of(0, 3)), WIDE),
    Row("mm-large", torch.mm, (any_of(70, 130), any_of(130, 66)), WIDE, tolerance=1e-4),
    Row("matmul-vectors", torch.matmul, (any_of(7), any_of(7)), FLOATS),
    Row("matmul-matrix-vector", torch.matmul, (a, any_of(7)), FLOATS),
    Row("matmul-vector-matrix", torch.matmul, (any_of(5), a), FLOATS),
    Row("matmul-batched", torch.matmul, (any_of(2, 5, 7), any_of(2, 7, 3)), FLOATS),
    Row("matmul-broadcast", torch.matmul, (any_of(2, 1, 5, 7), any_of(4, 7, 3)), WIDE),
    Row("matmul-batch-by-matrix", torch.matmul, (any_of(2, 5, 7), b), FLOATS),
    Row("bmm", torch.bmm, (any_of(4, 5, 7), any_of(4, 7, 3)), FLOATS),
    Row("bmm-transposed", lambda x, y: x @ y.transpose(1, 2), (any_of(4, 5, 7), any_of(4, 3, 7))),
    Row("addmm", torch.addmm, (any_of(3), a, b), FLOATS),
    Row("addmm-factors", lambda c, x, y: torch.addmm(c, x, y, beta=0.5, alpha=2), (any_of(5, 3), a, b)),
    Row("baddbmm", torch.baddbmm, (any_of(4, 5, 3), any_of(4, 5, 7), any_of(4, 7, 3)), FLOATS),
    Row("addbmm", torch.addbmm, (any_of(5, 3), any_of(4, 5, 7), any_of(4, 7, 3)), WIDE),
    Row("addmv", torch.addmv, (any_of(5), a, any_of(7)), WIDE),
    Row("addr", torch.addr, (any_of(5, 3), any_of(5), any_of(3)), WIDE),
    Row("addr-of-a-mask", lambda a, b, c: torch.addr(a, b > 0, c), (any_of(5, 3), any_of(5), any_of(3)), WIDE, grad=False),
    Row("mv", torch.mv, (a, any_of(7)), FLOATS),
    Row("dot", torch.dot, (any_of(7), any_of(7)), FLOATS),
    Row("vdot", torch.vdot, (any_of(7), any_of(7)), WIDE),
    Row("outer", torch.outer, (any_of(5), any_of(3)), FLOATS),
    Row("linear", F.linear, (any_of(2, 5, 7), any_of(3, 7), any_of(3)), FLOATS),
    Row("linear-no-bias", F.linear, (a, any_of(3, 7)), FLOATS),
    Row("bilinear", F.bilinear, (any_of(4, 3), any_of(4, 5), any_of(2, 3, 5)), WIDE),
    Row("einsum", lambda x, y: torch.einsum("bij,bkj->bik", x, y), (any_of(2, 3, 4), any_of(2, 5, 4)), WIDE),
    Row("tensordot", lambda x, y: torch.tensordot(x, y, dims=([1], [0])), (a, b), WIDE),
    Row("long-chain", lambda x, y: (x @ y).relu() @ y.t() @ y, (a, b), WIDE),
    Row("mm-int64-large", lambda x, y: x @ y * 2**20, (lambda d, g: a(I64, g), lambda d, g: b(I64, g)), (I64,), grad=False),
    Row("sdpa", F.scaled_dot_product_attention, (any_of(2, 3, 6, 4), any_of(2, 3, 5, 4), any_of(2, 3, 5, 4)), WIDE),
    Row("sdpa-causal", lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True), (any_of(2, 3, 6, 4), any_of(2, 3, 6, 4), any_of(2, 3, 6, 4)), WIDE),
    Row("sdpa-mask", lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, attn_mask=m), (any_of(2, 3, 6, 4), any_of(2, 3, 5, 4), any_of(2, 3, 5, 4), lambda d, g: mask(2, 1, 1, 5)(d, g) | (torch.arange(5) == 0)), WIDE),
    Row("matrix-exp", torch.linalg.matrix_exp, (any_of(2, 3, 3),), WIDE),
    Row("matrix-exp-empty", torch.linalg.matrix_exp, (any_of(0, 0),), WIDE),
    Row("solve-triangular", lambda a, b: torch.linalg.solve_triangular(a.triu(), b, upper=True), (square, stacked), WIDE),
    Row("solve-triangular-right", lambda a, b: torch.linalg.solve_triangular(a.tril(), b.mT, upper=False, left=False), (square, columns), WIDE),
    Row("cholesky-solve", lambda a, b: torch.cholesky_solve(b, a.tril()), (square, stacked), WIDE),
    Row("cholesky-inverse", lambda a: torch.cholesky_inverse(a.tril()), (square,), WIDE),
    Row("qr", torch.linalg.qr, (any_of(2, 4, 3),), WIDE),
    Row("qr-only-r", lambda x: torch.linalg.qr(x, mode="r")[1], (any_of(4, 3),), WIDE, grad=False),
    Row("qr-complete", lambda x: torch.linalg.qr(x, mode="complete"), (any_of(4, 3),), WIDE, grad=False),
]  # fmt: skip
