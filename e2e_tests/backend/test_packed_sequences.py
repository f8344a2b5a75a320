"""pack_padded_sequence and pad_packed_sequence have eager's results, and sequences of
different lengths share programs."""

from __future__ import annotations

import itertools
import random

import pytest
import torch
import torch_ltc
from comparison import assert_close
from counting import counting
from torch import nn
from torch.nn.utils import rnn

SHAPES = [(), (3,), (2, 3)]
DTYPES = [torch.float32, torch.float64, torch.bfloat16, torch.int64]


def round_trip(
    device: str,
    lengths: list[int],
    shape: tuple,
    dtype: torch.dtype,
    **arguments: object,
) -> list[object]:
    """Packs and unpacks sequences. Returns the packed and padded values, the gradient, the
    lengths and their device, and the strides and dtype of the padded values."""
    torch.manual_seed(0)
    x = (torch.randn(len(lengths), max(lengths), *shape) * 5).to(dtype)
    if not arguments.get("batch_first"):
        x = x.transpose(0, 1).contiguous()
    x = x.to(device).requires_grad_(dtype.is_floating_point)
    packed = rnn.pack_padded_sequence(
        x,
        torch.tensor(lengths),
        batch_first=bool(arguments.get("batch_first")),
        enforce_sorted=False,
    )
    padded, sizes = rnn.pad_packed_sequence(packed, **arguments)
    gradient = None
    if x.requires_grad:
        weight = torch.arange(padded.numel()).view(padded.shape).to(device)
        gradient = torch.autograd.grad((padded.nan_to_num() * weight).sum(), x)[0].cpu()
    facts = [sizes, sizes.device, padded.stride(), padded.dtype]
    return [packed.data.detach().cpu(), padded.detach().cpu(), gradient, *facts]


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_round_trip(dtype: torch.dtype, batch_first: bool) -> None:
    draw = random.Random(0)
    for shape, longer in itertools.product(SHAPES, (0, 3)):
        lengths = [draw.randint(1, 9) for _ in range(draw.randint(1, 6))]
        arguments = {
            "padding_value": 7 if dtype == torch.int64 else float("nan"),
            "total_length": max(lengths) + longer if longer else None,
            "batch_first": batch_first,
        }
        ours = round_trip("lazy", lengths, shape, dtype, **arguments)
        eager = round_trip("cpu", lengths, shape, dtype, **arguments)
        assert_close(ours[:3], eager[:3], equal_nan=True)
        assert ours[4:] == eager[4:]
        assert torch.equal(ours[3], eager[3])


@pytest.mark.parametrize(
    ("sizes", "total"), [([2, 1], 1), ([1, 2], 0), ([2, 0], 0), ([2, 2], 0), ([3], 2)]
)
def test_sizes_of_no_packed_sequences(sizes: list[int], total: int) -> None:
    def outcome(device: str) -> object:
        data = torch.ones(3, 2, device=device)
        try:
            call = torch._VF._pad_packed_sequence
            return call(data, torch.tensor(sizes), False, 0.0, total)[0].shape
        except RuntimeError as error:
            return str(error).split(" [aten")[0]

    assert outcome("lazy") == outcome("cpu")


def test_lengths_that_differ_at_each_step_share_programs() -> None:
    """A tagger compiles at most 4 programs in 12 steps whose lengths, batch size and
    number of elements vary."""
    torch.manual_seed(0)
    draw = random.Random(1)
    embed = nn.Embedding(50, 8, padding_idx=0).to("lazy")
    lstm = nn.LSTM(8, 8, bidirectional=True, batch_first=True).to("lazy")
    head = nn.Linear(16, 5).to("lazy")
    parameters = [*embed.parameters(), *lstm.parameters(), *head.parameters()]
    optimizer = torch.optim.SGD(parameters, lr=0.1)
    with torch_ltc.config(tier="compile"), counting() as counts:
        for step in range(12):
            longest = 20 + 3 * step
            lengths = [
                longest,
                *(draw.randint(12, longest) for _ in range(3 + step % 5)),
            ]
            words = torch.randint(1, 50, (len(lengths), longest)).to("lazy")
            packed = rnn.pack_padded_sequence(
                embed(words), torch.tensor(lengths), True, enforce_sorted=False
            )
            output, _ = rnn.pad_packed_sequence(lstm(packed)[0], batch_first=True)
            loss = head(output).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    assert counts.compilations <= 4
    assert not counts.fallback_calls
