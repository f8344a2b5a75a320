"""Random ops that PyTorch derives from draws which don't depend on values: the draws
are eager's, and the rest is part of the program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Generator, Tensor

from torch_ltc._decompositions.checks import zero_if

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
    # Row-major, whatever the strides of the deviations.
    drawn = _standard_normal(std.new_empty(std.shape), generator)
    return drawn * _checked_deviation(std).contiguous() + mean


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
        x.shape[-1] <= 1 << 24, lambda: "number of categories cannot exceed 2^24"
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


def _checked_deviation(std: Tensor) -> Tensor:
    zero = zero_if(std >= 0, "normal expects all elements of std >= 0.0")
    return std + zero.to(std.dtype)


def _checked_weights(x: Tensor, by_sums: bool) -> Tensor:
    """Zero, if the weights of the samples are valid. Two of eager's kernels."""
    if by_sums:
        distribution = "invalid multinomial distribution"
        entry = f"{distribution} (encountering probability entry"
        zero = zero_if(x >= 0, f"{entry} < 0)")
        zero = zero + zero_if(x < torch.inf, f"{entry} = infinity or NaN)")
    else:
        zero = zero_if(
            (x >= 0) & (x < torch.inf),
            "probability tensor contains either `inf`, `nan` or element < 0",
        )
    return zero + zero_if(
        x.sum(-1) > 0,
        "invalid multinomial distribution (sum of probabilities <= 0)",
    )


def multinomial(
    x: Tensor,
    num_samples: int,
    replacement: bool = False,
    *,
    generator: Generator | None = None,
) -> Tensor:
    """Eager's numbers: the largest of weighted exponentials, or with replacement one
    uniform double for each sample, looked up in the cumulative probabilities."""
    _check_multinomial(x, num_samples, replacement)
    by_sums = replacement and num_samples > 1
    zero = _checked_weights(x, by_sums)
    if not by_sums:
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
