"""Arguments that callers usually don't pass (for example, max-pooling indices from a
different call, or numbers beyond the range of a dtype), and results of `_embedding_bag`
that only its gradient reads."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
import torch_ltc
from comparison import assert_close, assert_same, compare

aten = torch.ops.aten


@pytest.mark.parametrize("rank", [3, 4])
@pytest.mark.parametrize("case", ["own", "other", "of data", "written", "other window"])
def test_gradient_at_the_given_indices(case: str, rank: int) -> None:
    def program(x: torch.Tensor, grad: torch.Tensor, given: torch.Tensor) -> object:
        indices = F.max_pool2d(x, 2, return_indices=True)[1]
        window = [2, 2]
        if case == "other":
            indices = F.max_pool2d(-x, 2, return_indices=True)[1]
        elif case == "of data":
            indices = given
        elif case == "written":
            indices.sub_(1).clamp_(min=0)
        elif case == "other window":
            # Windows at other positions; the result has the same sizes.
            return aten.max_pool2d_with_indices_backward(
                grad, x, [4, 4], [1, 1], [0, 0], [1, 1], False, indices
            )
        return aten.max_pool2d_with_indices_backward(
            grad, x, window, window, [0, 0], [1, 1], False, indices
        )

    x, grad = torch.randn(2, 6, 6), torch.randn(2, 3, 3)
    given = torch.randint(0, 36, (2, 3, 3))
    if rank == 4:
        x, grad, given = x[None], grad[None], given[None]
    compare(program, x, grad, given)


def test_gradient_of_adaptive_pooling_at_other_indices() -> None:
    def program(x: torch.Tensor, grad: torch.Tensor, given: torch.Tensor) -> object:
        own = F.adaptive_max_pool2d(x, 3, return_indices=True)[1]
        return [
            aten.adaptive_max_pool2d_backward(grad, x, indices)
            for indices in (own, given, own.clone() * 0)
        ]

    compare(
        program,
        torch.randn(2, 2, 7, 6),
        torch.randn(2, 2, 3, 3),
        torch.randint(0, 42, (2, 2, 3, 3)),
    )


@pytest.mark.parametrize(
    "op", [torch.deg2rad, torch.rad2deg, F.hardtanh, F.relu6, torch.frexp]
)
def test_strides_of_results_with_one_element(op: Callable) -> None:
    """Eager makes these results by `empty_like`, which keeps strides of dense tensors."""
    compare(op, torch.rand(1, 2)[:, ::2])


def test_strides_of_huber_loss() -> None:
    def program(x: torch.Tensor, target: torch.Tensor) -> list[torch.Tensor]:
        return [
            F.huber_loss(x.mT, target, reduction="none"),
            F.huber_loss(x.mT[:1, :1], target[:1, :1], reduction="none"),
        ]

    compare(program, torch.rand(3, 4), torch.rand(4, 3))


@pytest.mark.parametrize("tier", ["compile", "interpret"])
@pytest.mark.parametrize("padding", [-1, 1])
def test_gradients_of_embeddings_ignore_rows_outside(padding: int, tier: str) -> None:
    def program(gradient: torch.Tensor, indices: torch.Tensor) -> torch.Tensor:
        return torch.ops.aten.embedding_dense_backward(
            gradient, indices, 3, padding, False
        )

    with torch_ltc.config(tier=tier):
        compare(program, torch.rand(6, 4), torch.tensor([0, 3, -1, 1, 1, -9]))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("mode", [0, 1])
def test_all_results_of_embedding_bag(mode: int, dtype: torch.dtype) -> None:
    def program(weight: torch.Tensor, indices: torch.Tensor) -> list[torch.Tensor]:
        results: list[torch.Tensor] = []
        for function, last, padding in itertools.product(
            (torch._embedding_bag, torch._embedding_bag_forward_only),
            (False, True),
            (-1, 1),
        ):
            ends = [0, 2, 4] if last else [0, 2]
            offsets = torch.tensor(ends).to(weight.device)
            results += function(
                weight, indices, offsets, False, mode, False, None, last, padding
            )
        return results

    compare(program, torch.randn(5, 3, dtype=dtype), torch.tensor([0, 1, 2, 1]))


@pytest.mark.parametrize("tier", ["compile", "interpret"])
@pytest.mark.parametrize(
    ("dtype", "number"),
    [(torch.int8, 300), (torch.uint8, -1), (torch.int16, 1 << 40), (torch.float32, 1e300)],
    ids=str,
)  # fmt: skip
def test_numbers_beyond_the_range_of_a_dtype(
    tier: str, dtype: torch.dtype, number: float
) -> None:
    x = torch.arange(1, 4).to(dtype)
    with torch_ltc.config(tier=tier):
        result = (x.to("lazy") * number).cpu()
    assert torch.equal(result, x * number)


@pytest.mark.parametrize("pads", [[], [0, 0], [-1, 0], [-1, -1]])
def test_pads_without_new_elements(pads: list[int]) -> None:
    """Eager doesn't check a number that it doesn't write."""
    cpu, lazy = (
        torch.ops.aten.constant_pad_nd(torch.ones(3, dtype=torch.uint8, device=d), pads, -1.5)
        for d in ("cpu", "lazy")
    )  # fmt: skip
    assert lazy.tolist() == cpu.tolist()


def test_scatter_at_no_index() -> None:
    x = torch.ones(3, dtype=torch.uint8, device="lazy")
    nowhere = torch.ones(0, dtype=torch.int64, device="lazy")
    assert x.scatter(0, nowhere, 300).tolist() == [1, 1, 1]
    with pytest.raises(RuntimeError, match="without overflow"):
        x.scatter(0, nowhere.new_zeros(1), 300)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16, torch.int64], ids=str)  # fmt: skip
def test_the_median_of_no_integers(dtype: torch.dtype) -> None:
    compare(lambda x: [x.median(), x.nanmedian()], torch.empty(0, dtype=dtype))


def test_a_scalar_in_block_diag_decides_no_dtype() -> None:
    numbers = torch.tensor([1, 2], dtype=torch.int8)
    compare(
        lambda x, y, z: [torch.block_diag(x, y), torch.block_diag(x, z)],
        numbers,
        torch.tensor(200, dtype=torch.uint8),
        torch.tensor(2.5, dtype=torch.float64),
    )


def test_numbers_above_float16_where_eager_has_infinities() -> None:
    def program(x: torch.Tensor) -> list[torch.Tensor]:
        x[0] = 70000.0
        options = {"dtype": torch.float16, "device": x.device}
        scalars = [torch.scalar_tensor(n, **options) for n in (1.0, 65504.0, 70000.0)]
        return [x, torch.where(x > 1, x, -70000.0), *scalars]

    compare(program, torch.ones(3, dtype=torch.float16))


NO_VIEWS = {
    "rot90": lambda x: x.rot90(1, (0, 1)),
    "max_pool1d": lambda x: F.max_pool1d(x, 2),
    "median": lambda x: x.long().median(),
    "max_unpool2d": lambda x: F.max_unpool2d(*F.max_pool2d(x[None], 2, return_indices=True), 2),
    "affine_grid": lambda x: F.affine_grid(x[:1, :2, :3].clone(), (1, 1, 3, 4), align_corners=False),
}  # fmt: skip


@pytest.mark.parametrize("name", NO_VIEWS)
def test_new_results_are_written_as_new_tensors(name: str) -> None:
    """Results that aren't views in eager can be written under autograd, which would reject
    writes to views that were created in `no_grad`."""
    x = torch.arange(48.0).view(3, 4, 4).sin()

    def write(x: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            result = NO_VIEWS[name](x)
        assert not result._is_view()
        weight = torch.ones((), dtype=result.dtype, device=x.device)
        return result.mul_(weight).requires_grad_(result.is_floating_point())

    assert_same(write(x.to("lazy")), write(x))


def test_each_call_warns() -> None:
    for _ in range(2):
        with pytest.warns(UserWarning, match="degrees of freedom is <= 0"):
            torch.ones(1, device="lazy").var()


NEAREST = [
    (aten.upsample_nearest1d, 1), (aten.upsample_nearest2d, 2), (aten.upsample_nearest3d, 3),
    (aten._upsample_nearest_exact1d, 1), (aten._upsample_nearest_exact2d, 2),
    (aten._upsample_nearest_exact3d, 3),
]  # fmt: skip


@pytest.mark.parametrize("scale", [1.7, 2.25, 4.0])
@pytest.mark.parametrize(("op", "rank"), NEAREST, ids=str)
def test_scales_that_contradict_sizes(op: Any, rank: int, scale: float) -> None:
    """A position beyond the end reads the last element."""
    x = torch.arange(4.0**rank).view(1, 1, *[4] * rank).requires_grad_()

    def upsample(x: torch.Tensor) -> torch.Tensor:
        result = op(x, [9] * rank, *[scale] * rank)
        (result * torch.linspace(0, 1, 9).to(x.device)).sum().backward()
        return result

    compare(upsample, x)


DRAWS = {
    "normal": lambda x, out: torch.normal(x, x, out=out),
    "normal around": lambda x, out: torch.normal(x, 2.0, out=out),
    "normal scaled": lambda x, out: torch.normal(1.0, x, out=out),
    "bernoulli": lambda x, out: torch.bernoulli(x / 4, out=out),
    "multinomial": lambda x, out: torch.multinomial(x, 2, out=out),
    "poisson": lambda x, out: aten.poisson.out(x, out=out),
}
DTYPES = [torch.float32, torch.float64, torch.float16, torch.int64, torch.complex64]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", DRAWS)
def test_numbers_drawn_into_another_dtype(name: str, dtype: torch.dtype) -> None:
    def draw(device: str) -> Any:
        torch.manual_seed(0)
        out = torch.zeros(2 if name == "multinomial" else 3, dtype=dtype, device=device)
        try:
            DRAWS[name](torch.tensor([1.0, 2.0, 3.0], device=device), out)
        except (RuntimeError, NotImplementedError) as error:
            return (type(error), str(error).split(" [")[0]), torch.rand(1).item()
        return out.cpu(), torch.rand(1).item()

    (result, following), (expected, wanted) = draw("lazy"), draw("cpu")
    assert following == wanted
    if isinstance(expected, tuple):
        assert result == expected
    else:
        assert_close(result, expected)


EMPTY = {
    "pixel_unshuffle": lambda x: F.pixel_unshuffle(x[:0], 2),
    "pixel_shuffle": lambda x: F.pixel_shuffle(x[:0], 2),
    "max_unpool2d": lambda x: F.max_unpool2d(x[:0], x[:0].long(), 2) * 2,
    "max_unpool3d": lambda x: F.max_unpool3d(x[:0], x[:0].long(), 2) * 2,
    "take": lambda x: x.take(x[:0].long()),
}


@pytest.mark.parametrize("name", EMPTY)
def test_nothing(name: str) -> None:
    """Results without elements have eager's sizes, and require gradients as in eager."""
    compare(EMPTY[name], torch.randn(2, 4, 6, 6).requires_grad_())


def test_ctc_loss_of_nothing() -> None:
    for device in ("cpu", "lazy"):
        one = torch.ones(0, dtype=torch.int64)
        with pytest.raises(RuntimeError, match="log_probs tensor must not be empty"):
            F.ctc_loss(torch.zeros(3, 0, 4, device=device), torch.ones(0, 2, device=device), one, one)  # fmt: skip


LDEXP_DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.int16, torch.int32, torch.bool, torch.complex64)  # fmt: skip


@pytest.mark.parametrize("other", LDEXP_DTYPES)
@pytest.mark.parametrize("dtype", LDEXP_DTYPES)
@pytest.mark.parametrize("shape", [(), (3,)])
def test_ldexp_of_all_dtypes(
    dtype: torch.dtype, other: torch.dtype, shape: tuple[int, ...]
) -> None:
    def program(x: torch.Tensor, exponent: torch.Tensor) -> list[torch.Tensor]:
        return [torch.ldexp(x, exponent), torch.ldexp(x, exponent.expand(3))]

    compare(program, torch.ones(shape, dtype=dtype), torch.tensor(2, dtype=other))


@pytest.mark.parametrize("exponent", [-200, 127, 128, 130, 200])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_ldexp_where_the_power_alone_is_infinite(
    dtype: torch.dtype, exponent: int
) -> None:
    def program(x: torch.Tensor) -> list[torch.Tensor]:
        power = torch.full((), exponent, device=x.device)
        return [torch.ldexp(x, power), x.clone().ldexp_(power.expand(4))]

    compare(program, torch.tensor([0.0, -0.0, 1e-30, 3.0], dtype=dtype))


BLOCKS = {
    "a number and a matrix": ((), (2, 2)),
    "a row and a number": ((3,), ()),
    "numbers": ((), ()),
}


@pytest.mark.parametrize("shapes", BLOCKS)
@pytest.mark.parametrize("other", [torch.float16, torch.int32, torch.complex64])
@pytest.mark.parametrize("dtype", [torch.bool, torch.int64, torch.float64])
def test_the_dtype_of_blocks(
    dtype: torch.dtype, other: torch.dtype, shapes: str
) -> None:
    first, second = (torch.ones(s) for s in BLOCKS[shapes])
    compare(lambda x, y: [torch.block_diag(x, y)], first.to(dtype), second.to(other))


@pytest.mark.parametrize("function", [torch.median, torch.nanmedian])
def test_the_median_of_nothing_has_a_gradient(function: Callable) -> None:
    def program(x: torch.Tensor) -> list[torch.Tensor]:
        chosen = function(x)
        chosen.backward()
        return [chosen, x.grad]

    compare(program, torch.zeros(0).requires_grad_())


@pytest.mark.parametrize("mode", [torch.enable_grad, torch.inference_mode])
def test_split_at_indices_on_the_device(mode: Callable[[], Any]) -> None:
    def program(x: torch.Tensor, indices: torch.Tensor) -> list[torch.Tensor]:
        sections = torch.tensor(3, device=x.device)
        return [*x.tensor_split(indices), *x.tensor_split(sections, 1)]

    with mode():
        compare(program, torch.arange(12.0).view(4, 3), torch.tensor([1, 3]))


def test_steps_of_convolutions_beyond_all_dims() -> None:
    x, window, point = torch.randn(1, 2, 5), torch.randn(3, 2, 3), torch.randn(3, 2, 1)
    with torch_ltc.config(tier="compile"):
        compare(lambda x, w: F.conv1d(x, w, stride=2**40), x, window)
        assert torch_ltc.compile_log()[-1]["origin"] == "compiled"
        compare(lambda x, w: F.conv1d(x, w, dilation=2**40), x, point)
        assert torch_ltc.compile_log()[-1]["origin"] == "compiled"


@pytest.mark.parametrize("dims", [0, (1, -7), 9])
def test_roll_of_no_elements_along_missing_dims(dims: int | tuple[int, ...]) -> None:
    """Eager doesn't check the dims then."""
    shifts = 1 if isinstance(dims, int) else (1, 2)
    with torch_ltc.config(tier="compile"):
        for dtype in (torch.float32, torch.complex64):
            compare(lambda x: x.roll(shifts, dims), torch.empty(0, 2, dtype=dtype))


#: Ops with a factor of the integers of their operand.
FACTORS: dict[str, Callable[[torch.Tensor, float], torch.Tensor]] = {
    "add": lambda x, n: torch.add(x, x, alpha=n),
    "rsub": lambda x, n: torch.rsub(x, x, alpha=n),
    "addcmul": lambda x, n: torch.addcmul(x, x, x, value=n),
    "addmm": lambda x, n: torch.addmm(x, x, x, beta=n),
    "index_add": lambda x, n: x.index_add(0, x[0] - 1, x, alpha=n),
}


@pytest.mark.parametrize("tier", ["compile", "interpret"])
@pytest.mark.parametrize("name", FACTORS)
def test_factors_that_do_not_fit_after_some_that_do(name: str, tier: str) -> None:
    """Calls that repeat an earlier one up to their numbers are checked, too."""

    def call(device: str, number: float, dtype: torch.dtype) -> object:
        x = torch.tensor([[1, 2], [2, 1]], dtype=dtype, device=device)
        try:
            return FACTORS[name](x, number).tolist()
        except RuntimeError as error:
            return str(error).split(" [")[0]

    dtypes = (torch.int64,) if name == "index_add" else (torch.int8, torch.int64)
    with torch_ltc.config(tier=tier):
        for dtype in dtypes:
            for number in (2, 3, 4, 5, 1e30, 300, -300, torch.inf, 6):
                assert call("lazy", number, dtype) == call("cpu", number, dtype)
                torch_ltc.mark_step()


@pytest.mark.parametrize("factor", [2.5, torch.inf, torch.nan])
def test_a_factor_of_empty_sums_is_not_used(factor: float) -> None:
    compare(
        lambda x, y, z: [
            torch.addmm(x, y, z, alpha=factor),
            torch.baddbmm(x[None], y[None], z[None], alpha=factor, beta=2),
            torch.addmv(x[0], z.t(), y[0], alpha=factor),
        ],
        torch.ones(2, 3),
        torch.ones(2, 0),
        torch.ones(0, 3),
    )
