"""Ops of `torch.library`: one with a kernel for all devices is traced, one with a CPU
kernel runs on the CPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
import torch_ltc
from comparison import assert_close, compare


def _define(name: str) -> torch.library.CustomOpDef:
    """Defines an op that writes in place and through views, and so needs
    functionalization."""

    @torch.library.custom_op(f"torch_ltc_tests::{name}", mutates_args=())
    def op(x: torch.Tensor) -> torch.Tensor:
        y = x.clone()
        y[1:] += 1
        y.view(-1)[0] = 7
        z = torch.zeros_like(y)
        z[0].copy_(y[1])
        return y + z

    op.register_fake(torch.empty_like)
    op.register_autograd(lambda _, gradient: gradient * 2)
    return op


def test_a_kernel_for_all_devices_is_traced() -> None:
    op = _define("in_place")
    x = torch.arange(6.0).reshape(3, 2)
    lazy = x.to("lazy").requires_grad_()
    torch_ltc.reset_metrics()
    result = op(lazy)
    (result * 1.5).sum().backward()
    assert torch_ltc.metrics()["fallback_calls"] == 0
    assert torch_ltc.metrics()["implicit_syncs"] == 0
    assert_close(result, op(x))
    assert_close(lazy.grad, torch.full((3, 2), 3.0))


def test_the_users_kernel_for_lazy_comes_first() -> None:
    op = _define("own_kernel")

    @op.register_kernel("lazy")
    def kernel(x: torch.Tensor) -> torch.Tensor:
        y = x + 100
        y[0] += 1
        y.view(-1)[-1] = 7
        return y

    result = op(torch.zeros(2, 2, device="lazy"))
    assert result.tolist() == [[101, 101], [100, 7]]


def _define_writing(name: str, device_types: str | None) -> torch.library.CustomOpDef:
    @torch.library.custom_op(
        f"torch_ltc_tests::{name}", mutates_args={"x"}, device_types=device_types
    )
    def op(x: torch.Tensor, by: float) -> torch.Tensor:
        x.add_(by)
        x[..., 0] = 7
        return x * 2

    return op


@pytest.mark.parametrize("device_types", [None, "cpu"])
def test_writes_to_an_argument(device_types: str | None) -> None:
    op = _define_writing(f"writing_on_{device_types}", device_types)

    def program(x: torch.Tensor) -> list:
        version = x._version
        return [x, op(x[1:].t(), 5.0), op(x, by=0.5), x._version > version]

    torch_ltc.reset_metrics()
    compare(program, torch.arange(6.0).reshape(3, 2))
    eager_calls = 2 if device_types == "cpu" else 0
    assert torch_ltc.metrics()["fallback_calls"] == eager_calls


def test_a_written_argument_gives_no_gradient_of_the_result() -> None:
    op = _define_writing("writing_gradient", None)

    def program(x: torch.Tensor) -> list:
        y = x.detach().requires_grad_() * 1
        (op(y, 1.0) + y).sum().backward()
        return []

    compare(program, torch.ones(2))
    y = torch.ones(2, device="lazy").requires_grad_() * 1
    with pytest.raises(RuntimeError, match="no autograd formula"):
        op(y, 1.0).sum().backward()


def test_without_a_kernel_it_is_rejected() -> None:
    op = _define_writing("writing_elsewhere", "cuda")
    with pytest.raises(NotImplementedError, match="register_kernel"):
        op(torch.zeros(2, device="lazy"), 1.0)


def _kernel(write: Callable) -> Callable:
    """Returns a kernel that calls `write` and returns nothing."""

    def kernel(x: torch.Tensor) -> None:
        write(x)

    return kernel


@pytest.fixture(scope="module")
def library() -> Iterator[torch.library.Library]:
    with torch.library._scoped_library("torch_ltc_defined", "DEF") as scoped:
        yield scoped
    # torch.export (2.13) lists the ops of all namespaces, also those that are gone.
    vars(torch.ops).pop("torch_ltc_defined", None)


KEYS = ["CPU", "CompositeExplicitAutograd", "CompositeImplicitAutograd", "Lazy"]


@pytest.mark.parametrize("key", KEYS)
def test_a_defined_op_writes_to_an_argument(
    library: torch.library.Library, key: str
) -> None:
    """An op can write to a view of a lazy tensor, even if the tensor was created before the
    op was defined."""

    def scale_(x: torch.Tensor, factor: float) -> torch.Tensor:
        return x.mul_(factor)

    x = torch.arange(6.0, device="lazy").view(2, 3)
    name = f"scale_{key}_"
    library.define(f"{name}(Tensor(a!) x, float factor) -> Tensor(a!)")
    library.impl(name, scale_, key)
    torch_ltc.reset_metrics()
    row = x[1]
    result = getattr(torch.ops.torch_ltc_defined, name)(row, 2.0)
    assert result is row
    assert x._version == row._version == 1
    assert torch_ltc.metrics()["fallback_calls"] == (key == "CPU")
    assert x.tolist() == [[0, 1, 2], [6, 8, 10]]


def test_an_op_that_python_does_not_see_defined(
    library: torch.library.Library,
) -> None:
    """An op that is defined without torch.library's methods, as in a C++ library, is
    recognized when the next op is traced."""
    library.m.define("from_cpp_(Tensor(a!) x) -> ()", "", ())
    library.impl("from_cpp_", _kernel(lambda x: x.add_(1)), "CPU")
    x = torch.zeros(2, device="lazy") + 1
    torch.ops.torch_ltc_defined.from_cpp_(x)
    assert x.tolist() == [2, 2]


def test_a_defined_op_is_listed_with_the_line(library: torch.library.Library) -> None:
    library.define("listed_(Tensor(a!) x) -> ()")
    library.impl("listed_", _kernel(lambda x: x.add_(1)), "CPU")
    torch_ltc.reset_metrics()
    x = torch.zeros(1, device="lazy")
    torch.ops.torch_ltc_defined.listed_(x)
    (entry,) = torch_ltc.fallbacks()
    assert entry["op"] == "torch_ltc_defined::listed_"
    assert "test_custom_ops.py" in entry["location"]
    assert "custom op" in entry["reason"]


def test_a_defined_op_with_lists_and_a_resized_result(
    library: torch.library.Library,
) -> None:
    library.define("advance(Tensor(a!)[] xs, Tensor?[] others, Tensor x) -> Tensor[]")

    @torch.library.impl(library, "advance", "CPU")
    def advance(xs: list, others: list, x: torch.Tensor) -> list:
        for written in xs:
            written.add_(1)
        return [x * 2, *(other + 1 for other in others if other is not None)]

    library.define("triple(Tensor x, *, Tensor(a!) out) -> Tensor(a!)")

    @torch.library.impl(library, "triple", "CPU")
    def triple(x: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
        return out.resize_(x.shape).copy_(x * 3)

    def program(x: torch.Tensor) -> list:
        y = x.clone()
        ops = torch.ops.torch_ltc_defined
        results = ops.advance([x.t(), y[1:]], [None, y], y)
        out = x.new_empty(0)
        same = ops.triple(x, out=out) is out
        # A tensor that is both written and read is the same tensor for the op.
        return [x, y, *results, out, same, *ops.advance([x], [], x)]

    compare(program, torch.arange(6.0).reshape(3, 2))


def test_a_defined_op_takes_gradients_where_they_are_known(
    library: torch.library.Library,
) -> None:
    library.define("grow_(Tensor(a!) x) -> ()")
    library.impl("grow_", _kernel(lambda x: x.mul_(3)), "CompositeImplicitAutograd")

    def program(x: torch.Tensor) -> torch.Tensor:
        y = x.requires_grad_() * 1
        torch.ops.torch_ltc_defined.grow_(y[1:])
        y.sum().backward()
        return x.grad

    compare(program, torch.ones(3, 2))
    library.define("opaque_(Tensor(a!) x) -> ()")
    library.impl("opaque_", _kernel(lambda x: x.mul_(3)), "CPU")
    parameter = torch.ones(2, device="lazy", requires_grad=True)
    with pytest.raises(RuntimeError, match="it has no gradients"):
        torch.ops.torch_ltc_defined.opaque_(parameter * 1)
    with torch.no_grad():
        torch.ops.torch_ltc_defined.opaque_(parameter)
    assert parameter.tolist() == [3, 3]


def test_inference_mode(library: torch.library.Library) -> None:
    """Ops that write work in inference mode, whose tensors have no autograd keys."""
    library.define("append_(Tensor(a!) cache, Tensor x, int at) -> ()")

    @torch.library.impl(library, "append_", "CPU")
    def append(cache: torch.Tensor, x: torch.Tensor, at: int) -> None:
        cache[at].copy_(x)

    op = _define_writing("writing_in_inference", None)

    def program(x: torch.Tensor) -> list:
        with torch.inference_mode():
            cache = x.new_zeros(2, 3, 2)
            torch.ops.torch_ltc_defined.append_(cache, x, 1)
            torch.ops.torch_ltc_defined.append_(cache[0].t()[None], x.t(), 0)
            result = op(cache[:, 1], 1.0)
        return [cache.clone(), result.clone(), x]

    compare(program, torch.arange(6.0).reshape(3, 2))


def test_the_op_has_a_kernel_for_autograd(library: torch.library.Library) -> None:
    library.define("double_(Tensor(a!) x) -> Tensor(a!)")
    library.impl("double_", lambda x: x.mul_(2), "CPU")

    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            with torch._C._AutoDispatchBelowAutograd():
                torch.ops.torch_ltc_defined.double_(x)
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
            return gradient * 2

    library.impl("double_", lambda x: Double.apply(x), "Autograd")

    def program(x: torch.Tensor) -> list:
        y = x.requires_grad_() * 3
        torch.ops.torch_ltc_defined.double_(y).sum().backward()
        return [x.grad, y.detach()]

    compare(program, torch.ones(3))


def test_a_defined_op_that_fails_loses_nothing(library: torch.library.Library) -> None:
    library.define("failing_(Tensor(a!) x) -> ()")

    @torch.library.impl(library, "failing_", "CPU")
    def failing(x: torch.Tensor) -> None:
        x.zero_()
        raise ValueError("on purpose")

    x = torch.ones(2, device="lazy")
    with pytest.raises(ValueError, match="on purpose"):
        torch.ops.torch_ltc_defined.failing_(x)
    assert x.tolist() == [1, 1]


def test_an_op_may_be_defined_again() -> None:
    """A notebook cell that runs again may redefine an op, here to one without writes."""
    with torch.library._scoped_library("torch_ltc_again", "DEF") as first:
        first.define("op(Tensor(a!) x) -> ()")
        first.impl("op", _kernel(lambda x: x.add_(1)), "CPU")
        x = torch.zeros(2, device="lazy")
        torch.ops.torch_ltc_again.op(x)
        assert x.tolist() == [1, 1]
    with torch.library._scoped_library("torch_ltc_again", "DEF") as second:
        second.define("op(Tensor x) -> Tensor")
        second.impl("op", lambda x: x.sin(), "CompositeImplicitAutograd")
        y = torch.ones(2, device="lazy", requires_grad=True)
        torch.ops.torch_ltc_again.op(y).sum().backward()
        assert_close(y.grad, torch.ones(2).cos())


def test_torch_compile_takes_a_defined_op(library: torch.library.Library) -> None:
    library.define("by_numpy_(Tensor(a!) x) -> ()")
    library.impl(
        "by_numpy_", _kernel(lambda x: x.add_(torch.from_numpy(x.numpy()))), "CPU"
    )
    library.impl("by_numpy_", lambda x: None, "Meta")

    def program(x: torch.Tensor) -> torch.Tensor:
        y = x * 2
        torch.ops.torch_ltc_defined.by_numpy_(y)
        return y + 1

    def compiled(x: torch.Tensor) -> torch.Tensor:
        return torch.compile(program, backend="aot_eager")(x)

    compare(compiled, torch.ones(3))


def test_torch_compile_on_the_cpu_keeps_the_op() -> None:
    """torch.compile calls the op for CPU tensors instead of tracing its kernel. It would
    trace a kernel at a key that all devices share, so torch_ltc registers no such
    kernel."""

    @torch.library.custom_op("torch_ltc_tests::add_read", mutates_args={"x"})
    def add_read(x: torch.Tensor) -> None:
        x.add_(torch.from_numpy(x.numpy().copy()))

    def program(x: torch.Tensor) -> torch.Tensor:
        y = x * 2
        add_read(y)
        return y

    compiled = torch.compile(program, backend="aot_eager")
    assert_close(compiled(torch.ones(3)), torch.full((3,), 4.0))


@pytest.fixture
def own_library() -> Iterator[torch.library.Library]:
    with torch.library._scoped_library("torch_ltc_own", "DEF") as scoped:
        yield scoped


@pytest.mark.parametrize("key", KEYS[:3])
def test_results_that_are_views_of_arguments(
    own_library: torch.library.Library, key: str
) -> None:
    library = own_library
    library.define("row(Tensor(a) x, int i) -> Tensor(a)")
    library.define("same(Tensor(a) x) -> Tensor(a)")
    library.define("halves(Tensor(a) x) -> (Tensor(a), Tensor(a))")
    library.impl("row", lambda x, i: x[i], key)
    library.impl("same", lambda x: x.view(x.shape), key)
    library.impl("halves", lambda x: (x[:, :1], x[:, 1:]), key)
    ops = torch.ops.torch_ltc_own

    def program(x: torch.Tensor) -> list:
        y = x.clone()
        part = y[1:]
        views = [ops.row(part, 1), ops.same(y.t()), *ops.halves(y)]
        for number, view in enumerate(views):
            view.add_(number + 1)
        y.mul_(2)
        return [x, y, part, *views]

    compare(program, torch.arange(12.0).reshape(4, 3))


@pytest.mark.parametrize("key", KEYS[:3])
def test_a_result_that_is_an_argument(
    own_library: torch.library.Library, key: str
) -> None:
    library = own_library
    library.define("kept(Tensor x, bool keep) -> Tensor")
    library.impl("kept", lambda x, keep: x if keep else x + 1, key)
    op = torch.ops.torch_ltc_own.kept

    def program(x: torch.Tensor) -> list:
        y = x.clone()
        z = op(y, True)
        z.add_(1)
        return [x, y, z, op(y, False)]

    compare(program, torch.arange(6.0))


@pytest.mark.parametrize("key", KEYS[1:3])
def test_a_kernel_that_writes_through_views_of_its_own(
    own_library: torch.library.Library, key: str
) -> None:
    library = own_library
    library.define("ringed(Tensor x) -> Tensor")

    def ringed(x: torch.Tensor) -> torch.Tensor:
        result = torch.zeros_like(x)
        result[0].copy_(x[0])
        result.view(-1)[-1] = 7
        return result

    library.impl("ringed", ringed, key)
    op = torch.ops.torch_ltc_own.ringed
    compare(lambda x: [op(x), op(x.t())], torch.arange(12.0).reshape(3, 4))


#: PyTorch's primitive ops, including those that return views.
PRIMS = {
    "abs": lambda p, x: p.abs(x),
    "add": lambda p, x: p.add(x, x),
    "as_strided": lambda p, x: p.as_strided(x, (2, 2), (4, 1), 1),
    "broadcast_in_dim": lambda p, x: p.broadcast_in_dim(x, (2, 3, 4), (1, 2)),
    "cat": lambda p, x: p.cat([x, x], 0),
    "clone": lambda p, x: p.clone(x),
    "collapse": lambda p, x: p.collapse(x, 0, 1),
    "collapse_view": lambda p, x: p.collapse_view(x, 0, 1),
    "convert_element_type": lambda p, x: p.convert_element_type(x, torch.int64),
    "copy_strided": lambda p, x: p.copy_strided(x, (1, 3)),
    "full": lambda p, x: p.full_like(
        x, 2.0, dtype=x.dtype, device=x.device, requires_grad=False
    ),
    "reshape": lambda p, x: p.reshape(x, (2, 6)),
    "rev": lambda p, x: p.rev(x, (1,)),
    "split_dim": lambda p, x: p.split_dim(x, 1, 2),
    "squeeze": lambda p, x: p.squeeze(x[:1], (0,)),
    "sum": lambda p, x: p.sum(x, (0,)),
    "transpose": lambda p, x: p.transpose(x, (1, 0)),
    "view_of": lambda p, x: p.view_of(x),
    "where": lambda p, x: p.where(x > 2, x, x),
}


@pytest.mark.parametrize("name", PRIMS)
def test_primitive_ops(name: str) -> None:
    def program(x: torch.Tensor) -> list:
        y = x.clone()
        result = PRIMS[name](torch.ops.prims, y)
        if result._is_view() or name in ("view_of", "squeeze", "as_strided"):
            result.reshape(-1)[:1].add_(1)
        return [y, result]

    compare(program, torch.arange(12.0).reshape(3, 4))


@pytest.mark.parametrize(
    "name", ["argument", "view_of_argument", "result_twice", "view_of_result"]
)
def test_results_share_no_memory(name: str) -> None:
    def alias(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = x * 2
        return {
            "argument": (x, y),
            "view_of_argument": (y, x[1:]),
            "result_twice": (y, y),
            "view_of_result": (y, y[1:]),
        }[name]

    op = torch.library.custom_op(f"torch_ltc_tests::{name}", alias, mutates_args=())
    for device in ("cpu", "lazy"):
        with pytest.raises(RuntimeError, match="may not alias any inputs"):
            op(torch.ones(3, device=device))
