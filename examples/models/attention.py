"""Multi-head self-attention in two equivalent forms."""

from __future__ import annotations

import math

import torch
from torch import nn
from torch.nn import functional as F


class SelfAttention(nn.Module):
    """Multi-head self-attention on [batch, length, width], computed with
    scaled_dot_product_attention if `fused`, otherwise with matmul, mask, softmax, dropout
    and matmul. If `causal`, no position attends to a later position."""

    def __init__(
        self, width: int, heads: int, dropout: float, causal: bool, fused: bool
    ) -> None:
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.causal, self.fused = causal, fused
        self.query = nn.Linear(width, width)
        # Without bias: it would shift a query's scores equally for all keys, which softmax
        # ignores. The bias's gradient would be rounding noise, which Adam would amplify to
        # full steps.
        self.key = nn.Linear(width, width, bias=False)
        self.value = nn.Linear(width, width)
        self.output = nn.Linear(width, width)

    def forward(
        self, x: torch.Tensor, padding: torch.Tensor | None = None
    ) -> torch.Tensor:
        batch, length, width = x.shape

        def split(projected: torch.Tensor) -> torch.Tensor:
            return projected.view(batch, length, self.heads, -1).transpose(1, 2)

        query, key = split(self.query(x)), split(self.key(x))
        value = split(self.value(x))
        attend = self._fused if self.fused else self._explicit
        mixed = attend(query, key, value, padding)
        return self.output(mixed.transpose(1, 2).reshape(batch, length, width))

    def _fused(self, query, key, value, padding):
        allowed = None if padding is None else ~padding[:, None, None, :]
        return F.scaled_dot_product_attention(
            query,
            key,
            value,
            attn_mask=allowed,
            dropout_p=self.dropout if self.training else 0.0,
            is_causal=self.causal,
        )

    def _explicit(self, query, key, value, padding):
        scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
        if self.causal:
            length = scores.shape[-1]
            ones = torch.ones(length, length, dtype=torch.bool, device=scores.device)
            scores = scores.masked_fill(ones.triu(1), float("-inf"))
        if padding is not None:
            scores = scores.masked_fill(padding[:, None, None, :], float("-inf"))
        weights = F.dropout(F.softmax(scores, dim=-1), self.dropout, self.training)
        return weights @ value
