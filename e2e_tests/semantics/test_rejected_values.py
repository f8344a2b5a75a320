"""Values that eager rejects at the call raise eager's error (class and message) where the
result is read, also in a program that has already been compiled; later steps are correct
again."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch_ltc
from comparison import assert_close
from torch.nn import functional as F

T = torch.tensor


def _unpool(count: int) -> Callable:
    def unpool(indices: torch.Tensor) -> torch.Tensor:
        x = torch.ones(indices.shape, device=indices.device)
        return getattr(F, f"max_unpool{count}d")(x, indices, 2)

    return unpool


def _bag(indices: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
    weight = torch.arange(20.0, device=indices.device).reshape(4, 5)
    return F.embedding_bag(indices, weight, offsets, mode="sum")


def _rows(x: torch.Tensor, count: int = 4) -> torch.Tensor:
    return torch.linspace(-1, 1, count * 5, device=x.device).reshape(count, 5)


def _small(x: torch.Tensor) -> torch.Tensor:
    return T([5, -6], dtype=torch.int8).to(x.device)


#: Name -> function of a tensor, valid values, invalid values.
CASES: dict[str, tuple[Callable, torch.Tensor, torch.Tensor]] = {
    "bernoulli above 1": (torch.bernoulli, T([1.0, 0.0]), T([0.5, 1.2])),
    "bernoulli below 0": (torch.bernoulli, T([1.0, 0.0]), T([-0.5, 1.0])),
    "bernoulli nan": (torch.bernoulli, T([1.0, 0.0]), T([float("nan"), 1.0])),
    "bernoulli_": (lambda p: torch.zeros(2, device=p.device).bernoulli_(p), T([1.0, 0.0]), T([0.5, 1.2])),
    "binary_cross_entropy input": (lambda x: F.binary_cross_entropy(x, torch.ones_like(x)), T([0.1, 0.2]), T([1.5, 0.2])),
    "binary_cross_entropy target": (lambda t: F.binary_cross_entropy(torch.full_like(t, 0.5), t), T([0.1, 0.2]), T([1.5, 0.2])),
    "binary_cross_entropy nan": (lambda x: F.binary_cross_entropy(x, torch.ones_like(x), reduction="none"), T([0.1, 0.2]), T([float("nan"), 0.2])),
    "multinomial negative": (lambda p: torch.multinomial(p, 1), T([0.0, 1.0]), T([0.5, -1.2])),
    "multinomial of nothing": (lambda p: torch.multinomial(p, 2), T([0.0, 1.0, 1.0]), T([0.0, 0.0, 0.0])),
    "multinomial with replacement": (lambda p: torch.multinomial(p, 3, True), T([0.0, 1.0]), T([0.5, -1.0])),
    "multinomial infinite": (lambda p: torch.multinomial(p, 3, True), T([0.0, 1.0]), T([0.5, float("inf")])),
    "normal": (lambda s: torch.normal(0.0, s), T([1.0, 2.0]), T([1.0, -2.0])),
    "multi_margin_loss": (lambda t: F.multi_margin_loss(_rows(t), t), T([0, 1, 2, 3]), T([0, 1, 2, 9])),
    "multi_margin_loss negative": (lambda t: F.multi_margin_loss(_rows(t), t), T([0, 1, 2, 3]), T([0, 1, 2, -1])),
    "multilabel_margin_loss": (lambda t: F.multilabel_margin_loss(_rows(t, 1)[0], t), T([0, 1, -1, 3, 0]), T([0, 1, 2, 9, 0])),
    "max_unpool2d in the next plane": (_unpool(2), T([[[[0, 2], [8, 10]]] * 2]), T([[[[0, 2], [8, 17]]] * 2])),
    "max_unpool3d": (_unpool(3), T([[[[[0, 2]]]]]), T([[[[[0, 99]]]]])),
    "embedding_bag offsets begin": (lambda o: _bag(T([0, 1, 2, 3]).to(o.device), o), T([0, 2]), T([1, 2])),
    "embedding_bag offsets end": (lambda o: _bag(T([0, 1, 2, 3]).to(o.device), o), T([0, 2]), T([0, 9])),
    "quantile": (lambda q: torch.quantile(_rows(q)[0], q), T([0.5, 1.0]), T([0.5, -0.1])),
    "nanquantile": (lambda q: torch.nanquantile(_rows(q)[0], q, interpolation="lower"), T([0.5, 1.0]), T([0.5, 1.1])),
    "searchsorted sorter": (lambda i: torch.searchsorted(_rows(i)[0, :2], _rows(i)[1], sorter=i), T([1, 0]), T([1, 2])),
    "nll_loss": (lambda t: F.nll_loss(_rows(t), t), T([0, 1, 2, 3]), T([0, 1, 2, 9])),
    "cross_entropy": (lambda t: F.cross_entropy(_rows(t), t), T([0, 1, 2, 3]), T([0, 1, 2, 9])),
    "embedding": (lambda i: F.embedding(i, _rows(i)), T([0, 1]), T([0, 9])),
    "index_select": (lambda i: _rows(i).index_select(0, i), T([0, 1]), T([0, 77])),
    "gather": (lambda i: _rows(i).gather(1, i), T([[0], [1]]), T([[0], [77]])),
    "take": (lambda i: _rows(i).take(i), T([0, -20]), T([0, 20])),
    "take from the end": (lambda i: _rows(i).take(i), T([0, -20]), T([0, -21])),
    "take one": (lambda i: _rows(i).take(i[0]), T([0, 0]), T([20, 0])),
    "one_hot": (lambda i: F.one_hot(i, 4), T([[0], [3]]), T([[0], [4]])),
    "one_hot negative": (lambda i: F.one_hot(i, 4), T([0, 3]), T([0, -1])),
    "one_hot negative and too large": (lambda i: F.one_hot(i, 4), T([0, 3]), T([9, -1])),
    "one_hot of any number": (lambda i: F.one_hot(i), T([0, 3]), T([3, -1])),
    "masked_fill": (lambda v: _small(v).masked_fill(_small(v) > 0, v[0]), T([127, 0]), T([128, 0])),
    "masked_fill of unsigned": (lambda v: _small(v).byte().masked_fill(_small(v) > 0, v[0]), T([-255, 0]), T([-256, 0])),
    "masked_fill of integers by a float": (lambda v: _small(v).masked_fill(_small(v) > 0, v[0]), T([-128.0, 0]), T([float("nan"), 0])),
    "masked_fill of floats": (lambda v: _rows(v.float()).masked_fill(_rows(v.float()) > 0, v[0]), T([float("inf"), 0], dtype=torch.float64), T([1e300, 0], dtype=torch.float64)),
    "masked_fill of int32": (lambda v: _small(v).int().masked_fill(_small(v) > 0, v[0]), T([2**31 - 1, 0]), T([2**31, 0])),
    "masked_fill of int32 below": (lambda v: _small(v).int().masked_fill(_small(v) > 0, v[0]), T([-(2**31), 0]), T([-(2**31) - 1, 0])),
    "masked_fill of int64 by uint64": (lambda v: _small(v).long().masked_fill(_small(v) > 0, v[0]), T([2**63 - 1], dtype=torch.uint64), T([2**63], dtype=torch.uint64)),
    "masked_fill of float16 by integers": (lambda v: _small(v).half().masked_fill(_small(v) > 0, v[0]), T([65504, 0]), T([65505, 0])),
    "masked_fill of float16 by bfloat16": (lambda v: _small(v).half().masked_fill(_small(v) > 0, v[0]), T([65280.0]).bfloat16(), T([65536.0]).bfloat16()),
    "index_fill": (lambda v: _small(v).index_fill(0, T([0]).to(v.device), v[0]), T([-128, 0]), T([-129, 0])),
    "zero as an int8": (lambda v: _small(v) // v[0], T([255, 0]), T([256, 0])),
    "remainder by zero as an int8": (lambda v: _small(v) % v[0], T([255, 0]), T([512, 0])),
    "scatter_add": (lambda i: _rows(i).scatter_add(1, i, _rows(i)), T([[0], [1]]), T([[0], [77]])),
}  # fmt: skip


#: The beginnings of the names of ops that draw and check known values at the call.
DRAWS = ("bernoulli", "multinomial", "normal")


def _outcome(
    function: Callable, x: torch.Tensor, device: str, is_cut: bool
) -> torch.Tensor | Exception:
    torch.manual_seed(0)
    try:
        # The tensor is held, because an unreferenced value may be overwritten before its
        # check, and then eager's kernels can't produce their message.
        moved = x.to(device)
        # A value that the step computes: some ops check known values at the call.
        computed = moved.clone()
        result = function(computed)
        if is_cut:
            torch_ltc.mark_step()
        return result.cpu()
    except (RuntimeError, IndexError) as error:
        return error


@pytest.mark.parametrize("is_moved", [True, False], ids=["moved", "created"])
@pytest.mark.parametrize("name", [name for name in CASES if name.startswith(DRAWS)])
def test_the_generator_after_known_values_that_are_rejected(
    name: str, is_moved: bool
) -> None:
    """Eager checks the values before it draws, or before each number (bernoulli)."""
    function, _, rejected = CASES[name]

    def error(device: str) -> tuple[str, torch.Tensor]:
        torch.manual_seed(0)
        values = (
            rejected.to(device)
            if is_moved
            else T(rejected.tolist(), dtype=rejected.dtype, device=device)
        )
        with pytest.raises(RuntimeError) as raised:
            function(values)
        return str(raised.value), torch.get_rng_state()

    (lazy, state), (eager, expected) = error("lazy"), error("cpu")
    assert lazy.startswith(eager)
    assert_close(state, expected)


def _words(error: Exception) -> str:
    """Returns the message without the numbers, which some of our checks don't report."""
    return str(error).split("\n")[0].split(" However, got")[0].split(" but got offs")[0]


@pytest.mark.parametrize("tier", ["compile", "interpret"])
@pytest.mark.parametrize("is_cut", [False, True], ids=["read", "cut"])
@pytest.mark.parametrize("name", CASES)
def test_eagers_error(name: str, is_cut: bool, tier: str) -> None:
    function, taken, rejected = CASES[name]
    expected = _outcome(function, taken, "cpu", False)
    eager = _outcome(function, rejected, "cpu", False)
    assert isinstance(eager, Exception)
    with torch_ltc.config(tier=tier):
        for _ in range(2):  # traced and checked as a new kind of call, then cached
            assert_close(_outcome(function, taken, "lazy", is_cut), expected)
        lazy = _outcome(function, rejected, "lazy", is_cut)
        assert type(lazy) is type(eager), lazy
        if "max_unpool" in name:  # eager names the index
            assert "Found an invalid max index" in str(lazy)
        else:
            assert _words(eager) in str(lazy)
        assert_close(_outcome(function, taken, "lazy", is_cut), expected)


DTYPES = [
    *(torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64),
    *(torch.float16, torch.bfloat16, torch.float32, torch.float64),
]


@pytest.mark.parametrize("dtype", DTYPES)
def test_fill_values_of_all_dtypes(dtype: torch.dtype) -> None:
    """Valid fill values of each dtype compile, whether or not they are checked."""

    def fill(device: str) -> list[torch.Tensor]:
        x = torch.ones(3, device=device).to(dtype)
        mask, index = x == 1, torch.zeros(1, dtype=torch.int64, device=device)
        values = [torch.tensor(3, device=device).to(given) for given in DTYPES]
        filled = [x.masked_fill(mask, value) for value in values]
        return filled + [x.index_fill(0, index, value) for value in values]

    with torch_ltc.config(tier="compile", compile_failure="raise"):
        lazy = fill("lazy")
        torch_ltc.mark_step()
        assert_close([x.cpu() for x in lazy], fill("cpu"))
