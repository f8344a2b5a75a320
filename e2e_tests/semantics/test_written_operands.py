"""In-place ops and `out=`: the written tensor keeps its sizes, dtype, strides and
memory, or eager's error is raised."""

from __future__ import annotations

import functools
import re
import warnings
from collections.abc import Callable

import pytest
import torch
from comparison import assert_same

Tensors = list[torch.Tensor]


def called(function: Callable, device: str) -> tuple[object, str, list[str]]:
    """Returns the result, the error with its class, and the warnings, with device names and
    line numbers removed."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result, error = None, ""
        try:
            result = function(device)
        except Exception as problem:
            text = str(problem).split(" [aten::")[0].split("\n")[0]
            error = f"{type(problem).__name__}: {text}"
    texts = [re.sub(r"\s+", " ", str(w.message))[:80] for w in caught]
    # Torch issues each of these warnings only once in a process. Any op that creates a
    # complex32 tensor may be the one that causes the second.
    once = ("Casting complex", "ComplexHalf support")
    warned = [text for text in texts if not text.startswith(once)]
    return result, error, warned


def both(function: Callable[[str], object]) -> str:
    """Compares lazy with eager, including errors and warnings; returns eager's error."""
    expected, expected_error, expected_warnings = called(function, "cpu")
    result, error, warned = called(function, "lazy")
    assert error == expected_error
    assert warned == expected_warnings
    assert_same(result, expected)
    return error


#: The names of all in-place methods whose only argument is another tensor.
def _binary() -> list[str]:
    found = []
    for name in dir(torch.Tensor):
        if not re.fullmatch(r"[a-z][a-z0-9_]*[a-z0-9]_", name):
            continue
        if name in ("set_", "resize_as_", "rename_", "share_memory_"):
            continue
        try:
            getattr(torch.ones(2, 3), name)(torch.ones(2, 3))
        except Exception:
            continue
        found.append(name)
    return found


BINARY = _binary()


def test_there_are_ops() -> None:
    assert len(BINARY) > 40


#: Sizes of the written operand and of the other operand.
SIZES = {
    "larger": ((1, 3), (4, 3)),
    "of more dims": ((3,), (2, 3)),
    "of a number": ((), (3,)),
    "unfit": ((2, 3), (2, 4)),
    "smaller": ((2, 3), (3,)),
    "empty": ((0, 3), (1, 3)),
}


@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)
@pytest.mark.parametrize("name", BINARY)
def test_in_place_with_other_sizes(name: str, sizes: tuple) -> None:
    own, other = sizes

    def program(device: str) -> object:
        x = torch.ones(own, device=device)
        getattr(x, name)(torch.full(other, 2.0, device=device))
        return x

    both(program)


DTYPES = (torch.bool, torch.uint8, torch.int64, torch.float16, torch.float32, torch.complex64)  # fmt: skip


#: Ops that, on device `lazy`, accept dtypes which eager's kernels don't support, reject
#: them later than eager, or raise an error with a different message.
LENIENT = (
    "floor_divide_",
    "fmod_",
    "hypot_",
    "igamma_",
    "igammac_",
    "nextafter_",
    "pow_",
    "remainder_",
)


@pytest.mark.parametrize("other", DTYPES, ids=str)
@pytest.mark.parametrize("own", DTYPES, ids=str)
def test_in_place_with_other_dtypes(own: torch.dtype, other: torch.dtype) -> None:
    for name in BINARY:
        if name in LENIENT:
            continue

        def program(device: str, name: str = name) -> object:
            x = torch.ones(2, 3, dtype=own, device=device)
            getattr(x, name)(torch.ones(2, 3, dtype=other, device=device))
            return x

        both(program)


@pytest.mark.parametrize("shapes", [((), ()), ((), (2,)), ((2,), ())], ids=str)
@pytest.mark.parametrize("name", ["add_", "sub_", "mul_", "eq_", "bitwise_or_"])
def test_errors_of_numbers_in_tensors(name: str, shapes: tuple) -> None:
    """Errors about the operands are raised before those about the result's sizes and
    dtype."""
    for own in (*DTYPES, torch.uint32):
        for other in (*DTYPES, torch.uint32):

            def program(
                device: str, own: torch.dtype = own, other: torch.dtype = other
            ) -> object:
                x = torch.ones(shapes[0], dtype=own, device=device)
                getattr(x, name)(torch.ones(shapes[1], dtype=other, device=device))
                return x

            both(program)


@pytest.mark.parametrize("own", (*DTYPES, torch.uint16, torch.uint32), ids=str)
@pytest.mark.parametrize("other", (*DTYPES, torch.uint16, torch.uint32), ids=str)
def test_fill_of_another_dtype(own: torch.dtype, other: torch.dtype) -> None:
    """`fill_` behaves as in eager for all pairs of dtypes, including those that have no
    common dtype."""

    def program(device: str) -> object:
        x = torch.zeros(2, 3, dtype=own, device=device)
        return x.fill_(torch.ones((), dtype=other, device=device))

    both(program)


WRITES_OF_NUMBERS = {
    "bernoulli_": lambda y, x: y.bernoulli_(x.expand(2, 4) / 2),
    "copy_": lambda y, x: y.copy_(x),
    "eq_": lambda y, x: y.eq_(x),
    "fill_": lambda y, x: y.fill_(x),
    "foreach": lambda y, x: torch._foreach_copy_([y], [x.expand(2, 4)]),
    "index_fill_": lambda y, x: y.index_fill_(1, torch.arange(2, device=y.device), x),
    "masked_fill_": lambda y, x: y.masked_fill_(y > 5, x),
    "mask as index": lambda y, x: y.__setitem__(y > 5, x),
}


@pytest.mark.parametrize("name", WRITES_OF_NUMBERS)
def test_integers_from_a_number_with_a_gradient(name: str) -> None:
    """A view of integers takes the value of a tensor that requires a gradient."""

    def program(device: str) -> Tensors:
        memory = torch.arange(12, device=device).view(3, 4)
        number = torch.tensor(2.0, device=device, requires_grad=True)
        WRITES_OF_NUMBERS[name](memory[1:], number)
        return [memory.detach()]

    both(program)


@pytest.mark.parametrize("name", ["add_", "eq_", "pow_", "copysign_", "atan2_"])
def test_a_rejected_write_leaves_all_as_it_was(name: str) -> None:
    x, y = torch.ones(1, 3, device="lazy"), torch.ones(4, 3, device="lazy")
    view = x[0]
    with pytest.raises(RuntimeError, match="doesn't match the broadcast shape"):
        getattr(x, name)(y)
    view.add_(1)
    assert_same([x, y], [torch.full((1, 3), 2.0), torch.ones(4, 3)])


# -- out= ------------------------------------------------------------------------


def _sources(device: str) -> Tensors:
    return [
        torch.arange(12.0).reshape(3, 4).to(device) / 7,
        torch.arange(12.0, 0, -1).reshape(3, 4).to(device) / 5,
    ]


#: Functions of two tensors of shape [3, 4] that write into `out`.
OUT_OPS: dict[str, Callable[..., object]] = {
    "add": lambda a, b, out: torch.add(a, b, out=out),
    "neg": lambda a, b, out: torch.neg(a, out=out),
    "floor": lambda a, b, out: torch.floor(a, out=out),
    "sigmoid": lambda a, b, out: torch.sigmoid(a, out=out),
    "eq": lambda a, b, out: torch.eq(a, b, out=out),
    "heaviside": lambda a, b, out: torch.heaviside(a, b, out=out),
    "where": lambda a, b, out: torch.where(a > b, a, b, out=out),
    "clamp": lambda a, b, out: torch.clamp(a, 0.2, 0.8, out=out),
    "sum": lambda a, b, out: torch.sum(a, 0, out=out),
    "mean": lambda a, b, out: torch.mean(a, 1, out=out),
    "argmax": lambda a, b, out: torch.argmax(a, 1, out=out),
    "cumsum": lambda a, b, out: torch.cumsum(a, 1, out=out),
    "mm": lambda a, b, out: torch.mm(a, b.t(), out=out),
    "cat": lambda a, b, out: torch.cat([a, b], out=out),
    "stack": lambda a, b, out: torch.stack([a, b], out=out),
    "index_select": lambda a, b, out: torch.index_select(
        a, 0, torch.tensor([2, 0]).to(a.device), out=out
    ),
    "gather": lambda a, b, out: torch.gather(
        a, 1, torch.tensor([[1], [0], [3]]).to(a.device), out=out
    ),
    "nonzero": lambda a, b, out: torch.nonzero(a, out=out),
    "softmax": lambda a, b, out: torch.softmax(a, 1, out=out),
    "tril": lambda a, b, out: torch.tril(a, out=out),
    "arange": lambda a, b, out: torch.arange(5, out=out),
    "linspace": lambda a, b, out: torch.linspace(0, 3, 4, out=out),
    "eye": lambda a, b, out: torch.eye(3, out=out),
    "inverse": lambda a, b, out: torch.linalg.inv(
        a[:, :3] + torch.eye(3).to(a.device), out=out
    ),
}

#: For each `out`: a function that creates the memory, and one that returns the part of it
#: that is `out`.
DESTINATIONS: dict[str, tuple[Callable, Callable]] = {
    "row-major": (lambda s, t: torch.zeros(s, dtype=t), lambda m, s: m),
    "column-major": (
        lambda s, t: torch.zeros(s[::-1], dtype=t),
        lambda m, s: m.permute(*reversed(range(m.dim()))),
    ),
    "with gaps": (
        lambda s, t: torch.zeros((*s[:-1], 2 * s[-1] + 1), dtype=t),
        lambda m, s: m[..., 1::2],
    ),
    "without elements": (lambda s, t: torch.zeros(0, dtype=t), lambda m, s: m),
    "too large": (lambda s, t: torch.zeros(40, dtype=t), lambda m, s: m),
    "too small": (lambda s, t: torch.zeros(2, dtype=t), lambda m, s: m),
    "a part": (lambda s, t: torch.zeros(60, dtype=t), lambda m, s: m[3:5]),
    "a matrix's part": (
        lambda s, t: torch.zeros(9, 9, dtype=t),
        lambda m, s: m[1:3, 2:4],
    ),
    "float32": (lambda s, t: torch.zeros(s), lambda m, s: m),
    "float64": (lambda s, t: torch.zeros(s, dtype=torch.float64), lambda m, s: m),
    "int64": (lambda s, t: torch.zeros(s, dtype=torch.int64), lambda m, s: m),
    "bool": (lambda s, t: torch.zeros(s, dtype=torch.bool), lambda m, s: m),
    "complex64": (lambda s, t: torch.zeros(s, dtype=torch.complex64), lambda m, s: m),
}


@pytest.mark.parametrize("name", OUT_OPS)
@pytest.mark.parametrize("destination", DESTINATIONS)
def test_out(destination: str, name: str) -> None:
    op = OUT_OPS[name]
    right = op(*_sources("cpu"), None)
    make, part = DESTINATIONS[destination]

    def program(device: str) -> object:
        memory = make(tuple(right.shape), right.dtype).to(device)
        out = part(memory, right.shape)
        result = op(*_sources(device), out)
        return [out, memory, result is out]

    both(program)


@pytest.mark.parametrize("mode", [None, "trunc", "floor"])
@pytest.mark.parametrize("divisor", [2, torch.tensor(2)], ids=["number", "tensor"])
def test_quotients_in_place(divisor: object, mode: str | None) -> None:
    def program(device: str) -> object:
        by = divisor.to(device) if isinstance(divisor, torch.Tensor) else divisor
        return torch.full((3,), 7, device=device).div_(by, rounding_mode=mode)

    assert bool(both(program)) == (mode is None)


def test_out_that_is_read() -> None:
    def program(device: str) -> torch.Tensor:
        out = torch.ones(2, 4, device=device)
        rows = torch.arange(12.0, device=device).view(3, 4)
        factors = torch.arange(6.0, device=device).view(2, 3)
        return torch._compute_linear_combination(rows, factors, out=out)

    both(program)


READ_OUTS: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "add": lambda x, y: torch.add(y, x, out=x),
    "a number": lambda x, y: torch.mul(x, z := x.sum(), out=z),
    "where": lambda x, y: torch.where(y > 0, x, y, out=x),
    "mv": lambda x, y: torch.mv(y, x, out=x),
    "dot": lambda x, y: torch.dot(x, y[0], out=x),
    "itself": lambda x, y: torch.add(x, y[0], out=x),
}


def _with_numbers_of_a_tensor(x: list[torch.Tensor]) -> None:
    torch._foreach_addcmul_(x, x, x, torch.tensor([2.0, 3.0]))


def _with_a_complex_number(x: list[torch.Tensor]) -> None:
    torch._foreach_mul_(x, 2j)


def _with_complex_tensors(x: list[torch.Tensor]) -> None:
    torch._foreach_add_(x, [y * 1j for y in x])


def _by_an_optimizer(x: list[torch.Tensor]) -> None:
    torch._fused_sgd_(
        x, [y * 2 for y in x], [], weight_decay=0.0, momentum=0.0, lr=0.1,
        dampening=0.0, nesterov=False, maximize=False, is_first_step=True,
    )  # fmt: skip


@pytest.mark.parametrize(
    "write",
    [_with_numbers_of_a_tensor, _with_a_complex_number, _with_complex_tensors, _by_an_optimizer],
)  # fmt: skip
def test_written_lists(write: Callable) -> None:
    def program(device: str) -> list:
        tensors = [torch.arange(3.0).to(device), torch.ones(2, 2).to(device)]
        write(tensors)
        return tensors

    both(program)


@pytest.mark.parametrize("name", READ_OUTS)
def test_out_that_is_read_and_too_small(name: str) -> None:
    """Eager doesn't resize a tensor that an elementwise op also reads; other ops resize it
    before they read it."""
    both(lambda d: READ_OUTS[name](torch.ones(5, device=d), torch.ones(3, 5, device=d)))


def test_out_of_two_results() -> None:
    def program(device: str) -> object:
        x = torch.tensor([[3.0, 1, 2], [4, 6, 5]]).to(device)
        memory = torch.zeros(4, 6, device=device)
        places = torch.zeros(3, 2, dtype=torch.long, device=device).t()
        torch.sort(x, 1, out=(memory[1:3, ::2], places))
        torch.max(x, 0, out=(memory[0, :3], torch.empty(0, dtype=torch.long).to(device)))  # fmt: skip
        torch.cummax(x, 0, out=(memory[1:3, 1::2], places))
        return [memory, places]

    both(program)


def test_masked_scatter_of_a_short_source() -> None:
    def program(device: str, count: int, in_place: bool) -> object:
        x = torch.zeros(2, 3, device=device)
        mask = torch.tensor([[True, True, False], [True, True, True]]).to(device)
        source = torch.arange(float(count)).to(device)
        method = x.masked_scatter_ if in_place else x.masked_scatter
        return method(mask, source).cpu()

    for count in (0, 1, 4, 5, 6):
        for in_place in (False, True):
            error = both_values(
                functools.partial(program, count=count, in_place=in_place)
            )
            assert bool(error) == (count < 5)


def both_values(function: Callable[[str], torch.Tensor]) -> str:
    """Compares like `both`, but lazy raises errors that depend on values when a result is
    read, and its message only has to contain eager's."""
    expected, expected_error, _ = called(function, "cpu")
    result, error, _ = called(function, "lazy")
    kind, _, text = expected_error.partition(": ")
    assert bool(error) == bool(expected_error)
    assert error.startswith(kind) and text in error
    assert_same(result, expected)
    return expected_error


def test_errors_of_linear_algebra() -> None:
    for function in (torch.linalg.inv, torch.linalg.cholesky):
        with pytest.raises(torch.linalg.LinAlgError):
            function(torch.zeros(2, 2, device="lazy")).cpu()


LISTS: dict[str, Callable[[torch.Tensor, list[torch.Tensor]], object]] = {
    "split_copy": lambda x, out: torch.split_copy(x, 2, out=out),
    "unbind_copy": lambda x, out: torch.unbind_copy(x.view(3, 2, 2), out=out),
    "split_with_sizes_copy": lambda x, out: torch.split_with_sizes_copy(
        x, [2, 2, 2], out=out
    ),
}
LIST_DESTINATIONS: dict[str, Callable[[str], torch.Tensor]] = {
    "of its size": lambda d: torch.zeros(2, 2, device=d),
    "empty": lambda d: torch.empty(0, device=d),
    "larger": lambda d: torch.zeros(3, 2, device=d),
    "transposed": lambda d: torch.zeros(2, 2, device=d).t(),
    "a part": lambda d: torch.zeros(2, 3, device=d)[:, 1:],
    "of integers": lambda d: torch.zeros(2, 2, dtype=torch.int64, device=d),
}


@pytest.mark.parametrize("name", LISTS)
@pytest.mark.parametrize("kind", LIST_DESTINATIONS)
def test_lists_as_out(kind: str, name: str) -> None:
    """Lists of tensors are written as in eager, and their versions change: autograd has to
    see the write."""

    def program(device: str) -> object:
        x = torch.arange(12.0, device=device).view(6, 2)
        out = [LIST_DESTINATIONS[kind](device) for _ in range(3)]
        result = LISTS[name](x, out)
        versions = [] if kind == "empty" else [t._version > 0 for t in out]
        return [*out, result is None, *versions]

    both(program)


NORMAL: dict[str, Callable[..., torch.Tensor]] = {
    "of tensors": lambda d, out: torch.normal(torch.zeros(3, device=d), torch.ones(3, device=d), out=out),
    "of means": lambda d, out: torch.normal(torch.zeros(3, device=d), 2.0, out=out),
    "of deviations": lambda d, out: torch.normal(1.0, torch.ones(3, device=d), out=out),
    "of numbers": lambda d, out: torch.normal(1.0, 2.0, (3,), out=out),
}  # fmt: skip


@pytest.mark.parametrize("sizes", [(3,), (0,), (7,), (2, 3), (1,)])
@pytest.mark.parametrize("name", NORMAL)
def test_normal_into_other_sizes(name: str, sizes: tuple) -> None:
    """Results are eager's, and so is the state of the generator afterwards."""

    def program(device: str) -> object:
        torch.manual_seed(0)
        whole = torch.zeros(*sizes, 2, device=device)
        dense, spread = whole[..., 0].clone(), whole[..., 1]
        results = [NORMAL[name](device, dense)]
        if sizes == (3,):
            results.append(NORMAL[name](device, spread))
        return [*results, whole, torch.rand(1)]

    both(program)


def test_resize_to_a_memory_format() -> None:
    def program(device: str) -> object:
        results = []
        for count in (120, 500, 7):
            for sizes, last in (
                ((2, 3, 4, 5), torch.channels_last),
                ((1, 2, 3, 4, 5), torch.channels_last_3d),
                ((2, 3, 4, 5), torch.contiguous_format),
            ):
                x = torch.arange(float(count)).to(device)
                kept = x.resize_(sizes, memory_format=last)
                results.append(kept if count >= 120 else kept.stride())
        return results

    both(program)


def test_draws_into_an_empty_part() -> None:
    """An empty view grows within the memory of its base."""

    def program(device: str) -> object:
        torch.manual_seed(0)
        memory = torch.zeros(12, device=device)
        parts = [memory[at:at] for at in range(1, 10, 2)]
        torch.rand(2, out=parts[0])
        torch.randn(1, 2, out=parts[1])
        torch.bernoulli(torch.full((2,), 0.5, device=device), out=parts[2])
        torch.normal(0.0, 1.0, (1,), out=parts[3])
        torch.randint(5, (3,), out=parts[4])
        emptied = [torch.zeros(4, device=device).resize_(0) for _ in range(2)]
        torch.normal(torch.zeros(3, device=device), 1.0, out=emptied[0])
        torch.multinomial(memory.abs(), 3, out=(drawn := emptied[1].long()))
        return [memory, parts, emptied, drawn]

    both(program)
