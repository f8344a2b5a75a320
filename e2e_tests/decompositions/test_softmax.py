"""Decompositions of softmax, log softmax, their gradients, and logsumexp."""

import pytest
import torch
from decompositions.comparison import compare

inf = float("inf")
FLOATS = [torch.float32, torch.float64, torch.bfloat16, torch.float16]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("op", ["aten._softmax", "aten._log_softmax"])
@pytest.mark.parametrize("dim", [-1, 0, 1])
def test_forward(op, dtype, dim):
    compare(op, (5 * torch.randn(3, 4, 7)).to(dtype), dim, False)


@pytest.mark.parametrize("op", ["aten._softmax", "aten._log_softmax"])
def test_corners(op):
    compare(op, torch.tensor(3.0), 0, False)
    compare(op, torch.tensor(3.0), -1, False)
    compare(op, torch.empty(2, 0), 1, False)
    compare(op, torch.empty(0, 2), 1, False)
    compare(op, torch.tensor([[1e5, 1e5 + 1], [-1e30, 3.0]]), 1, False)
    compare(op, torch.tensor([[-inf, 0.0], [-inf, -inf], [inf, 0.0]]), 1, False)


@pytest.mark.parametrize("dtype", FLOATS)
def test_safe_softmax(dtype):
    x = torch.randn(3, 4).to(dtype)
    x[0], x[1, 2] = -inf, -inf
    compare("aten._safe_softmax", x, -1, None)
    x[2, 0] = float("nan")
    compare("aten._safe_softmax", x, 1, None)
    compare("aten._safe_softmax", torch.randn(3, 4), 0, torch.float64)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("dim", [-1, 0])
def test_backward(dtype, dim):
    x, grad = torch.randn(3, 4, 7), torch.randn(3, 4, 7).to(dtype)
    softmax = x.softmax(dim).to(dtype)
    compare("aten._softmax_backward_data", grad, softmax, dim, dtype)
    log_softmax = x.log_softmax(dim).to(dtype)
    compare("aten._log_softmax_backward_data", grad, log_softmax, dim, dtype)
    one = torch.tensor(1.0)
    compare("aten._softmax_backward_data", one, one, 0, torch.float32)


@pytest.mark.parametrize("dtype", [*FLOATS, torch.int64])
@pytest.mark.parametrize("dims", [[0], [-1, 0], [1, 2, 0]])
@pytest.mark.parametrize("keep", [False, True])
def test_logsumexp(dtype, dims, keep):
    compare("aten.logsumexp", (5 * torch.randn(3, 4, 7)).to(dtype), dims, keep)


def test_logsumexp_corners():
    infinite = torch.tensor([[-inf, -inf], [inf, 0.0], [float("nan"), 1.0]])
    compare("aten.logsumexp", infinite, [1], False)
    compare("aten.logsumexp", torch.empty(3, 0), [1], False)
    compare("aten.logsumexp", torch.tensor(2.0), [0], False)
