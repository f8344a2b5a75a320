"""Random ops that PyTorch makes of draws which don't depend on values: the draws are
eager's, what is made of them is part of the program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Generator, Tensor

aten = torch.ops.aten


def _standard_normal(like: Tensor, generator: Generator | None) -> Tensor:
    return aten.normal_functional(like, 0.0, 1.0, generator=generator)


def normal_of_tensors(
    mean: Tensor, std: Tensor, *, generator: Generator | None = None
) -> Tensor:
    sizes = torch.broadcast_shapes(mean.shape, std.shape)
    drawn = _standard_normal(mean.new_zeros(sizes), generator)
    return (drawn * _checked_deviation(std)).to(mean.dtype) + mean


def normal_around(
    mean: Tensor, std: float = 1.0, *, generator: Generator | None = None
) -> Tensor:
    like = torch.empty_like(mean)
    return aten.normal_functional(like, 0.0, std, generator=generator) + mean


def normal_scaled(
    mean: float, std: Tensor, *, generator: Generator | None = None
) -> Tensor:
    drawn = _standard_normal(torch.empty_like(std), generator)
    return drawn * _checked_deviation(std) + mean


def normal_of_numbers(
    mean: float,
    std: float,
    size: Sequence[int],
    *,
    generator: Generator | None = None,
    dtype: torch.dtype | None = None,
    **_: Any,
) -> Tensor:
    like = torch.zeros(size, dtype=dtype, device="lazy")
    return aten.normal_functional(like, mean, std, generator=generator)


def _check_multinomial(x: Tensor, num_samples: int, replacement: bool) -> None:
    torch._check(
        0 < x.dim() <= 2, lambda: "prob_dist must be 1 or 2 dim (aten::multinomial)"
    )
    torch._check(
        x.is_floating_point(),
        lambda: (
            "multinomial only supports floating-point dtypes for input, got: "
            f"{x.dtype} (aten::multinomial)"
        ),
    )
    torch._check(
        num_samples > 0,
        lambda: "cannot sample n_sample <= 0 samples (aten::multinomial)",
    )
    torch._check(
        replacement or num_samples <= x.shape[-1],
        lambda: (
            "cannot sample n_sample > prob_dist.size(-1) samples without "
            "replacement (aten::multinomial)"
        ),
    )


def _zero_if(is_valid: Tensor) -> Tensor:
    """Zero; the program ends with an error, an index out of range, if not all of
    `is_valid` is true. Eager raises its error at the call."""
    position = torch.where(is_valid.all(), 0, 1).reshape(1)
    zero = torch.zeros(1, dtype=torch.int64, device=position.device)
    return zero.gather(0, position)


def _checked_deviation(std: Tensor) -> Tensor:
    return std + _zero_if(std >= 0).reshape(()).to(std.dtype)


def multinomial(
    x: Tensor,
    num_samples: int,
    replacement: bool = False,
    *,
    generator: Generator | None = None,
) -> Tensor:
    """Eager's numbers: the largest of weighted exponentials, or with replacement
    one uniform double a sample in the sums of probabilities."""
    _check_multinomial(x, num_samples, replacement)
    zero = _zero_if(((x >= 0) & (x < float("inf"))).all() & (x.sum(-1) > 0))
    if not replacement or num_samples == 1:
        drawn = aten.exponential(torch.empty_like(x), 1.0, generator=generator)
        weights = x / drawn
        if num_samples == 1:
            return weights.argmax(-1, keepdim=True) + zero
        return weights.topk(num_samples, -1)[1] + zero
    sums = x.cumsum(-1)
    sums = (sums / sums[..., -1:]).double()
    like = torch.zeros(
        (*x.shape[:-1], num_samples), dtype=torch.float64, device=x.device
    )
    uniform = aten.uniform(like, 0.0, 1.0, generator=generator)
    return torch.searchsorted(sums, uniform).clamp(max=x.shape[-1] - 1) + zero
