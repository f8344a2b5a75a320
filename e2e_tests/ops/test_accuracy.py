"""Accuracy of functions for which a simple formula loses digits of small or large
operands, and of reductions in which a single accumulator loses digits of later terms."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch_ltc
from comparison import assert_close
from torch.nn import functional as F
from torch_ltc._backend import bindings

FUNCTIONS = {
    "log1p": torch.log1p,
    "expm1": torch.expm1,
    "elu": F.elu,
    "celu": F.celu,
    "selu": F.selu,
    "softplus": F.softplus,
    "logsigmoid": F.logsigmoid,
    "mish": F.mish,
    "silu": F.silu,
    "sinh": torch.sinh,
    "tanh": torch.tanh,
    "asinh": torch.asinh,
    "atanh": torch.atanh,
    "erf": torch.erf,
    "lgamma": torch.lgamma,
    "digamma": torch.digamma,
    "logit_backward": lambda x: torch.ops.aten.logit_backward(x.cos(), x),
    "logaddexp": lambda x: torch.logaddexp(x, torch.zeros_like(x)),
    "xlog1py": lambda x: torch.special.xlog1py(x, x.flip(0)),
}

RELATIVE = {torch.float32: 2e-5, torch.float64: 5e-13}


def operands(dtype: torch.dtype) -> torch.Tensor:
    digits = 300 if dtype == torch.float64 else 37
    magnitudes = torch.logspace(-digits, 2, 4 * digits + 9, dtype=torch.float64)
    near = torch.linspace(-30.3, 30.7, 400, dtype=torch.float64)
    ends = torch.tensor([0.0, 1.0, torch.inf, torch.nan], dtype=torch.float64)
    return torch.cat([magnitudes, -magnitudes, near, ends, -ends]).to(dtype)


def test_atan_is_within_two_units_in_the_last_place() -> None:
    """The error of atan is less than 2 units in the last place; that of MLIR's float32
    polynomial would be 35 units."""
    x = torch.linspace(-12, 12, 200001)
    exact = torch.atan(x.double())
    error = (torch.atan(x.to("lazy")).cpu() - exact).abs() / exact.abs().clamp(
        min=1e-30
    )
    assert error.max() < 2 * 2**-23
    ends = torch.tensor([0.0, -0.0, torch.inf, -torch.inf, 1e-40, 3e38])
    assert_close(torch.atan(ends.to("lazy")), torch.atan(ends))


def test_hypot_is_rounded_like_eagers() -> None:
    x = torch.linspace(0, 9, 20001)
    x, y = (torch.cat([v, v[:200] * 1e37, v[:200] * 1e-30]) for v in (x, x.flip(0)))
    ends = torch.tensor([0.0, 1.0, torch.inf, torch.nan])
    for a, b in ((x, y), (ends[:, None], -ends)):
        lazy = torch.hypot(a.to("lazy"), b.to("lazy"))
        assert_close(lazy, torch.hypot(a, b), rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_relative_error(name: str, dtype: torch.dtype) -> None:
    x = operands(dtype)
    expected = FUNCTIONS[name](x)
    result = FUNCTIONS[name](x.to("lazy")).cpu()
    # It isn't defined whether the smallest results are rounded or flushed to zero.
    smallest = torch.finfo(dtype).tiny * 1e3
    assert_close(result, expected, rtol=RELATIVE[dtype], atol=smallest, equal_nan=True)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("scale", [1e30, 1e-30])
def test_deviations_whose_squares_are_no_float32(
    scale: float, dtype: torch.dtype
) -> None:
    x = (torch.tensor([[1.0, 2.0, 4.0], [0.0, 0.5, -8.0]]) * scale).to(dtype)
    for part in (
        lambda x: x.std(),
        lambda x: x.std(1),
        lambda x: torch.std_mean(x, 0)[0],
    ):
        assert_close(part(x.to("lazy")), part(x), atol=0, rtol=1e-2)


@pytest.mark.parametrize("op", ["var", "std", "var_mean", "std_mean"])
@pytest.mark.parametrize("dims", [0, 1, (2, 3), (0, 2, 3), None], ids=str)
def test_deviations_next_to_a_large_mean(op: str, dims: int | tuple | None) -> None:
    """Deviations are accurate although rounding changes the mean by up to a thousandth of
    the deviation."""
    generator = torch.Generator().manual_seed(0)
    x = 1e4 + torch.rand(32, 8, 16, 16, generator=generator)
    exact = getattr(torch, op)(x.double(), dims)
    result = getattr(torch, op)(x.to("lazy"), dims)
    exact, result = (r[0] if isinstance(r, tuple) else r for r in (exact, result))
    assert_close(result, exact.float(), rtol=2e-6, atol=0)
    constant = torch.full((7,), 0.1, device="lazy").var()
    assert 0 <= constant.item() < 1e-15


@pytest.mark.parametrize("order", [2, 3, 0.5, -1, 0, 1, torch.inf])
@pytest.mark.parametrize("dim", [0, 1, (0, 1), None], ids=str)
def test_norms_of_one_number(order: float, dim: int | tuple | None) -> None:
    """As in eager, the norm is accurate even if float32 can't represent the number raised
    to the order of the norm."""
    sizes = {0: (1, 3), 1: (3, 1), (0, 1): (1, 1, 3), None: (1, 1)}[dim]
    for number in (1e30, -1e-30, 0.0, torch.nan, -torch.inf):
        x = torch.full(sizes, number)
        wanted = torch.linalg.vector_norm(x, order, dim)
        result = torch.linalg.vector_norm(x.to("lazy"), order, dim).cpu()
        assert_close(result, wanted, atol=0, rtol=1e-6, equal_nan=True)


#: Reductions of many equal terms: an accumulator that has become large adds each of
#: them with the same error.
REDUCTIONS = {
    "sum": lambda x: x.sum(),
    "sum of rows": lambda x: x.sum(1),
    "sum of columns": lambda x: x.sum(0),
    "sum of planes": lambda x: x.view(64, -1, x.shape[1]).sum((0, 2)),
    "mean": lambda x: x.mean(),
    "mean of columns": lambda x: x.mean(0),
    "norm": lambda x: x.norm(),
    "norm of columns": lambda x: x.norm(dim=0),
    "var": lambda x: (x + torch.arange(2, device=x.device).repeat(x.shape[1] // 2)).var(),
    "logsumexp": lambda x: x.logsumexp((0, 1)),
    "mse_loss": lambda x: F.mse_loss(x, torch.zeros_like(x)),
    "sum of short rows": lambda x: x.view(-1, 4, x.shape[1] // 2)[..., :3].sum((0, 2)),
    "nll_loss": lambda x: F.nll_loss(x, torch.zeros(x.shape[0], dtype=torch.long, device=x.device)),
    "cross_entropy": lambda x: F.cross_entropy(x[:, :8], torch.arange(x.shape[0], device=x.device) % 8),
    "matrix norm of a product": lambda x: (x * x.sigmoid()).square().sum(),
}  # fmt: skip

#: (rows, columns): few long rows, many short ones, and sizes that aren't powers of 2.
SHAPES = [(1 << 13, 1 << 13), (1 << 22, 16), (64 * 1031, 126)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", REDUCTIONS)
def test_long_reductions(name: str, shape: tuple[int, int]) -> None:
    """Long reductions are accurate. Their operands are expanded, and so need no memory."""
    term = torch.full((1, 1), 0.1)
    exact = REDUCTIONS[name](term.double().expand(shape))
    result = REDUCTIONS[name](term.to("lazy").expand(shape))
    torch.testing.assert_close(
        result.cpu().double(), exact, rtol=4e-6, atol=0, check_dtype=False
    )


@pytest.mark.parametrize("name", REDUCTIONS)
def test_long_reductions_for_all_sizes(name: str) -> None:
    """Programs for all sizes are as accurate at sizes far above those of their traces."""
    bindings().clear_program_cache()
    term = torch.full((1, 1), 0.1)
    with torch_ltc.config(tier="compile", varying_sizes="auto", cache=False):
        for rows in (64 * 18001, 64 * 19999, 64 * 21007, 1 << 22):
            torch_ltc.reset_metrics()
            exact = REDUCTIONS[name](term.double().expand(rows, 16))
            result = REDUCTIONS[name](term.to("lazy").expand(rows, 16))
            torch.testing.assert_close(
                result.cpu().double(), exact, rtol=4e-6, atol=0, check_dtype=False
            )
    assert torch_ltc.metrics()["compilations"] == 0


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("mode", ["sum", "mean"])
def test_long_bags(mode: str, dtype: torch.dtype) -> None:
    """Bags with many rows are summed accurately: a 16-bit accumulator would stop growing
    after a few hundred terms."""
    weight = torch.linspace(0.5, 1, 2000 * 24).reshape(2000, 24).to(dtype)
    bag = torch.arange(2000)[None]
    result = F.embedding_bag(bag.to("lazy"), weight.to("lazy"), mode=mode).cpu()
    exact = F.embedding_bag(bag, weight.double(), mode=mode)
    rounding = torch.finfo(dtype).eps
    assert_close(result.double(), exact, rtol=1.01 * rounding, atol=0)


def _into(zeros: torch.Tensor, index: torch.Tensor, rows: torch.Tensor) -> dict:
    wide = index[:, None].expand_as(rows)
    return {
        "index_add": zeros.index_add(0, index, rows),
        "scatter_add": zeros.scatter_add(0, wide, rows),
        "sum": zeros.scatter_reduce(0, wide, rows, "sum"),
        "mean": zeros.scatter_reduce(0, wide, rows, "mean", include_self=False),
    }


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_many_rows_at_one_place(dtype: torch.dtype) -> None:
    rows = torch.linspace(0.5, 1, 2000 * 24).reshape(2000, 24).to(dtype)
    index = torch.arange(2000) % 3
    zeros = torch.zeros(5, 24, dtype=dtype)
    results = _into(zeros.to("lazy"), index.to("lazy"), rows.to("lazy"))
    for name, exact in _into(zeros.double(), index, rows.double()).items():
        rounding = (2.02 if name == "mean" else 1.01) * torch.finfo(dtype).eps
        result = results[name].cpu()
        assert result.dtype == dtype, name
        assert_close(result.double(), exact, rtol=rounding, atol=0)


SCANS = {
    "a sum that cancels": torch.tensor([1e10, 1.0, -1e10]),
    "a sum that overflows": torch.tensor([3e38, 3e38, -3e38, -3e38]),
    "a product that overflows": torch.tensor([1e30, 1e30, 1e-30, 1e-30]),
    "a product that underflows": torch.tensor([1e-30, 1e-30, 2.0, 1e38]),
    "many": 1 + torch.linspace(-1e-4, 1e-4, 100_001).roll(7),
}


@pytest.mark.parametrize("name", SCANS)
@pytest.mark.parametrize("op", [torch.cumsum, torch.cumprod, torch.logcumsumexp])
def test_scans_accumulate_as_eager(op: Callable, name: str) -> None:
    numbers = SCANS[name]
    for x, dim in ((numbers, 0), (torch.stack([numbers, numbers.flip(0)], 1), 0)):
        result = op(x.to("lazy"), dim).cpu()
        assert_close(result, op(x, dim), rtol=2e-7, atol=1e-44, equal_nan=True)


def test_scans_round_to_the_given_dtype_first() -> None:
    x = 1 + torch.linspace(0, 1e-2, 50)
    result = x.to("lazy").cumsum(0, dtype=torch.bfloat16).cpu()
    assert torch.equal(result, x.cumsum(0, dtype=torch.bfloat16))
