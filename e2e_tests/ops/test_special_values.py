"""Functions have eager's results for zeros of both signs, infinities, NaN and denormal
numbers.

The number of elements is a multiple of 64, because eager computes some functions
differently for a remainder that doesn't fill a vector.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from comparison import assert_close
from torch.nn import functional as F

aten = torch.ops.aten
Function = Callable[..., torch.Tensor]

UNARY: dict[str, Function] = {
    "abs": torch.abs,
    "acos": torch.acos,
    "atan": torch.atan,
    "ceil": torch.ceil,
    "celu": F.celu,
    "clamp": lambda x: x.clamp(-1.0, 2.0),
    "clamp to zero from above": lambda x: x.clamp(max=0.0),
    "clamp to zero from below": lambda x: x.clamp(min=0.0),
    "clamp to negative zero": lambda x: x.clamp(min=-0.0, max=-0.0),
    "clamp to nan": lambda x: x.clamp(max=float("nan")),
    "elu": F.elu,
    "erf": torch.erf,
    "erfc": torch.erfc,
    "floor": torch.floor,
    "frac": torch.frac,
    "gelu": F.gelu,
    "hardshrink": F.hardshrink,
    "hardsigmoid": F.hardsigmoid,
    "hardswish": F.hardswish,
    "hardtanh": F.hardtanh,
    "isfinite": torch.isfinite,
    "leaky_relu": F.leaky_relu,
    "lgamma": torch.lgamma,
    "log": torch.log,
    "log10": torch.log10,
    "log2": torch.log2,
    "nan_to_num": torch.nan_to_num,
    "neg": torch.neg,
    "reciprocal": torch.reciprocal,
    "relu": torch.relu,
    "relu6": F.relu6,
    "round": torch.round,
    "rsqrt": torch.rsqrt,
    "rsub": lambda x: 0 - x,
    "selu": F.selu,
    "sgn": torch.sgn,
    "sign": torch.sign,
    "signbit": torch.signbit,
    "silu": F.silu,
    "softshrink": F.softshrink,
    "sqrt": torch.sqrt,
    "square": torch.square,
    "tanh": torch.tanh,
    "threshold": lambda x: F.threshold(x, 0.5, -0.0),
    "trunc": torch.trunc,
}

BINARY: dict[str, Function] = {
    "add": torch.add,
    "atan2": torch.atan2,
    "clamp_max": torch.clamp_max,
    "clamp_min": torch.clamp_min,
    "copysign": torch.copysign,
    "div": torch.div,
    "elu_backward": lambda g, x: aten.elu_backward(g, 1.0, 1.0, 1.0, False, x),
    "eq": torch.eq,
    "ge": torch.ge,
    "hardshrink_backward": lambda g, x: aten.hardshrink_backward(g, x, 0.5),
    "hardsigmoid_backward": aten.hardsigmoid_backward,
    "hardswish_backward": aten.hardswish_backward,
    "hardtanh_backward": lambda g, x: aten.hardtanh_backward(g, x, -1.0, 1.0),
    "heaviside": torch.heaviside,
    "leaky_relu_backward": lambda g, x: aten.leaky_relu_backward(g, x, 0.1, False),
    "lt": torch.lt,
    "maximum": torch.maximum,
    "minimum": torch.minimum,
    "mul": torch.mul,
    "ne": torch.ne,
    "softshrink_backward": lambda g, x: aten.softshrink_backward(g, x, 0.5),
    "sub": torch.sub,
    "threshold_backward": lambda g, x: aten.threshold_backward(g, x, 0.0),
    "where": lambda x, y: torch.where(x > y, x, y),
}

DTYPES = [torch.float32, torch.float64, torch.bfloat16, torch.float16]
RELATIVE = {torch.float32: 5e-6, torch.float64: 1e-12, torch.bfloat16: 2e-2, torch.float16: 2e-3}  # fmt: skip
#: Absolute tolerances: 1 + erf of a negative number has few correct digits (in eager's
#: kernels, too); near its roots, lgamma is the small difference of larger terms.
CANCELLING = {"gelu": 1e-6, "lgamma": 1e-14}


def special(dtype: torch.dtype) -> torch.Tensor:
    info = torch.finfo(dtype)
    magnitudes = [
        0.0, info.tiny, info.tiny / 2, info.tiny * info.eps * 4, info.eps, 1e-3, 0.25, 0.5,
        1.0, 1.5, 2.0, 2.5, 3.0, 5.0, 6.0, 10.0,
        80.0, 1e4, info.max / 2, info.max, torch.inf, torch.nan, 1 - info.eps, 1 + info.eps,
    ]  # fmt: skip
    values = torch.tensor(magnitudes, dtype=torch.float64)
    return torch.cat([values, -values]).to(dtype)


def assert_same(
    result: torch.Tensor, wanted: torch.Tensor, relative: float, absolute: float = 0.0
) -> None:
    """Also compares the signs of zeros, which are equal for `assert_close`."""
    if not wanted.is_floating_point():
        assert_close(result, wanted)
        return
    assert result.dtype == wanted.dtype
    # Kernels may round the smallest numbers or flush them to zero.
    smallest = 2 * torch.finfo(wanted.dtype).tiny
    assert_close(
        result.double(),
        wanted.double(),
        relative,
        max(smallest, absolute),
        equal_nan=True,
    )
    zeros = (wanted == 0) & (result == 0)
    differ = zeros & (result.signbit() != wanted.signbit())
    assert not differ.any(), f"signs of zero differ at {differ.nonzero().flatten()}"


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", UNARY)
def test_unary(name: str, dtype: torch.dtype) -> None:
    x = special(dtype).repeat(16)
    # Where a processor has float16 arithmetic, eager calls oneDNN, whose gelu(inf) is
    # NaN (torch 2.13).
    with torch.backends.mkldnn.flags(enabled=dtype != torch.float16):
        wanted = UNARY[name](x)
    result = UNARY[name](x.to("lazy")).cpu()
    assert_same(result, wanted, RELATIVE[dtype], CANCELLING.get(name, 0.0))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", BINARY)
def test_binary(name: str, dtype: torch.dtype) -> None:
    values = special(dtype)
    x, y = (t.contiguous() for t in torch.broadcast_tensors(values[:, None], values))
    wanted = BINARY[name](x, y)
    result = BINARY[name](x.to("lazy"), y.to("lazy")).cpu()
    assert_same(result, wanted, RELATIVE[dtype])


#: Values and an op whose float32 results are denormal, or whose sums overflow.
EXTREMES = {
    "exp": (torch.linspace(-103, -86, 40), torch.exp),
    "log_sigmoid": (torch.linspace(86, 103, 40), torch.nn.functional.logsigmoid),
    "softplus": (
        torch.linspace(-103, -86, 40),
        lambda x: torch.nn.functional.softplus(x, threshold=100),
    ),
    "var": (torch.tensor([3e38, -3e38, 1e38, 2e38]), lambda x: (x / 1e19).var() / 1e19),
    "mean": (torch.full((64,), 3e38), lambda x: torch.var_mean(x)[1]),
}


@pytest.mark.parametrize("name", EXTREMES)
def test_extremes(name: str) -> None:
    """Results equal eager's up to the precision of denormal float32 numbers."""
    x, function = EXTREMES[name]
    wanted, result = function(x), function(x.to("lazy")).cpu()
    assert_close(result, wanted, rtol=1e-4, atol=3e-45, equal_nan=True)


@pytest.mark.parametrize("function", [torch.var_mean, torch.std_mean])
def test_means_of_infinities(function: Function) -> None:
    """Eager's mean becomes NaN when an element follows an infinite one."""
    infinite = torch.tensor([[torch.inf, 1, 2], [1, -torch.inf, 2], [1, 2, 3]])
    for x in (infinite, infinite[:, :1], infinite[:1, :1]):
        wanted, result = function(x, 1), function(x.to("lazy"), 1)
        assert_close(result, wanted, equal_nan=True)
