"""Decompositions of recurrent layers into their time steps."""

import pytest
import torch
from decompositions.comparison import compare

STEPS, BATCH, SIZE = 3, 2, 4


def states(count):
    return [torch.randn(BATCH, SIZE) for _ in range(count)]


def gradients(given, count):
    """Returns gradients of the output and of the last states, with None for each gradient
    whose flag in `given` is 0."""
    grads = [torch.randn(STEPS, BATCH, SIZE), *states(count)]
    return [grad if is_given else None for grad, is_given in zip(grads, given)]


@pytest.mark.parametrize("reverse", [False, True])
def test_lstm(reverse):
    projections = torch.randn(STEPS, BATCH, 4 * SIZE)
    weight = torch.randn(4 * SIZE, SIZE)
    operands = [projections, *states(2), weight]
    compare("torch_ltc.lstm", *operands, reverse)
    output, _, _, gates, cells = torch.ops.torch_ltc.lstm(*operands, reverse)
    for given in [(1, 1, 1), (1, 0, 0), (0, 1, 0), (0, 0, 1)]:
        compare(
            "torch_ltc.lstm_backward",
            *gradients(given, 2), *operands[1:], output, gates, cells, reverse,
        )  # fmt: skip


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_gru(reverse, bias):
    projections = torch.randn(STEPS, BATCH, 3 * SIZE)
    weight, (state,) = torch.randn(3 * SIZE, SIZE), states(1)
    bias = torch.randn(3 * SIZE) if bias else None
    compare("torch_ltc.gru", projections, state, weight, bias, reverse)
    output, _, gates = torch.ops.torch_ltc.gru(
        projections, state, weight, bias, reverse
    )
    for given in [(1, 1), (1, 0), (0, 1)]:
        compare(
            "torch_ltc.gru_backward",
            *gradients(given, 1), state, weight, output, gates, reverse,
        )  # fmt: skip


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("relu", [False, True])
def test_rnn(reverse, relu):
    projections, (state,) = torch.randn(STEPS, BATCH, SIZE), states(1)
    weight = torch.randn(SIZE, SIZE)
    compare("torch_ltc.rnn", projections, state, weight, relu, reverse)
    output, _ = torch.ops.torch_ltc.rnn(projections, state, weight, relu, reverse)
    for given in [(1, 1), (1, 0), (0, 1)]:
        compare(
            "torch_ltc.rnn_backward",
            *gradients(given, 1), state, weight, output, relu, reverse,
        )  # fmt: skip
