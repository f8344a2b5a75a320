"""Decompositions of elementwise ops with several operands or results, and of copies."""

import pytest
import torch
from decompositions.comparison import compare
from torch_text import Parameter

FLOATS = [torch.float32, torch.float64, torch.bfloat16]


@pytest.mark.parametrize("dtype", FLOATS)
def test_log_sigmoid(dtype):
    x = torch.tensor([-200.0, -3.0, 0.0, 3.0, 200.0, float("inf")]).to(dtype)
    compare("aten.log_sigmoid_forward", x)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("dim", [-1, 0])
def test_glu(dtype, dim):
    x = torch.randn(4, 6).to(dtype)
    compare("aten.glu", x, dim)
    grad = torch.randn((2, 6) if dim == 0 else (4, 3)).to(dtype)
    compare("aten.glu_backward", grad, x, dim)


@pytest.mark.parametrize("dtype", FLOATS)
def test_prelu_backward(dtype):
    x, grad, weight = (torch.randn(3, 4).to(dtype) for _ in range(3))
    compare("aten._prelu_kernel_backward", grad, x, weight)


@pytest.mark.parametrize("dtype", FLOATS)
def test_dropout_backward(dtype):
    grad, mask = torch.randn(3, 4).to(dtype), torch.rand(3, 4) < 0.5
    compare("aten.native_dropout_backward", grad, mask, 1.25)
    compare("aten.native_dropout_backward", grad, mask, Parameter(2.0))


def test_copy():
    compare("aten.copy", torch.zeros(3, 4), torch.randn(4), False)
    compare("aten.copy", torch.zeros(3, 4), torch.arange(4), False)
    compare("aten.copy", torch.zeros(3), torch.tensor(True), False)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("decay", [1, Parameter(0.999)])
def test_adam_update(dtype, decay):
    self, grad, average = (torch.randn(3, 4).to(dtype) for _ in range(3))
    square = torch.rand(3, 4).to(dtype)
    numbers = [Parameter(n) for n in (0.1, 0.99, 0.01, 0.3, 1e-8, -0.02)]
    compare("torch_ltc.adam_update", self, grad, average, square, *numbers, decay)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("size", [1, 7, 37, 1000, 100_003])
@pytest.mark.parametrize("weight", [0.1, 0.7])
def test_adam_update_has_the_bits_of_eagers_ops(dtype, size, weight):
    self, grad, average = (torch.randn(size, dtype=dtype) for _ in range(3))
    square = torch.rand(size, dtype=dtype)
    expected = torch.lerp(average, grad, weight)
    squares = (square * 0.99).addcmul_(grad, grad, value=0.01)
    root = squares.sqrt().div_(0.3).add_(1e-8)
    updated = (self * 0.999).addcdiv_(expected, root, value=-0.02)
    numbers = {"lerp_weight": weight, "beta2": 0.99, "value": 0.01, "decay": 0.999}
    numbers |= {"bias2_root": 0.3, "eps": 1e-8, "negative_step_size": -0.02}
    operands = (self, grad, average, square)
    update = torch.ops.torch_ltc.adam_update
    results = update(*operands, **numbers)
    outputs = {"out0": self, "out1": average, "out2": square}  # the interpreter does so
    in_place = update.out(*operands, **numbers, **outputs)
    for values in (results, in_place):
        for value, reference in zip(values, (updated, expected, squares), strict=True):
            assert torch.equal(value, reference)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_lstm_gates(dtype):
    inputs, hidden = (torch.randn(2, 12).to(dtype) for _ in range(2))
    compare("torch_ltc.lstm_gates", inputs, hidden, torch.randn(2, 3).to(dtype))


@pytest.mark.parametrize("has_hy", [True, False])
@pytest.mark.parametrize("has_cy", [True, False])
def test_lstm_gates_backward(has_hy, has_cy):
    hy, cy, cx, state = (torch.randn(2, 3) for _ in range(4))
    gates = torch.randn(2, 12)
    hy, cy = hy if has_hy else None, cy if has_cy else None
    compare("torch_ltc.lstm_gates_backward", hy, cy, gates, cx, state)
