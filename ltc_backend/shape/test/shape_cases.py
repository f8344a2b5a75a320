"""Describes calls of ops for any device, and makes their arguments on a given device."""

import dataclasses
import itertools
import random
import zlib

import _shape_testing
import torch

F32, F64, BF16, F16 = torch.float32, torch.float64, torch.bfloat16, torch.float16
I64, I32, U8, BOOL = torch.int64, torch.int32, torch.uint8, torch.bool
DTYPES = (F32, F64, BF16, F16, I64, I32, U8, BOOL)
FLOATS = (F32, F64, BF16)
SHAPES = (
    (),
    (1,),
    (3,),
    (0,),
    (2, 3),
    (1, 3),
    (2, 1),
    (2, 0),
    (4, 2, 3),
    (4, 1, 3),
    (2, 3, 4, 5),
)


@dataclasses.dataclass(frozen=True)
class T:
    """A tensor whose elements all have the same value."""

    shape: tuple
    dtype: torch.dtype = F32
    wrapped: bool = False
    fill: int = 1

    def make(self, device):
        tensor = torch.full(
            self.shape,
            self.fill,
            dtype=self.dtype,
            device="cpu" if self.wrapped else device,
        )
        if self.wrapped:  # a Python number, which is on the CPU
            return _shape_testing.wrapped_number(tensor)
        return tensor


def Index(shape, dtype=I64):
    """An index tensor of zeros, which are valid unless the indexed dim is empty."""
    return T(shape, dtype, fill=0)


@dataclasses.dataclass(frozen=True)
class Call:
    args: tuple
    kwargs: tuple = ()

    def make(self, device):
        def convert(value):
            if isinstance(value, T):
                return value.make(device)
            if isinstance(value, (list, tuple)):
                return [convert(element) for element in value]
            return value

        kwargs = {name: convert(value) for name, value in self.kwargs}
        return tuple(convert(value) for value in self.args), kwargs


def call(*args, **kwargs):
    return Call(args, tuple(kwargs.items()))


def freeze(value):
    if isinstance(value, (list, tuple)):
        return tuple(freeze(v) for v in value)
    return value


def sample(op, cases, count):
    """Returns at most `count` of the cases, the same ones in every run."""
    cases = list(cases)
    if len(cases) <= count:
        return cases
    return random.Random(zlib.crc32(op.encode())).sample(cases, count)


def product(*lists):
    return itertools.product(*lists)


def operands(dtypes=DTYPES):
    """Operands of rank 2, 1 and 0 of each dtype, and wrapped numbers."""
    result = []
    for dtype in dtypes:
        result += [T((2, 3), dtype), T((3,), dtype), T((), dtype)]
        if dtype in (F64, I64, BOOL):
            result.append(T((), dtype, wrapped=True))
    return result
