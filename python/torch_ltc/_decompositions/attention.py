"""Decompositions of the fast paths of `nn.MultiheadAttention` and
`nn.TransformerEncoderLayer` in evaluation mode; each fast path is one op in eager PyTorch.
For nested tensors, PyTorch's kernels run instead."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional as F

#: Values of `mask_type`: a mask [length, length] of positions, or [batch, length] of keys.
#: For other values, the mask has the sizes of the scores.
_OF_POSITIONS, _OF_KEYS = 0, 1


def _masked(scores: Tensor, mask: Tensor, mask_type: int | None) -> Tensor:
    length = scores.shape[-1]
    mask = mask.bool()  # a float mask, meant to be added, is -inf at excluded places
    if mask_type == _OF_POSITIONS:
        mask = mask.view(1, 1, length, length)
    elif mask_type == _OF_KEYS:
        mask = mask.view(-1, 1, 1, length)
    return scores.masked_fill(mask, -math.inf)


def _check(query: Tensor, key: Tensor, value: Tensor) -> None:
    if not (query.dim() == 3 and query.shape == key.shape == value.shape):
        raise NotImplementedError


def native_multi_head_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim: int,
    num_head: int,
    qkv_weight: Tensor,
    qkv_bias: Tensor,
    proj_weight: Tensor,
    proj_bias: Tensor,
    mask: Tensor | None = None,
    need_weights: bool = True,
    average_attn_weights: bool = True,
    mask_type: int | None = None,
) -> tuple[Tensor, Tensor | None]:
    """Returns the projected attention [batch, length, width], and the probabilities (if
    they are needed) by head or averaged over heads."""
    _check(query, key, value)
    batch, length, width = query.shape
    size = width // num_head

    def heads(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        return F.linear(x, weight, bias).view(batch, length, num_head, size).transpose(1, 2)  # fmt: skip

    operands = zip(
        (query, key, value), qkv_weight.chunk(3), qkv_bias.chunk(3), strict=True
    )
    q, k, v = (heads(*parts) for parts in operands)
    scores = torch.matmul(q / math.sqrt(size), k.transpose(-2, -1))
    if mask is not None:
        scores = _masked(scores, mask, mask_type)
    weights = scores.softmax(-1)
    joined = torch.matmul(weights, v).transpose(1, 2).reshape(batch, length, width)
    result = F.linear(joined, proj_weight, proj_bias)
    if not need_weights:
        return result, None
    if average_attn_weights:
        return result, weights.sum(1) / num_head
    return result, weights


def transformer_encoder_layer(
    src: Tensor,
    embed_dim: int,
    num_heads: int,
    qkv_weight: Tensor,
    qkv_bias: Tensor,
    proj_weight: Tensor,
    proj_bias: Tensor,
    use_gelu: bool,
    norm_first: bool,
    eps: float,
    norm_weight_1: Tensor,
    norm_bias_1: Tensor,
    norm_weight_2: Tensor,
    norm_bias_2: Tensor,
    ffn_weight_1: Tensor,
    ffn_bias_1: Tensor,
    ffn_weight_2: Tensor,
    ffn_bias_2: Tensor,
    mask: Tensor | None = None,
    mask_type: int | None = None,
) -> Tensor:
    _check(src, src, src)

    def attend(x: Tensor) -> Tensor:
        attention = (qkv_weight, qkv_bias, proj_weight, proj_bias)
        return native_multi_head_attention(
            x, x, x, embed_dim, num_heads, *attention, mask, False, True, mask_type
        )[0]

    def feed(x: Tensor) -> Tensor:
        hidden = F.linear(x, ffn_weight_1, ffn_bias_1)
        hidden = F.gelu(hidden) if use_gelu else F.relu(hidden)
        return F.linear(hidden, ffn_weight_2, ffn_bias_2)

    def norm_1(x: Tensor) -> Tensor:
        return F.layer_norm(x, (embed_dim,), norm_weight_1, norm_bias_1, eps)

    def norm_2(x: Tensor) -> Tensor:
        return F.layer_norm(x, (embed_dim,), norm_weight_2, norm_bias_2, eps)

    if norm_first:
        x = src + attend(norm_1(src))
        return x + feed(norm_2(x))
    x = norm_1(src + attend(src))
    return norm_2(x + feed(x))
