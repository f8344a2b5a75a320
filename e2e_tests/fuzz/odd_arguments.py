"""Draws arguments that an op's schema allows but hardly anybody passes."""

from __future__ import annotations

import random
from typing import Any

import torch
from fuzz.recorded_calls import Call

DTYPES = [
    torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64,
    torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64,
]  # fmt: skip
_NUMBERS = [0, 1, -1, 2, -3, 7, 0.5, -2.5, 0.0, torch.inf, torch.nan, True, 2 + 1j, 300]
_INTEGERS = [0, 1, -1, 2, -2, 3, -7, 5, 100]


def odd_call(call: Call, rng: random.Random) -> Call:
    """Returns the call with one or two arguments replaced by odd ones."""
    values: dict[Any, Any] = {**dict(enumerate(call.args)), **call.kwargs}
    places = rng.sample(list(values), min(rng.choice([1, 1, 2]), len(values)))
    for place in places:
        if _takes_any_number(call.op, place) and rng.random() < 0.8:
            values[place] = rng.choice(_NUMBERS)
        else:
            values[place] = _changed(values[place], rng)
    args = tuple(values[i] for i in range(len(call.args)))
    return Call(call.op, args, {name: values[name] for name in call.kwargs})


def _takes_any_number(op: Any, place: Any) -> bool:
    """Whether the schema's type of an argument is Scalar: the recorded call may pass an
    integer where a float or complex number is allowed."""
    arguments = op._schema.arguments
    argument = next(a for i, a in enumerate(arguments) if place in (a.name, i))
    kind = argument.type
    if isinstance(kind, torch.OptionalType):
        kind = kind.getElementType()
    return isinstance(kind, torch.NumberType)


def _changed(value: Any, rng: random.Random) -> Any:
    if isinstance(value, torch.Tensor):
        return rng.choice(_TENSORS)(value, rng)
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return rng.choice(_INTEGERS)
    if isinstance(value, (float, complex)):
        return rng.choice(_NUMBERS)
    if isinstance(value, torch.dtype):
        return rng.choice(DTYPES)
    if isinstance(value, (list, tuple)):
        return _changed_list(list(value), rng)
    return value


def _changed_list(values: list, rng: random.Random) -> list:
    if not values:
        return values
    longer, shorter = [*values, values[-1]], values[:-1]
    other = list(values)
    place = rng.randrange(len(values))
    other[place] = _changed(values[place], rng)
    return rng.choice([[], longer, shorter, other, other, other])


def _of_other_dtype(t: torch.Tensor, rng: random.Random) -> torch.Tensor:
    dtype = rng.choice(DTYPES)
    return (t.real if t.is_complex() and not dtype.is_complex else t).to(dtype)


def _of_other_size(t: torch.Tensor, rng: random.Random) -> torch.Tensor:
    if not t.dim():
        return t.expand(rng.randrange(4)).clone()
    dim = rng.randrange(t.dim())
    extent = t.shape[dim]
    size = rng.choice([0, 1, extent + 1, max(extent - 1, 0), 2 * extent])
    if not t.numel():
        shape = list(t.shape)
        shape[dim] = size
        return torch.zeros(shape, dtype=t.dtype)
    return t.index_select(dim, torch.arange(size) % extent)


def _of_higher_rank(t: torch.Tensor, rng: random.Random) -> torch.Tensor:
    return t.unsqueeze(rng.randrange(t.dim() + 1)).clone()


def _of_lower_rank(t: torch.Tensor, rng: random.Random) -> torch.Tensor:
    if not t.dim():
        return t.reshape(1)
    dim = rng.randrange(t.dim())
    return t.select(dim, 0).clone() if t.shape[dim] else t.sum(dim).to(t.dtype)


def _scalar(t: torch.Tensor, rng: random.Random) -> torch.Tensor:
    return t.flatten()[0].clone() if t.numel() else torch.ones((), dtype=t.dtype)


def _of_one_element(t: torch.Tensor, rng: random.Random) -> torch.Tensor:
    return _scalar(t, rng).reshape([1] * rng.randrange(1, 4))


def _flat(t: torch.Tensor, rng: random.Random) -> torch.Tensor:
    return t.flatten().clone()


def _strided(t: torch.Tensor, rng: random.Random) -> torch.Tensor:
    """Returns the tensor with different strides: with column-major matrices, or as every
    second element of a larger tensor."""
    if t.dim() > 1 and rng.random() < 0.5:
        return t.mT.contiguous().mT
    return t.repeat_interleave(2, -1)[..., ::2] if t.dim() else t


def _of_other_values(t: torch.Tensor, rng: random.Random) -> torch.Tensor:
    result = t.clone()
    if not result.numel():
        return result
    place = rng.randrange(result.numel())
    if t.dtype == torch.bool:
        values: list[Any] = [True, False]
    elif t.is_floating_point() or t.is_complex():
        values = [0.0, -1.0, torch.inf, torch.nan, 6e4]
    else:
        values = [0, 2, 100] if t.dtype == torch.uint8 else [-1, 0, 2, 100, -100]
    result[torch.unravel_index(torch.tensor(place), t.shape)] = rng.choice(values)
    return result


_TENSORS = [
    _of_other_dtype, _of_other_dtype, _of_other_dtype, _of_other_size, _of_other_size,
    _of_higher_rank, _of_lower_rank, _scalar, _of_one_element, _flat, _strided,
    _of_other_values,
]  # fmt: skip
