"""`flex_attention` of lazy tensors has the values and gradients of its formula (on the CPU
it has no gradients, torch 2.13)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch_ltc
from comparison import assert_close
from torch.nn.attention.flex_attention import (
    AuxRequest,
    create_block_mask,
    flex_attention,
)

SIZE = 12


def _causal(b: Any, h: Any, i: torch.Tensor, j: torch.Tensor) -> torch.Tensor:
    return i >= j


def _window(b: Any, h: Any, i: torch.Tensor, j: torch.Tensor) -> torch.Tensor:
    return (i - j).abs() < 4


def _biased(bias: torch.Tensor) -> Callable:
    """Returns a `score_mod` that adds a bias per head and one proportional to i - j."""

    def score(s: torch.Tensor, b: Any, h: Any, i: Any, j: Any) -> torch.Tensor:
        return s + bias[h] - (i - j) * 0.1

    return score


def _inputs(heads: int = 2) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    shapes = [(2, 2, SIZE, 8), (2, heads, SIZE, 8), (2, heads, SIZE, 8), (2,)]
    return [torch.randn(shape, generator=generator) for shape in shapes]


def _expected(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, bias: torch.Tensor, mask: Any
) -> torch.Tensor:
    i, j = torch.arange(SIZE)[:, None], torch.arange(SIZE)
    scores = q @ k.mT / q.shape[-1] ** 0.5 + bias[:, None, None] - (i - j) * 0.1
    if mask:
        scores = scores.masked_fill(~mask(0, 0, i, j), -torch.inf)
    return scores.softmax(-1) @ v


@pytest.mark.parametrize("compiled", [False, True], ids=["called", "compiled"])
@pytest.mark.parametrize("mask", [None, _causal, _window])
def test_values_and_gradients(mask: Callable | None, compiled: bool) -> None:
    torch._dynamo.reset()
    leaves = [x.requires_grad_() for x in _inputs()]
    expected = _expected(*leaves, mask)
    expected.sin().sum().backward()
    lazy = [x.detach().to("lazy").requires_grad_() for x in leaves]
    *qkv, bias = lazy
    blocks = mask and create_block_mask(mask, None, None, SIZE, SIZE, device="lazy")
    attention = flex_attention
    if compiled:
        attention = torch.compile(flex_attention, backend="torch_ltc")
    torch_ltc.reset_metrics()
    actual = attention(*qkv, score_mod=_biased(bias), block_mask=blocks)
    actual.sin().sum().backward()
    assert torch_ltc.fallbacks() == []
    assert_close(actual, expected)
    for a, e in zip(lazy, leaves, strict=True):
        assert_close(a.grad, e.grad)
    torch._dynamo.reset()


def test_shared_heads_and_auxiliary_results() -> None:
    q, k, v, _ = _inputs(heads=1)
    scores = q @ k.mT / q.shape[-1] ** 0.5
    request = AuxRequest(lse=True, max_scores=True)
    lazy = [x.to("lazy") for x in (q, k, v)]
    result, aux = flex_attention(*lazy, enable_gqa=True, return_aux=request)
    assert_close(result, scores.softmax(-1) @ v)
    assert_close(aux.lse, scores.logsumexp(-1))
    assert_close(aux.max_scores, scores.amax(-1))
