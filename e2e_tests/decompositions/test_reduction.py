"""Decompositions of means, variances, norms and counts."""

import pytest
import torch
from decompositions.comparison import compare
from torch_text import Parameter

inf = float("inf")
FLOATS = [torch.float32, torch.float64, torch.bfloat16]


@pytest.mark.parametrize("dtype", FLOATS)
def test_mean(dtype):
    x = (torch.randn(3, 4, 7) + 3).to(dtype)
    compare("aten.mean", x, None)
    compare("aten.mean", x, torch.float64)
    for dims in ([0], [-1, 1], None, []):
        for keep in (False, True):
            compare("aten.mean.dim", x, dims, keep, None)


def test_mean_corners():
    compare("aten.mean", torch.empty(0), None)
    compare("aten.mean", torch.tensor(2.0), None)
    compare("aten.mean", torch.arange(5), torch.float32)
    compare("aten.mean.dim", torch.empty(3, 0), [1], False, None)
    compare("aten.mean.dim", torch.empty(3, 0), [0], False, None)
    compare("aten.mean.dim", torch.tensor(2.0), [0], True, None)


VARIANCES = ["var", "std", "var_mean", "std_mean"]


@pytest.mark.parametrize("op", VARIANCES)
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("correction", [None, 0, 1, 2.5])
def test_variances(op, dtype, correction):
    x = (torch.randn(3, 4, 7) + 2).to(dtype)
    for dims, keep in (([1], False), ([0, -1], True), (None, False)):
        compare(f"aten.{op}.correction", x, dims, correction, keep)


@pytest.mark.filterwarnings("ignore:.*degrees of freedom")
def test_variance_corners():
    # The mean is 1e4 times the standard deviation.
    far = torch.randn(1000) * 1e-2 + 100
    compare("aten.var.correction", far, None, 1, False, rtol=1e-3)
    compare("aten.var_mean.correction", torch.ones(1), None, 1, False)
    compare("aten.var_mean.correction", torch.randn(2, 2), [0], 3, False)
    compare("aten.var.correction", torch.tensor(2.0), None, 0, False)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("order", [0, 1, 2, 3, 2.5, -1, 0.5, inf, -inf])
def test_vector_norm(dtype, order):
    x = torch.randn(3, 4, 7).to(dtype)
    x[0, 0, 0] = 0
    rtol = 1e-2 if dtype == torch.bfloat16 else None
    for dims, keep in (([1], False), ([0, -1], True), (None, False)):
        compare("aten.linalg_vector_norm", x, order, dims, keep, None, rtol=rtol)


def test_norm_corners():
    x = torch.randn(3, 4)
    compare("aten.linalg_vector_norm", x, 2, None, False, torch.float64)
    compare("aten.linalg_vector_norm", torch.empty(0), 2, None, False, None)
    compare("aten.linalg_vector_norm", torch.tensor(-3.0), 2, None, False, None)
    compare("aten.linalg_vector_norm", torch.tensor([inf, 1.0]), 2, None, False, None)
    compare(
        "aten.linalg_vector_norm",
        torch.tensor([float("nan"), 1]),
        inf,
        None,
        False,
        None,
    )
    compare("aten.norm.Scalar", x, 2)
    compare("aten.norm.Scalar", x, 1)
    compare("aten.norm.ScalarOpt_dim", x, None, [1], False)
    compare("aten.norm.ScalarOpt_dim", x, 3, [0], True)


@pytest.mark.parametrize("order", [0.0, 1.0, 2.0, -1.5, float("inf"), -float("inf")])
def test_norm_of_a_dynamic_order(order):
    x = torch.tensor([[1.5, 0.0, -2.0], [0.5, 3.0, 1.0]])
    dynamic = Parameter(order)
    compare("aten.linalg_vector_norm", x, dynamic, [1], False, None)
    compare("aten.linalg_vector_norm", x[..., None], dynamic, [2], True, None)


def test_norm_of_order_2_is_one_pass():
    ops = compare("aten.linalg_vector_norm", torch.randn(3, 4), 2, None, False, None)
    assert [op for op in ops if op != "prim.ListConstruct"] == [
        "aten.mul.Tensor",
        "aten.sum.dim_IntList",
        "aten.sqrt",
    ]


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.bool])
def test_count_nonzero(dtype):
    x = torch.randint(0, 2, (3, 4)).to(dtype)
    compare("aten.count_nonzero.dim_IntList", x, [1])
    compare("aten.count_nonzero.dim_IntList", x, [0, 1])
