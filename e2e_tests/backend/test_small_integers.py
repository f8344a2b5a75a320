"""uint8, int8 and int16 compute and convert as on the CPU: signs, wrapping, and
promotion, with values at both ends of the range."""

from __future__ import annotations

import pytest
import torch
import torch_ltc
from comparison import assert_close
from counting import counting, fallback_names

SMALL = [torch.uint8, torch.int8, torch.int16]
ALL = [
    *SMALL,
    torch.int32,
    torch.int64,
    torch.bool,
    torch.float32,
    torch.float64,
    torch.bfloat16,
    torch.float16,
]


def name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def values(dtype: torch.dtype) -> torch.Tensor:
    """Returns the ends of an integer dtype's range, zero, and values in between. For other
    dtypes, returns fixed values."""
    if dtype == torch.bool:
        return torch.tensor([True, False] * 8)
    if dtype.is_floating_point:
        return torch.tensor(
            [0.0, 0.5, 1.5, -0.5, -1.0, 3.9, -3.9, 100.0, 127.0, 128.0, 200.0, 255.0,
             -100.0, -127.0, 254.5, 17.0],
            dtype=dtype,
        )  # fmt: skip
    info = torch.iinfo(dtype)
    wanted = [info.min, info.min + 1, info.max, info.max - 1, 0, 1, 2, 3, 5, 7, 100]
    wanted += [info.max // 2, info.max // 2 + 1, info.min // 2, 13, 64]
    return torch.tensor(wanted, dtype=torch.int64).to(dtype)


def check(function, *inputs: torch.Tensor) -> None:
    """Asserts that a compiled step has eager's values, dtypes and shapes."""
    expected = function(*inputs)
    with counting() as counts:
        results = function(*(x.to("lazy") for x in inputs))
        torch_ltc.mark_step()
    assert counts.fallback_calls == 0, fallback_names()
    assert_close(results, expected, equal_nan=True)


@pytest.mark.parametrize("source", ALL, ids=name)
def test_conversion(source: torch.dtype) -> None:
    check(lambda x: [x.to(target) for target in ALL], values(source))
    # Conversions between other ops, where no buffer records the integers' signedness.
    check(lambda x: [(x + x).to(target) + 1 for target in ALL], values(source))


BINARY = {
    "add": torch.add,
    "sub": torch.sub,
    "mul": torch.mul,
    "true_divide": torch.true_divide,
    "floor_divide": lambda a, b: torch.floor_divide(a, b.clamp(min=1)),
    "trunc_divide": lambda a, b: torch.div(a, b.clamp(min=1), rounding_mode="trunc"),
    "remainder": lambda a, b: torch.remainder(a, b.clamp(min=3)),
    "fmod": lambda a, b: torch.fmod(a, b.clamp(min=3)),
    "maximum": torch.maximum,
    "minimum": torch.minimum,
    "bitwise_and": torch.bitwise_and,
    "bitwise_or": torch.bitwise_or,
    "bitwise_xor": torch.bitwise_xor,
    "less": torch.lt,
    "greater_equal": torch.ge,
    "equal": torch.eq,
    "where": lambda a, b: torch.where(a > b, a, b),
    "cat": lambda a, b: torch.cat([a, b]),
}

WITHOUT_BOOL = {"sub", "floor_divide", "trunc_divide", "remainder", "fmod"}


@pytest.mark.parametrize("other", [*SMALL, torch.int32, torch.bool], ids=name)
@pytest.mark.parametrize("dtype", SMALL, ids=name)
def test_binary(dtype: torch.dtype, other: torch.dtype) -> None:
    ops = [
        op
        for op_name, op in BINARY.items()
        if other != torch.bool or op_name not in WITHOUT_BOOL
    ]
    check(lambda a, b: [op(a, b) for op in ops], values(dtype), values(other).roll(5))


UNARY = {
    "neg": torch.neg,
    "abs": torch.abs,
    "sign": torch.sign,
    "bitwise_not": torch.bitwise_not,
    "square": torch.square,
    "clamp": lambda x: x.clamp(3, 90),
    "relu": torch.relu,
    "add_number": lambda x: x + 100,
    "rsub_number": lambda x: 5 - x,
    "floor_divide_number": lambda x: x // 7,
    "remainder_number": lambda x: x % 7,
    "divide_number": lambda x: x / 3,
    "exp": torch.exp,
    "sqrt": lambda x: x.clamp(min=0).sqrt(),
    "greater_number": lambda x: x > 100,
    "logical_not": torch.logical_not,
    "sum": torch.sum,
    "sum_of_rows": lambda x: x.view(4, 4).sum(1),
    "prod": lambda x: x[4:8].prod(),
    "max": lambda x: x.view(4, 4).max(1),
    "min": torch.min,
    "argmax": torch.argmax,
    "any": lambda x: (x > 100).any(),
    "cumsum": lambda x: x.cumsum(0),
    "sort": lambda x: x.sort(stable=True),
    "mean": lambda x: x.float().mean(),
    "transpose": lambda x: x.view(2, 8).t().contiguous(),
    "slice": lambda x: x[::3],
    "pad": lambda x: torch.nn.functional.pad(x, (1, 2), value=7),
}


@pytest.mark.parametrize("dtype", SMALL, ids=name)
def test_unary(dtype: torch.dtype) -> None:
    def all_ops(x: torch.Tensor) -> list[torch.Tensor]:
        results = []
        for op in UNARY.values():
            result = op(x)
            results += result if isinstance(result, tuple) else [result]
        return results

    check(all_ops, values(dtype))


@pytest.mark.parametrize("dtype", SMALL, ids=name)
def test_written_in_place(dtype: torch.dtype) -> None:
    """Writes convert values to the dtype of the tensor."""

    def write(x: torch.Tensor) -> torch.Tensor:
        y = x.clone()
        y[2:5] += 200 if dtype != torch.int8 else 100
        y.mul_(3)
        y.view(4, 4)[1].fill_(9)
        return y

    check(write, values(dtype))


def test_the_same_bits_with_and_without_sign() -> None:
    """A conversion from int8 to uint8, which changes no bit, has eager's result and leaves
    the operand unchanged."""
    x = torch.arange(-4, 4, dtype=torch.int8)
    lazy = x.to("lazy")
    torch_ltc.mark_step()
    result = lazy.to(torch.uint8)
    torch_ltc.mark_step()
    assert result.dtype == torch.uint8
    assert torch.equal(result.cpu(), x.to(torch.uint8))
    assert torch.equal(lazy.cpu(), x)
    check(lambda a: (a.to(torch.uint8) > 100, a.to(torch.uint8) // 2), x)


@pytest.mark.parametrize("dtype", SMALL, ids=name)
def test_images_become_floats(dtype: torch.dtype) -> None:
    """Integer images, as from a data loader, become floats as in eager."""
    images = torch.randint(0, 120, (2, 3, 8, 8)).to(dtype)
    check(lambda x: (x.float() / 255 - 0.5) * 2, images)
    check(lambda x: x.to(torch.float32).mean((0, 2, 3)), images)
