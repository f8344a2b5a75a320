"""Higher-order ops of lazy tensors, and of CPU tensors under torch.compile: results and
gradients equal eager's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

# The gradient of scan imports this module, which fails once tests have registered and
# removed ops (torch 2.13). pytest imports this file before it runs tests.
import torch._inductor.decomposition
from comparison import assert_close
from torch._dynamo._trace_wrapped_higher_order_op import TransformGetItemToIndex
from torch._higher_order_ops import associative_scan, scan, while_loop
from torch._higher_order_ops.map import map as mapped
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn import functional as F
from torch.utils._pytree import tree_leaves
from torch.utils.checkpoint import checkpoint

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(autouse=True)
def fresh_dynamo() -> None:
    """Resets Dynamo: code that other tests compiled counts towards the recompilation
    limit."""
    torch._dynamo.reset()


def _cond(x: torch.Tensor) -> Any:
    return torch.cond(x.sum() > 2, lambda a: a * a, lambda a: a - 1, (x,))


def _nested_cond(x: torch.Tensor) -> Any:
    def outer(a: torch.Tensor) -> torch.Tensor:
        return torch.cond(a.max() > 100, lambda b: b.exp(), lambda b: b.sin(), (a,))

    return torch.cond(x.sum() < 0, lambda a: -a, outer, (x + 1,)) * 2


def _while(x: torch.Tensor) -> Any:
    def more(i: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return (i < 5) & (y.sum() < 1e6)

    start = torch.zeros((), dtype=torch.int64, device=x.device)
    return while_loop(more, lambda i, y: (i + 1, y * 3), (start, x))


def _scan(x: torch.Tensor) -> Any:
    return scan(lambda c, row: (c + row, c * row), torch.zeros_like(x[0]), x)


def _associative(x: torch.Tensor) -> Any:
    return associative_scan(torch.mul, x, 0, combine_mode="generic")


def _map(x: torch.Tensor) -> Any:
    return mapped(lambda row, y: row.sin() * y, x, torch.full_like(x[0], 2.0))


WITH_GRADIENT = {
    "cond": _cond,
    "nested cond": _nested_cond,
    "scan": _scan,
    "associative_scan": _associative,
    "map": _map,
}
ALL = {**WITH_GRADIENT, "while_loop": _while}


def _input(device: str, requires_grad: bool = False) -> torch.Tensor:
    x = torch.arange(1.0, 13.0).reshape(4, 3) / 7
    return x.to(device).requires_grad_(requires_grad)


@pytest.mark.parametrize("program", ALL.values(), ids=ALL)
def test_called_eagerly(program: Callable) -> None:
    actual = program(_input("lazy"))
    assert all(leaf.device.type == "lazy" for leaf in tree_leaves(actual))
    assert_close(actual, program(_input("cpu")), 1e-5, 1e-6)


@pytest.mark.parametrize("program", WITH_GRADIENT.values(), ids=WITH_GRADIENT)
def test_gradients(program: Callable) -> None:
    gradients = {}
    for device in ("cpu", "lazy"):
        x = _input(device, requires_grad=True)
        outputs = [leaf for leaf in tree_leaves(program(x)) if leaf.requires_grad]
        sum(leaf.sum() for leaf in outputs).backward()
        gradients[device] = x.grad
    assert_close(gradients["lazy"], gradients["cpu"], 1e-5, 1e-6)


@pytest.mark.parametrize("device", ["cpu", "lazy"])
@pytest.mark.parametrize("program", ALL.values(), ids=ALL)
def test_compiled(program: Callable, device: str) -> None:
    torch._dynamo.reset()
    compiled = torch.compile(program, backend="torch_ltc", fullgraph=True)
    assert_close(compiled(_input(device)), program(_input("cpu")), 1e-5, 1e-6)
    torch._dynamo.reset()


def test_the_other_branch_later() -> None:
    """A compiled program accepts both values of a condition."""
    torch._dynamo.reset()
    compiled = torch.compile(_cond, backend="torch_ltc", fullgraph=True)
    for x in (torch.ones(3), torch.zeros(3), torch.ones(3) * 4):
        assert_close(compiled(x), _cond(x), 1e-5, 1e-6)
        assert_close(_cond(x.to("lazy")), _cond(x), 1e-5, 1e-6)
    torch._dynamo.reset()


class _Scaled(torch.autograd.Function):
    """An autograd.Function, which is a higher-order op under a transform."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        return x * scale

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple, output: torch.Tensor) -> None:
        ctx.save_for_backward(inputs[1])

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> tuple:
        (scale,) = ctx.saved_tensors
        return 2 * grad * scale, None


def _index_mask(x: torch.Tensor) -> torch.Tensor:
    """Reads a mask at batched positions, as mask functions of `transformers` do."""
    mask = x > 0.5
    rows, columns = (torch.arange(n, device=x.device) for n in x.shape)
    read = torch.vmap(torch.vmap(lambda i, j: mask[i, j], (None, 0)), (0, None))
    with TransformGetItemToIndex():
        return read(rows, columns)


TRANSFORMS = {
    "closed-over": lambda x: torch.vmap(lambda row: _Scaled.apply(x, row).sum(0))(x),
    "gradient": lambda x: torch.func.grad(lambda y: _Scaled.apply(y, x[0]).sum())(x),
    "jacobian": lambda x: torch.func.jacrev(lambda y: _Scaled.apply(x[0], y))(x[1]),
    "indexing": _index_mask,
    "traced": lambda x: make_fx(_cond)(x)(x + 1),
}


@pytest.mark.parametrize("program", TRANSFORMS.values(), ids=TRANSFORMS)
def test_with_a_lazy_operand_that_the_transform_does_not_wrap(
    program: Callable,
) -> None:
    assert_close(program(_input("lazy")), program(_input("cpu")), 1e-5, 1e-6)


@pytest.mark.parametrize("backend", ["inductor", "torch_ltc", "eager"])
def test_compiled_checkpoint_draws_the_same_numbers_again(backend: str) -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        def body(y: torch.Tensor) -> torch.Tensor:
            return F.dropout(y, 0.5).sin()

        return checkpoint(body, x, use_reentrant=False).sum()

    gradients = []
    for function in (program, torch.compile(program, backend=backend)):
        torch.manual_seed(4)
        x = torch.ones(64, device="lazy", requires_grad=True)
        function(x).backward()
        gradients.append(x.grad.cpu())
    assert torch.equal(*gradients)
