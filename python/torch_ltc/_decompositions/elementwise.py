"""Decompositions of special functions."""

from __future__ import annotations

import math

import torch
from torch import Tensor


def mvlgamma(x: Tensor, p: int) -> Tensor:
    """Returns the logarithm of the multivariate gamma function. 16-bit floats are rounded
    after each step, as in eager."""
    dtype = x.dtype if x.is_floating_point() else torch.get_default_dtype()
    halves = torch.arange(-p * 0.5 + 0.5, 0.5, 0.5, dtype=dtype, device=x.device)
    terms = (halves + x.unsqueeze(-1)).lgamma()
    return terms.sum(-1) + p * (p - 1) * math.log(math.pi) * 0.25


def xlog1py(x: Tensor, other: Tensor) -> Tensor:
    """Returns x * log1p(other). Only correct below autograd, which would compute the
    gradient 0 instead of log1p(other) at x = 0."""
    dtype = torch.result_type(x, other)
    if not dtype.is_floating_point:
        dtype = torch.get_default_dtype()
    x, other = x.to(dtype), other.to(dtype)
    # The dims of the result have the order of those of `x`, as in eager.
    is_zero = (x == 0) & other.isnan().logical_not()
    return torch.where(is_zero, 0, x * other.log1p())
