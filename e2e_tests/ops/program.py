"""The definition of one row of the op tests, and its inputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

F32, F64, BF16 = torch.float32, torch.float64, torch.bfloat16
I64, I32, BOOL = torch.int64, torch.int32, torch.bool
C64, C128 = torch.complex64, torch.complex128

FLOATS = (F32, F64, BF16)
WIDE = (F32, F64)  # for rows whose bfloat16 results would be mostly rounding errors
COMPLEX = (C64, C128)
INTS = (I64, I32)
NUMBERS = (*FLOATS, *INTS)
ALL = (*NUMBERS, BOOL)
EVERY = (*ALL, torch.float16, torch.int16, torch.int8, torch.uint8)

Maker = Callable[[torch.dtype, torch.Generator], torch.Tensor]


def any_of(*shape: int, low: float = -3.0, high: float = 3.0) -> Maker:
    """Makes random values of the row's dtype in [low, high], or random bools. Both parts of
    a complex number are in [low, high]."""

    def make(dtype: torch.dtype, generator: torch.Generator) -> torch.Tensor:
        if dtype is BOOL:
            return torch.rand(shape, generator=generator) < 0.5
        if dtype.is_floating_point:
            unit = torch.rand(shape, generator=generator, dtype=F64)
            return (unit * (high - low) + low).to(dtype)
        if dtype.is_complex:
            parts = torch.rand((*shape, 2), generator=generator, dtype=F64)
            return torch.view_as_complex(parts * (high - low) + low).to(dtype)
        first, last = int(low), max(int(high), int(low) + 1)
        return torch.randint(first, last + 1, shape, generator=generator, dtype=dtype)

    return make


def positive(*shape: int) -> Maker:
    return any_of(*shape, low=0.25, high=4.0)


def nonzero(*shape: int) -> Maker:
    """Makes numbers of either sign with magnitudes from 1 to 4; bools are true."""

    def make(dtype: torch.dtype, generator: torch.Generator) -> torch.Tensor:
        values = any_of(*shape, low=1, high=4)(dtype, generator)
        if dtype is BOOL:
            return torch.ones(shape, dtype=BOOL)
        sign = torch.rand(shape, generator=generator) < 0.5
        return torch.where(sign, -values, values)

    return make


def distinct(*shape: int) -> Maker:
    """Makes numbers that all differ clearly, for sorts and maxima with gradients."""

    def make(dtype: torch.dtype, generator: torch.Generator) -> torch.Tensor:
        count = torch.Size(shape).numel()
        order = torch.randperm(count, generator=generator) - count // 2
        if dtype is BOOL:
            return (order % 2 == 0).reshape(shape)
        step = 0.25 if dtype.is_floating_point else 1
        return (order * step).to(dtype).reshape(shape)

    return make


def of(dtype: torch.dtype, maker: Maker) -> Maker:
    """Makes an operand that has the dtype `dtype` whatever the row's dtype is."""
    return lambda _, generator: maker(dtype, generator)


def index(limit: int, *shape: int) -> Maker:
    """Makes int64 numbers in [0, limit)."""
    return lambda _, generator: torch.randint(limit, shape, generator=generator)


def mask(*shape: int) -> Maker:
    return of(BOOL, any_of(*shape))


def special() -> Maker:
    """Makes infinities, NaN, zeros of both signs, and ordinary values."""

    def make(dtype: torch.dtype, generator: torch.Generator) -> torch.Tensor:
        values = [0.0, -0.0, 1.0, -1.5, 3.0, -100.0]
        if dtype.is_floating_point:
            values += [float("inf"), float("-inf"), float("nan")]
        return torch.tensor(values).to(dtype)

    return make


@dataclass(frozen=True)
class Row:
    """One op: a function of tensors on one device, compared with eager CPU.

    `grad`: the gradients of all float and complex inputs are compared as well. `reason`: why
    the function needs a fallback or a sync. Without a `reason`, a fallback or sync fails
    the test; with one, their absence does. `tolerance`: a relative tolerance that replaces
    the dtype's.
    """

    name: str
    function: Callable[..., Any]
    inputs: Sequence[Maker] = ()
    dtypes: Sequence[torch.dtype] = FLOATS
    grad: bool = True
    reason: str = ""
    tolerance: float | None = None
    seed: int = 1

    def tensors(self, dtype: torch.dtype) -> list[torch.Tensor]:
        generator = torch.Generator().manual_seed(self.seed)
        return [make(dtype, generator) for make in self.inputs]


#: Relative tolerances. float32: about 4 ulp per op; bfloat16: eager rounds after each op, a
#: fused kernel only once.
TOLERANCE = {
    F32: 1e-5,
    F64: 1e-10,
    BF16: 2e-2,
    torch.float16: 2e-3,
    C64: 1e-5,
    C128: 1e-10,
}
