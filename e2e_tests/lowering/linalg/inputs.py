"""Inputs that are likely to fail: NaN, infinities, ties, ends of ranges."""

from __future__ import annotations

import torch

F32, F64, BF16, F16 = torch.float32, torch.float64, torch.bfloat16, torch.float16
I64, I32, I16, I8, U8, BOOL = (
    torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool,
)  # fmt: skip
FLOATS = (F32, F64, BF16, F16)
INTS = (I64, I32, I8, U8)

_generator = torch.Generator().manual_seed(7)


def random(*shape: int, dtype: torch.dtype = F32, low=-3.0, high=3.0) -> torch.Tensor:
    if dtype is BOOL:
        return torch.rand(shape, generator=_generator) < 0.5
    if not dtype.is_floating_point:
        low = max(int(low), torch.iinfo(dtype).min)
        return torch.randint(
            int(low), int(high) + 1, shape, generator=_generator, dtype=dtype
        )
    unit = torch.rand(shape, generator=_generator, dtype=F64)
    return (unit * (high - low) + low).to(dtype)


def special(dtype: torch.dtype = F32) -> torch.Tensor:
    """Returns the edge values of a dtype."""
    if dtype is BOOL:
        return torch.tensor([False, True])
    if not dtype.is_floating_point:
        info = torch.iinfo(dtype)
        values = [info.min, info.min + 1, 0, 1, 2, 7, info.max - 1, info.max]
        return torch.tensor(values, dtype=dtype)
    nan, inf = float("nan"), float("inf")
    values = [nan, inf, -inf, 0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 3.7,
              -3.7, 1e-3, 40.0, -40.0]  # fmt: skip
    return torch.tensor(values, dtype=dtype)


def grid(dtype: torch.dtype = F32) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns two tensors that broadcast to all pairs of edge values."""
    values = special(dtype)
    return values[:, None].contiguous(), values[None, :].contiguous()


def random_index(*shape: int, size: int, negative: bool = False) -> torch.Tensor:
    low = -size if negative else 0
    return torch.randint(low, size, shape, generator=_generator)
