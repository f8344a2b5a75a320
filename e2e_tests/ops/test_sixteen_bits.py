"""Functions of one and two numbers and their gradients, at all 16-bit floats with
magnitudes from 1e-5 to 60.

Each result is within 1 unit in the last place of eager's result, or is at least as close to
the float64 result as eager's is: a formula may round intermediate results where eager's
kernel doesn't, or the reverse.
"""

from __future__ import annotations

import platform
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import torch_ltc
from comparison import assert_close
from subprocesses import run_python
from torch import Tensor
from torch.nn import functional as F

UNARY: dict[str, Callable[[Tensor], Tensor]] = {
    **{
        name: getattr(torch, name)
        for name in [
            "acos",
            "asin",
            "asinh",
            "atan",
            "atanh",
            "cos",
            "cosh",
            "deg2rad",
            "digamma",
            "erf",
            "erfc",
            "erfinv",
            "exp",
            "exp2",
            "expm1",
            "frac",
            "lgamma",
            "log",
            "log10",
            "log1p",
            "log2",
            "logit",
            "rad2deg",
            "reciprocal",
            "rsqrt",
            "sigmoid",
            "sin",
            "sinc",
            "sinh",
            "sqrt",
            "square",
            "tan",
            "tanh",
            "trunc",
        ]
    },
    **{
        name: getattr(F, name)
        for name in [
            "celu",
            "elu",
            "hardsigmoid",
            "hardswish",
            "hardtanh",
            "leaky_relu",
            "logsigmoid",
            "mish",
            "relu6",
            "selu",
            "silu",
            "softplus",
            "softsign",
            "tanhshrink",
            "softshrink",
            "hardshrink",
        ]
    },
    "gelu": lambda x: F.gelu(x.clamp(min=-3)),
    "gelu_tanh": lambda x: F.gelu(x.clamp(min=-3), approximate="tanh"),
    "logit_eps": lambda x: torch.logit(x, 0.2),
    "softplus_beta": lambda x: F.softplus(x, beta=3.0, threshold=7.0),
    "mvlgamma": lambda x: torch.mvlgamma(x, 2),
    "pow": lambda x: x**2.5,
    "cube": lambda x: x**3,
    "inverse square": lambda x: x**-2,
}
BINARY: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "atan2": torch.atan2,
    "div": torch.div,
    "floor_divide": torch.floor_divide,
    "div_trunc": lambda x, y: torch.div(x, y, rounding_mode="trunc"),
    "hypot": torch.hypot,
    "logaddexp": torch.logaddexp,
    "mul": torch.mul,
    "pow": torch.pow,
    "sub": torch.sub,
    "xlogy": torch.xlogy,
}
DTYPES = [torch.bfloat16, torch.float16]
#: Functions whose intermediate results are rounded both by eager's kernels and by ours.
#: Therefore results are compared only with eager's, not with results in float64.
NOT_EXACT = {"logit", "logit_eps", "mvlgamma", "floor_divide", "cube", "inverse square"}


def every(dtype: torch.dtype) -> Tensor:
    bits = torch.arange(-(2**15), 2**15, dtype=torch.int32).to(torch.int16)
    values = bits.view(dtype)
    return values[values.isfinite() & (values.abs() < 60) & (values.abs() > 1e-5)]


def _order(values: Tensor) -> Tensor:
    """Maps the numbers to integers, neighboring numbers to neighboring integers."""
    bits = values.contiguous().view(torch.int16).long()
    return torch.where(bits < 0, -(bits & 0x7FFF), bits)


def _is_off(result: Tensor, eager: Tensor, exact: Tensor) -> Tensor:
    near = (_order(result) - _order(eager)).abs() <= 1
    same = near | (result == eager) | (result.isnan() & eager.isnan())
    exact = exact.to(eager.dtype).double()
    better = (result.double() - exact).abs() <= (eager.double() - exact).abs()
    return ~same & ~better & (exact.abs() > torch.finfo(torch.float32).tiny)


def _report(results: dict[str, tuple[Tensor, Tensor, Tensor]], x: Tensor) -> list[str]:
    found = []
    for name, (result, eager, exact) in results.items():
        off = _is_off(result, eager, eager.double() if name in NOT_EXACT else exact)
        if off.any():
            place = int(off.nonzero()[0])
            found.append(
                f"{name}: {int(off.sum())}, of {x[place]}: {result[place]} instead of "
                f"{eager[place]}, float64 {exact[place]}"
            )
    return found


def _gradient(function: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    x = x.detach().clone().requires_grad_()
    weights = torch.linspace(-1, 1, x.numel(), device=x.device).to(x.dtype)
    return torch.autograd.grad(function(x), x, weights)[0]


def _of_one_program(functions: dict[str, Callable], *operands: Tensor) -> dict:
    with torch_ltc.config(tier="compile"):
        lazy = [operand.to("lazy") for operand in operands]
        traced = {name: function(*lazy) for name, function in functions.items()}
        torch_ltc.mark_step()
    exact = [operand.double() for operand in operands]
    return {
        name: (traced[name].cpu(), function(*operands), function(*exact))
        for name, function in functions.items()
    }


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_functions_of_one_number(dtype: torch.dtype) -> None:
    x = every(dtype)
    assert not _report(_of_one_program(UNARY, x), x)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_gradients(dtype: torch.dtype) -> None:
    x = every(dtype)
    x = x[(x.abs() < 50) & (x.abs() > 1e-3)]

    def gradient_of(function: Callable) -> Callable:
        return lambda x: _gradient(function, x)

    gradients = {
        name: gradient_of(function)
        for name, function in UNARY.items()
        if name not in NOT_EXACT | {"digamma", "gelu", "gelu_tanh", "rsqrt"}
    }
    assert not _report(_of_one_program(gradients, x), x)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_functions_of_two_numbers(dtype: torch.dtype) -> None:
    x = every(dtype)
    generator = torch.Generator().manual_seed(1)
    y = x[torch.randperm(x.numel(), generator=generator)]
    assert not _report(_of_one_program(BINARY, x, y), x)


#: Functions with a number argument, which some of eager's kernels first round to 16 bits.
WITH_A_NUMBER: dict[str, Callable[[Tensor], Tensor]] = {
    "add": lambda x: x + 0.37,
    "sub": lambda x: x - 0.37,
    "rsub": lambda x: 0.37 - x,
    "mul": lambda x: x * 0.37,
    "mul_": lambda x: x.clone().mul_(0.37),
    "div": lambda x: x / 0.37,
    "rdiv": lambda x: 0.37 / x,
    "floor_divide": lambda x: x // 0.37,
    "div_floor": lambda x: torch.div(x, 0.37, rounding_mode="floor"),
    "div_trunc": lambda x: torch.div(x, 0.37, rounding_mode="trunc"),
    "remainder": lambda x: x % 0.37,
    "fmod": lambda x: torch.fmod(x, 0.37),
    "copysign": lambda x: torch.copysign(x, -0.37),
    "lerp": lambda x: torch.lerp(x, x * 2, 0.37),
    "lt": lambda x: x < 0.37,
    "clamp": lambda x: x.clamp(-0.37, 0.37),
    "rpow": lambda x: 1.37 ** (x / 16),
    "xlogy": lambda x: torch.xlogy(x, 0.37),
    "rremainder": lambda x: 300.37 % x,
    "hardshrink": lambda x: F.hardshrink(x, 0.1),
    "hardshrink_backward": lambda x: torch.ops.aten.hardshrink_backward(x, x, 0.1),
}


def _number(x: Tensor) -> Tensor:
    return torch.tensor(0.37, device=x.device)


#: Functions with a float32 tensor of rank 0, which most of eager's kernels first round to
#: 16 bits.
WITH_RANK_0: dict[str, Callable[[Tensor], Tensor]] = {
    "add": lambda x: x + _number(x),
    "alpha": lambda x: torch.add(x, _number(x), alpha=3),
    "sub": lambda x: x - _number(x),
    "rsub": lambda x: _number(x) - x,
    "mul": lambda x: x * _number(x),
    "rmul": lambda x: _number(x) * x,
    "add_": lambda x: x.clone().add_(_number(x)),
    "div": lambda x: x / _number(x),
    "rdiv": lambda x: _number(x) / x,
    "div_trunc": lambda x: torch.div(x, _number(x), rounding_mode="trunc"),
    "remainder": lambda x: x % _number(x),
    "rremainder": lambda x: _number(x) % x,
    "lerp": lambda x: torch.lerp(x, x * 2, _number(x)),
    "addcmul": lambda x: torch.addcmul(x, x, _number(x)),
    "xlogy": lambda x: torch.xlogy(x, _number(x)),
    "maximum": lambda x: torch.maximum(x, _number(x)),
    "lt": lambda x: x < _number(x),
    "quotients": lambda x: torch.div(x, x.flip(0), rounding_mode="trunc"),
}


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("tier", ["compile", "interpret"])
@pytest.mark.parametrize("functions", [WITH_A_NUMBER, WITH_RANK_0], ids=["numbers", "tensors"])  # fmt: skip
def test_numbers_are_rounded_where_eager_does(
    functions: dict[str, Callable[[Tensor], Tensor]], dtype: torch.dtype, tier: str
) -> None:
    x = every(dtype)
    with torch_ltc.config(tier=tier):
        lazy = x.to("lazy")
        results = {name: function(lazy) for name, function in functions.items()}
        torch_ltc.mark_step()
    for name, function in functions.items():
        assert_close(results[name], function(x), 0, 0, what=name, equal_nan=True)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_cross_rounds_each_product(dtype: torch.dtype) -> None:
    def results(device: str) -> list[Tensor]:
        torch.manual_seed(2)
        x, y = torch.randn(2, 200, 3).to(dtype).to(device)
        out = torch.empty_like(x)
        return [torch.linalg.cross(x, y), torch.cross(x, y, dim=1, out=out)]

    for tier in "compile", "interpret":
        with torch_ltc.config(tier=tier):
            for lazy, eager in zip(results("lazy"), results("cpu"), strict=True):
                assert torch.equal(lazy.cpu(), eager)


@pytest.mark.skipif(platform.machine() != "x86_64", reason="x86-64's instructions")
def test_processors_with_16_bit_arithmetic_round_each_product(tmp_path: Path) -> None:
    """The assembly for a processor with 16-bit arithmetic rounds each product: it contains
    no fused multiply-add, which would round only once. The assembly is checked even if this
    processor can't execute it."""
    text = """
        import torch
        a, b, c = torch.randn(3, 64).half().to("lazy")
        (a * b - c).cpu()
    """
    run_python(
        text,
        TORCH_LTC_CPU="sapphirerapids",
        TORCH_LTC_TIER="compile",
        TORCH_LTC_CACHE="0",
        TORCH_LTC_DUMP=str(tmp_path),
    )
    (assembly,) = tmp_path.glob("*/asm.s")
    assert "vmulph" in assembly.read_text()
    assert not re.findall(r"vfn?m\w+ph", assembly.read_text())


def _bilinear(a: Tensor, b: Tensor, w: Tensor) -> Tensor:
    return F.bilinear(a[:, :9], b[:, :7], w.reshape(-1)[: 5 * 9 * 7].reshape(5, 9, 7))


def _bag(a: Tensor, b: Tensor, w: Tensor) -> Tensor:
    rows = torch.arange(40, device=a.device) % len(w)
    starts = torch.tensor([0, 3, 20], device=a.device)
    scale = a.reshape(-1)[:40]
    return F.embedding_bag(rows, w, starts, mode="sum", per_sample_weights=scale)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("function", [_bilinear, _bag])
def test_sums_of_products(function: Callable, dtype: torch.dtype) -> None:
    """As in eager, sums are rounded, but the products in them aren't."""
    torch.manual_seed(0)
    operands = [torch.randn(8, 60).to(dtype) for _ in range(3)]
    lazy = function(*(operand.to("lazy") for operand in operands)).cpu()
    step = 2 * torch.finfo(dtype).eps
    assert_close(lazy, function(*operands), rtol=step, atol=step)
