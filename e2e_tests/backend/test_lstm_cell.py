"""In nn.LSTMCell, everything after the matrix products is one op and its gradient
another."""

from __future__ import annotations

import pytest
import torch
import torch_ltc
from comparison import assert_close
from torch import nn

TOLERANCE = {torch.bfloat16: {"rtol": 0.02, "atol": 0.01}}


def unrolled(device: str, dtype=torch.float32, result="both", bias=True, twice=False):
    """Returns the states after three steps, gradients and, if `twice`, second-order
    gradients."""
    torch.manual_seed(0)
    cell = nn.LSTMCell(3, 4, bias=bias).to(dtype)
    inputs = [torch.randn(2, n, dtype=dtype) for n in (3, 4, 4)]
    cell = cell.to(device)
    x, *state = inputs = [t.to(device).requires_grad_() for t in inputs]
    for _ in range(3):
        state = cell(x, state)
    used = {"both": state, "hy": state[:1], "cy": state[1:]}[result]
    leaves = [*inputs, *cell.parameters()]
    loss = sum(value.square().sum() for value in used)
    gradients = torch.autograd.grad(loss, leaves, create_graph=twice)
    results = [*state, *gradients]
    if twice:
        loss = sum(gradient.square().sum() for gradient in gradients)
        results += torch.autograd.grad(loss, leaves)
    return [value.detach().cpu() for value in results]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("result", ["both", "hy", "cy"])
def test_values_and_gradients(dtype: torch.dtype, result: str) -> None:
    assert_close(
        unrolled("lazy", dtype, result),
        unrolled("cpu", dtype, result),
        **TOLERANCE.get(dtype, {}),
    )


def test_without_bias() -> None:
    assert_close(unrolled("lazy", bias=False), unrolled("cpu", bias=False))


def test_gradients_of_gradients() -> None:
    assert_close(
        unrolled("lazy", torch.float64, twice=True),
        unrolled("cpu", torch.float64, twice=True),
    )


def test_costs() -> None:
    unrolled("lazy")
    before = torch_ltc.metrics()
    unrolled("lazy")
    after = torch_ltc.metrics()
    assert after["traced_ops"] - before["traced_ops"] <= 95  # 165 without lstm_gates
    assert after["compilations"] == before["compilations"]
    assert after["fallback_calls"] == before["fallback_calls"]


def test_a_forced_fallback_has_the_same_values() -> None:
    with torch_ltc.config(force_fallback="torch_ltc::lstm_gates*"):
        eagerly = unrolled("lazy")
    ops = {entry["op"] for entry in torch_ltc.fallbacks()}
    assert {"torch_ltc::lstm_gates", "torch_ltc::lstm_gates_backward"} <= ops
    assert_close(eagerly, unrolled("cpu"))


def test_transforms() -> None:
    torch.manual_seed(0)
    cells = {"cpu": nn.LSTMCell(3, 4)}
    cells["lazy"] = nn.LSTMCell(3, 4).to("lazy")
    cells["lazy"].load_state_dict(cells["cpu"].state_dict())
    x, tangent = torch.randn(2, 3), torch.randn(2, 3)

    def run(device: str) -> list[torch.Tensor]:
        def loss(value: torch.Tensor) -> torch.Tensor:
            return cells[device](value)[0].square().sum()

        point, direction = x.to(device), tangent.to(device)
        gradient = torch.func.grad(loss)(point)
        derivative = torch.func.jvp(loss, (point,), (direction,))[1]
        return [gradient.detach().cpu(), derivative.detach().cpu()]

    assert_close(run("lazy"), run("cpu"))


def test_unequal_batches_are_rejected_as_by_eager() -> None:
    def error_of(device: str) -> str:
        cell = nn.LSTMCell(3, 4).to(device)
        state = [torch.ones(3, 4, device=device) for _ in range(2)]
        with pytest.raises(RuntimeError) as raised:
            torch.lstm_cell(torch.ones(2, 3, device=device), state, *cell.parameters())
        return type(raised.value).__name__

    assert error_of("lazy") == error_of("cpu")
