"""Custom ops whose kernels write to arguments that their schemas don't declare as written:
eager PyTorch doesn't check this, so programs rely on it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import torch
from comparison import compare

KEYS = ["CPU", "CompositeExplicitAutograd", "CompositeImplicitAutograd", "Lazy"]


@pytest.fixture
def own_library() -> Iterator[torch.library.Library]:
    with torch.library._scoped_library("torch_ltc_undeclared", "DEF") as scoped:
        yield scoped


def _write_all(xs: list) -> torch.Tensor:
    for number, x in enumerate(xs):
        x.add_(number + 1)
    return xs[0] * 2


def _write_by_numpy(xs: list) -> torch.Tensor:
    xs[0].numpy()[...] = 5
    return xs[-1] + 1


#: Lists of views whose memory an op writes although its schema doesn't say so.
VIEWS = {
    "whole": lambda x: [x],
    "row": lambda x: [x[1]],
    "columns": lambda x: [x.t()[1:]],
    "step": lambda x: [x[:, ::2]],
    "overlapping": lambda x: [x[:2], x[1:], x[:2]],
    "twice": lambda x: [x, x],
}


@pytest.mark.parametrize("views", VIEWS)
@pytest.mark.parametrize("key", KEYS)
def test_writes_that_the_schema_does_not_declare(
    own_library: torch.library.Library, key: str, views: str
) -> None:
    library = own_library
    library.define("undeclared(Tensor[] xs) -> Tensor")
    library.impl("undeclared", _write_all, key)
    op = torch.ops.torch_ltc_undeclared.undeclared
    other = library.define("by_numpy(Tensor[] xs) -> Tensor")
    library.impl(other, _write_by_numpy, "CPU")
    by_numpy = torch.ops.torch_ltc_undeclared.by_numpy

    def program(x: torch.Tensor) -> list:
        y = x.clone()
        copies = [y.clone(), y * 1]
        parts = VIEWS[views](y)
        # The key "Lazy" has no kernel for CPU tensors.
        run = _write_all if key == "Lazy" and x.is_cpu else op
        results = [run(parts), y.clone(), y._version]
        return [*results, by_numpy(parts), y, *parts, *copies, y._version]

    compare(program, torch.arange(12.0).reshape(4, 3))


@pytest.mark.parametrize("view", [lambda x: x.conj(), lambda x: x.imag, lambda x: x])
def test_a_returned_argument_that_shares_memory(
    own_library: torch.library.Library, view: Callable
) -> None:
    """The result is the argument itself, not a view of another argument."""
    own_library.define("second(Tensor x, Tensor y) -> Tensor")
    own_library.impl("second", lambda x, y: y, "CPU")

    def program(x: torch.Tensor) -> list:
        y = x * 2
        result = torch.ops.torch_ltc_undeclared.second(y, view(y))
        return [result.clone(), result.mul_(3), y]

    compare(program, torch.tensor([1 + 2j, 3 - 4j]))


@pytest.mark.parametrize("device_types", [None, "cpu"])
def test_a_custom_op_writes_without_declaring_it(device_types: str | None) -> None:
    @torch.library.custom_op(
        f"torch_ltc_tests::undeclared_on_{device_types}",
        mutates_args={"x"},
        device_types=device_types,
    )
    def op(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        x.add_(1)
        y[..., 1:] = 7
        return x * y

    def program(x: torch.Tensor) -> list:
        y = x * 2
        return [op(x[:2], y[2:]), x, y, op(x[:2], x[1:3]), x, op(x, x)]

    compare(program, torch.arange(12.0).reshape(4, 3))
