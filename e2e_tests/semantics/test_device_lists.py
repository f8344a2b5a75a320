"""PyTorch functions that choose a path by the device take the CPU's path on device lazy,
because other paths have different values, strides and errors."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch_ltc
from comparison import assert_same
from torch import nn

LENGTHS = torch.tensor([6, 3, 5])


def _masks(device: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns a mask of padded positions and a causal mask."""
    padded = torch.arange(6) >= LENGTHS[:, None]
    causal = nn.Transformer.generate_square_subsequent_mask(6)
    return padded.to(device), causal.to(device)


def _layer(norm_first: bool, activation: str) -> nn.TransformerEncoderLayer:
    torch.manual_seed(0)
    return nn.TransformerEncoderLayer(
        16, 4, 32, batch_first=True, norm_first=norm_first, activation=activation
    ).eval()


def _encode(layer: nn.TransformerEncoderLayer, device: str) -> list[torch.Tensor]:
    """Returns the layer's results for various masks. Padded positions are zero if the
    layer uses nested tensors."""
    layer = layer.to(device)
    x = torch.linspace(-1, 1, 288).sin().view(3, 6, 16).to(device)
    padded, causal = _masks(device)
    return [
        layer(x),
        layer(x, src_key_padding_mask=padded),
        layer(x, causal),
        layer(x, causal.isinf(), padded),
        layer(x, src_key_padding_mask=torch.ones_like(padded)),
    ]


def _attend(layer: nn.TransformerEncoderLayer, device: str) -> list[torch.Tensor]:
    attention = layer.self_attn.to(device)
    x = torch.linspace(-1, 1, 288).sin().view(3, 6, 16).to(device)
    padded, causal = _masks(device)
    return [
        *attention(x, x, x, padded),
        *attention(x, x, x, attn_mask=causal),
        *attention(x, x, x, padded, attn_mask=causal, average_attn_weights=False),
        attention(x, x, x, need_weights=False)[0],
    ]


@pytest.mark.parametrize("tier", ["compile", "interpret"])
@pytest.mark.parametrize("program", [_encode, _attend])
@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_fast_paths_of_transformers(
    tier: str, program: Any, norm_first: bool, activation: str
) -> None:
    torch_ltc.reset_metrics()
    with torch.no_grad(), torch_ltc.config(tier=tier):
        layer = _layer(norm_first, activation)
        expected = program(layer, "cpu")
        results = program(layer, "lazy")
        assert_same(results, expected)
    assert [r._is_view() for r in results] == [e._is_view() for e in expected]
    assert torch_ltc.metrics()["fallback_calls"] == 0


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_padded_positions_of_an_encoder_are_zero() -> None:
    encoder = nn.TransformerEncoder(_layer(False, "relu"), 2, nn.LayerNorm(16)).eval()
    x = torch.linspace(-1, 1, 288).sin().view(3, 6, 16)
    with torch.no_grad():
        expected = encoder(x, src_key_padding_mask=_masks("cpu")[0])
        result = encoder.to("lazy")(
            x.to("lazy"), src_key_padding_mask=_masks("lazy")[0]
        )
    assert_same(result, expected)


def test_norm_takes_a_dtype() -> None:
    x = torch.linspace(-1, 1, 12).view(3, 4)
    for arguments in ({}, {"p": 3, "dim": 0}, {"p": "fro", "dim": (0, 1)}):
        expected = torch.norm(x, dtype=torch.float64, **arguments)
        assert_same(
            torch.norm(x.to("lazy"), dtype=torch.float64, **arguments), expected
        )
    with pytest.raises(RuntimeError, match=r"linalg\.vector_norm: Expected a floating"):
        torch.norm(torch.arange(3, device="lazy"))
