"""Decompositions of products with an addend or a vector, of attention and of linear."""

import pytest
import torch
import torch_ltc
from comparison import assert_close
from decompositions.comparison import compare
from torch_text import Parameter

DTYPES = [torch.float32, torch.float64, torch.bfloat16, torch.int64]


def operands(dtype, *sizes):
    if dtype == torch.int64:
        return [torch.randint(-5, 5, s) for s in sizes]
    return [torch.randn(s).to(dtype) for s in sizes]


def close(dtype):
    return {"rtol": 2e-2, "atol": 6e-2} if dtype == torch.bfloat16 else {"atol": 1e-5}


FACTORS = [(1, 1), (2, 3), (0, 1), (1, 0)]
OPS = {
    "aten.addmm": [(3, 5), (3, 4), (4, 5)],
    "aten.baddbmm": [(2, 3, 5), (2, 3, 4), (2, 4, 5)],
    "aten.addbmm": [(3, 5), (2, 3, 4), (2, 4, 5)],
    "aten.addmv": [(3,), (3, 4), (4,)],
    "aten.addr": [(3, 4), (3,), (4,)],
}


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("beta, alpha", FACTORS)
def test_addends(op, dtype, beta, alpha):
    if dtype == torch.bfloat16 and op == "aten.addbmm":
        pytest.skip("eager rounds the sum after each matrix of the batch")
    compare(op, *operands(dtype, *OPS[op]), beta, alpha, **close(dtype))


@pytest.mark.parametrize("op", OPS)
def test_factors_that_change(op):
    values = operands(torch.float32, *OPS[op])
    compare(op, *values, Parameter(0.5), Parameter(-1.5), **close(torch.float32))
    values = operands(torch.int64, *OPS[op])
    compare(op, *values, Parameter(2), Parameter(3))


@pytest.mark.parametrize("is_causal", [True, False])
@pytest.mark.parametrize("mask", [None, (2, 1, 4, 5), (1, 1, 1, 5)])
def test_attention(is_causal, mask):
    query, key, value, grad = (
        torch.randn(2, 3, *sizes) for sizes in [(4, 8), (5, 8), (5, 6), (4, 6)]
    )
    if mask is not None:
        mask = torch.randn(mask)
        mask[..., 0, ::2] = -torch.inf
        if mask.shape[2] > 1:
            mask[0, :, 1] = -torch.inf
    operands = query, key, value
    compare("torch_ltc.attention", *operands, mask, is_causal, atol=1e-5)
    output, log_sum = torch.ops.torch_ltc.attention(*operands, mask, is_causal)
    operands = grad, *operands, output, log_sum, mask, is_causal
    compare("torch_ltc.attention_backward", *operands, atol=1e-5)


def test_addend_broadcasts():
    compare(
        "aten.addmm", *operands(torch.float32, (5,), (3, 4), (4, 5)), 1, 1, atol=1e-5
    )
    compare(
        "aten.addmm", *operands(torch.float32, (1,), (3, 4), (4, 5)), 2, 1, atol=1e-5
    )
    compare("aten.addmm", *operands(torch.float32, (), (3, 4), (4, 5)), 2, 1, atol=1e-5)
    compare("aten.addmv", *operands(torch.float32, (1,), (3, 4), (4,)), 1, 1, atol=1e-5)
    compare(
        "aten.baddbmm",
        *operands(torch.float32, (2, 1, 5), (2, 3, 4), (2, 4, 5)),
        1,
        1,
        atol=1e-5,
    )


def test_beta_0_ignores_nan():
    _, a, b = operands(torch.float32, (), (3, 4), (4, 5))
    compare("aten.addmm", torch.full((3, 5), float("nan")), a, b, 0, 1, atol=1e-5)


def test_alpha_0_ignores_nan():
    addend, a, b = operands(torch.float32, (3, 5), (3, 4), (4, 5))
    compare("aten.addmm", addend, a * float("nan"), b, 2, 0, atol=1e-5)


@pytest.mark.parametrize("op", ["addmm", "addmv", "baddbmm"])
def test_factors_that_become_0(op: str) -> None:
    """A factor is a dynamic scalar of the program, and 0 in some steps. (Eager's kernel for
    small batches multiplies by 0.)"""
    nan = float("nan")
    addend, a, b = torch.ones(20, 30), torch.ones(20, 10), torch.ones(10, 30)
    if op == "addmv":
        addend, b = addend[:, 0], b[:, 0]
    if op == "baddbmm":
        addend, a, b = addend[None], a[None], b[None]
    function = getattr(torch, op)
    with torch_ltc.config(tier="compile"):
        for alpha, beta in ((1.0, 2.0), (0.0, 2.0), (0.5, 0.0), (0.0, 0.0), (2.0, 1.0)):
            operands = (
                addend * (nan if beta == 0 else 1),
                a * (nan if alpha == 0 else 1),
                b,
            )
            results = [
                function(*(t.to(d) for t in operands), alpha=alpha, beta=beta).cpu()
                for d in ("lazy", "cpu")
            ]
            assert_close(*results)


@pytest.mark.parametrize("dtype", DTYPES)
def test_vectors(dtype):
    matrix, vector, other = operands(dtype, (3, 4), (4,), (4,))
    compare("aten.mv", matrix, vector, **close(dtype))
    compare("aten.dot", vector, other, **close(dtype))
    compare("aten.vdot", vector, other, **close(dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("sizes", [(2, 4), (3, 2, 4), (4,)])
def test_layers(dtype, sizes):
    values = operands(dtype, sizes, (5, 4), (5,))
    compare("aten.linear", *values, **close(dtype))
    compare("aten.linear", *values[:2], None, **close(dtype))
