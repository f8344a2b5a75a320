"""Decompositions of ops that copy parts of tensors or permute channels."""

from __future__ import annotations

import torch
from torch import Tensor
from torch._prims_common import (
    ELEMENTWISE_TYPE_PROMOTION_KIND,
    elementwise_dtypes,
    suggest_memory_format,
)


def block_diag(tensors: list[Tensor]) -> Tensor:
    """Converts the operands to the common dtype before PyTorch's formula runs. The formula
    makes each operand a matrix before it promotes dtypes, so operands of rank 0 would
    affect the dtype as much as the others."""
    from torch._decomp import decomposition_table

    _, dtype = elementwise_dtypes(
        *tensors, type_promotion_kind=ELEMENTWISE_TYPE_PROMOTION_KIND.NO_OPMATH
    )
    formula = decomposition_table[torch.ops.aten.block_diag.default]
    return formula([tensor.to(dtype) for tensor in tensors])


def narrow_copy(x: Tensor, dim: int, start: int, length: int) -> Tensor:
    return x.narrow(dim, start, length).clone(memory_format=torch.contiguous_format)


def channel_shuffle(x: Tensor, groups: int) -> Tensor:
    from torch._decomp import decomposition_table

    formula = decomposition_table[torch.ops.aten.channel_shuffle.default]
    return formula(x, groups).contiguous(memory_format=suggest_memory_format(x))
