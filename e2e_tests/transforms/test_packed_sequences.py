"""Recurrent networks have eager's results for packed sequences of different lengths."""

from __future__ import annotations

import pytest
import torch
import torch_ltc
from comparison import assert_close
from torch import nn
from torch.nn.utils import rnn

LENGTHS = torch.tensor([3, 5, 1])
MODELS = {"lstm": nn.LSTM, "gru": nn.GRU, "rnn": nn.RNN}


def run(
    kind: str, device: str, batch_first: bool, bidirectional: bool
) -> list[torch.Tensor]:
    torch.manual_seed(0)
    model = MODELS[kind](
        4, 6, num_layers=2, batch_first=batch_first, bidirectional=bidirectional
    ).to(device)
    padded = torch.randn((3, 5, 4) if batch_first else (5, 3, 4)).to(device)
    padded.requires_grad_()
    packed = rnn.pack_padded_sequence(padded, LENGTHS, batch_first, False)
    output, state = model(packed)
    assert output.batch_sizes.device.type == "cpu"
    result, lengths = rnn.pad_packed_sequence(output, batch_first, -1.0)
    result.square().sum().backward()
    states = state if isinstance(state, tuple) else (state,)
    gradients = [padded.grad, *(p.grad for p in model.parameters())]
    return [t.detach().cpu() for t in (result, lengths, *states, *gradients)]


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("form", [(True, False), (False, True)])
def test_network(kind: str, form: tuple[bool, bool]) -> None:
    torch_ltc.reset_metrics()
    lazy = run(kind, "lazy", *form)
    assert torch_ltc.fallbacks() == []
    assert_close(lazy, run(kind, "cpu", *form), rtol=1e-4, atol=1e-5)


def test_sequences_of_tensors() -> None:
    torch.manual_seed(0)
    rows = [torch.randn(n, 2) for n in (3, 2, 2)]
    expected = rnn.pack_sequence(rows)
    lazy = rnn.pack_sequence([row.to("lazy") for row in rows])
    assert torch.equal(lazy.data.cpu(), expected.data)
    assert torch.equal(lazy.batch_sizes, expected.batch_sizes)
    assert [t.shape for t in rnn.unpack_sequence(lazy)] == [t.shape for t in rows]


def test_in_inference_mode() -> None:
    torch.manual_seed(0)
    model = nn.LSTM(2, 3)
    x = torch.randn(4, 2, 2)
    packed = rnn.pack_padded_sequence(x, torch.tensor([4, 2]))
    expected = model(packed)[0].data
    lazy = model.to("lazy")
    with torch.inference_mode():
        packed = rnn.pack_padded_sequence(x.to("lazy") * 1, torch.tensor([4, 2]))
        assert packed.batch_sizes.device.type == "cpu"
        assert_close(lazy(packed)[0].data, expected)


@pytest.mark.parametrize(
    ("lengths", "text"),
    [([1, 5, 3], "sorted in decreasing order"), ([5, 3, 0], "greater than 0"),
     ([5, 3], "equal to batch_size")],
)  # fmt: skip
def test_rejected_like_eager(lengths: list[int], text: str) -> None:
    for device in ("cpu", "lazy"):
        with pytest.raises(RuntimeError, match=text):
            rnn.pack_padded_sequence(
                torch.ones(5, 3, 2, device=device), torch.tensor(lengths)
            )
