"""Nested tensors on device `lazy`, and tensor subclasses that hold lazy tensors, have
eager's results."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from comparison import assert_close
from subprocesses import run_python
from torch.testing._internal.two_tensor import TwoTensor
from torch.utils._pytree import tree_leaves

pytestmark = pytest.mark.filterwarnings("ignore")

LAYOUTS = [torch.strided, torch.jagged]


def _parts(device: str) -> list[torch.Tensor]:
    return [
        torch.arange(1.0, 4.0 * n + 1).reshape(n, 4).to(device) / 9 for n in (2, 3, 1)
    ]


def _nested(device: str, layout: torch.layout, **kwargs: Any) -> torch.Tensor:
    return torch.nested.nested_tensor(_parts(device), layout=layout, **kwargs)


def _dense(value: Any) -> list[Any]:
    """Returns the comparable parts of nested tensors, on the CPU."""
    leaves: list[Any] = []
    for leaf in tree_leaves(value):
        if isinstance(leaf, TwoTensor):
            leaves += [leaf.a.detach().cpu(), leaf.b.detach().cpu()]
        elif isinstance(leaf, torch.Tensor):
            parts = leaf.unbind() if leaf.is_nested else [leaf]
            leaves += [part.detach().cpu() for part in parts]
        else:
            leaves.append(leaf)
    return leaves


def _same(actual: Any, expected: Any) -> None:
    assert_close(_dense(actual), _dense(expected))


def _attention(device: str, layout: torch.layout) -> Any:
    x = _nested(device, layout)
    heads = x.unflatten(-1, (2, 2)).transpose(1, 2)
    return F.scaled_dot_product_attention(heads, heads, heads).transpose(1, 2)


PROGRAMS = {
    "made": lambda d, layout: _nested(d, layout),
    "made of CPU tensors": lambda d, layout: torch.nested.nested_tensor(
        _parts("cpu"), layout=layout, device=d
    ),
    "moved": lambda d, layout: _nested("cpu", layout).to(d),
    "moved back": lambda d, layout: _nested(d, layout).cpu() * 2,
    "arithmetic": lambda d, layout: _nested(d, layout) * 2 + _nested(d, layout),
    "of the same tensor": lambda d, layout: (lambda n: n.sin() * n - n)(_nested(d, layout)),
    "softmax": lambda d, layout: _nested(d, layout).softmax(-1),
    "layer norm": lambda d, layout: F.layer_norm(_nested(d, layout), (4,)),
    "padded": lambda d, layout: _nested(d, layout).to_padded_tensor(-1.0),
    "sizes": lambda d, layout: [part.shape for part in _nested(d, layout).unbind()],
    "cast": lambda d, layout: _nested(d, layout).to(torch.float64),
    "clone": lambda d, layout: _nested(d, layout).clone(),
    "like": lambda d, layout: torch.ones_like(_nested(d, layout)),
    "as_nested_tensor": lambda d, layout: torch.nested.as_nested_tensor(
        _parts(d), layout=layout
    ),
    "properties": lambda d, layout: (
        _nested(d, layout).is_nested, _nested(d, layout).dim(),
        _nested(d, layout).layout, _nested(d, layout).device.type == d,
    ),
    "attention": _attention,
    "transposed and moved": lambda d, layout: (
        _nested("cpu", layout).transpose(1, 2).to(d)
    ),
    "transposed and moved back": lambda d, layout: (
        _nested(d, layout).transpose(1, 2).cpu() * 2
    ),
    "strides of parts": lambda d, layout: [
        part.stride() for part in _nested("cpu", layout).transpose(1, 2).to(d).unbind()
    ],
}  # fmt: skip


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_nested_as_eager(program: Any, layout: torch.layout) -> None:
    try:
        expected = program("cpu", layout)
    except (RuntimeError, NotImplementedError, ValueError) as error:
        with pytest.raises(type(error)):
            program("lazy", layout)
        return
    _same(program("lazy", layout), expected)


def _leaf(device: str) -> torch.Tensor:
    return _nested("cpu", torch.strided).to(device).detach().requires_grad_()


def _gradients(total: torch.Tensor, *leaves: torch.Tensor) -> Any:
    total.backward()
    return [leaf.grad for leaf in leaves]


def _layer(device: str) -> torch.nn.Linear:
    torch.manual_seed(0)
    return torch.nn.Linear(4, 3).to(device)


#: Ops that are composite except for nested tensors, and backward ops whose results are
#: nested although their operands are dense.
DERIVED = {
    "linear": lambda d: F.linear(_leaf(d), torch.ones(3, 4, device=d)),
    "module": lambda d: _layer(d)(_leaf(d)),
    "matmul": lambda d: torch.matmul(_leaf(d), _leaf(d).transpose(1, 2)),
    "chunk": lambda d: _leaf(d).chunk(2, -1),
    "gradient of padding": lambda d: (
        lambda n: _gradients(n.to_padded_tensor(0.0).sin().sum(), n)
    )(_leaf(d)),
    "gradient of a chain": lambda d: (
        lambda n: _gradients((n * 2 + F.relu(n)).to_padded_tensor(0.0).sum(), n)
    )(_leaf(d)),
    "gradient of unbind": lambda d: (
        lambda n: _gradients(sum(part.exp().sum() for part in (n * n).unbind()), n)
    )(_leaf(d)),
    "gradient of a layer": lambda d: (
        lambda n, layer: _gradients(
            layer(n).to_padded_tensor(0.0).pow(2).sum(), n, *layer.parameters()
        )
    )(_leaf(d), _layer(d)),
}


@pytest.mark.parametrize("program", DERIVED.values(), ids=DERIVED)
def test_derived_ops_and_gradients(program: Any) -> None:
    _same(program("lazy"), program("cpu"))


def _jagged(device: str, **kwargs: Any) -> torch.Tensor:
    return _nested(device, torch.jagged, **kwargs)


def _rows(device: str) -> torch.Tensor:
    return torch.arange(24.0).reshape(6, 4).to(device) / 9


def _positions(device: str, *values: int) -> torch.Tensor:
    return torch.tensor(values).to(device)


#: Functions that only exist for jagged tensors: with offsets, with lengths, reductions over
#: the ragged dim.
JAGGED = {
    "of offsets": lambda d: torch.nested.nested_tensor_from_jagged(
        _rows(d), _positions(d, 0, 1, 4, 6)
    ).cos(),
    "with lengths": lambda d: torch.nested.nested_tensor_from_jagged(
        _rows(d), _positions(d, 0, 2, 5), lengths=_positions(d, 1, 3)
    ).unbind(),
    "offsets": lambda d: (_jagged(d).offsets(), _jagged(d).values()),
    "narrow": lambda d: torch.nested.narrow(
        _rows(d).reshape(2, 3, 4), 1, _positions(d, 0, 1), _positions(d, 2, 1),
        layout=torch.jagged,
    ).contiguous(),
    "over the ragged dim": lambda d: (
        _jagged(d).sum(1), _jagged(d).mean(1), torch.softmax(_jagged(d), 1)
    ),
    "matmul": lambda d: _jagged(d) @ torch.ones(4, 2, device=d),
    "cat": lambda d: torch.cat([(n := _jagged(d)), n * 2], -1),
    "chunk": lambda d: _jagged(d).chunk(2, -1),
    "comparison": lambda d: _jagged(d) > 1,
    "embedding": lambda d: torch.nn.Embedding.from_pretrained(_rows(d))(
        torch.nested.nested_tensor(
            [torch.tensor([1, 2]), torch.tensor([3])], layout=torch.jagged, device=d
        )
    ),
}  # fmt: skip


@pytest.mark.parametrize("program", JAGGED.values(), ids=JAGGED)
def test_jagged_as_eager(program: Any) -> None:
    _same(program("lazy"), program("cpu"))


def test_training_on_jagged_sequences_follows_eager() -> None:
    """The sequences' lengths differ between steps; gradients flow to the sequences and the
    layer."""
    losses: dict[str, list[float]] = {}
    for device in ("cpu", "lazy"):
        layer = _layer(device)
        optimizer = torch.optim.Adam(layer.parameters(), 0.1)
        losses[device] = []
        for step in range(4):
            parts = [torch.ones(n + step, 4) / n for n in (2, 5)]
            sequences = torch.nested.nested_tensor(
                parts, layout=torch.jagged, device=device, requires_grad=True
            )
            padded = torch.nested.to_padded_tensor(layer(sequences).relu(), 0.0)
            loss = (padded - 1).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses[device] += [loss.item(), sequences.grad.values().sum().item()]
    assert losses["lazy"] == pytest.approx(losses["cpu"], rel=1e-5)


FIRST = """
import torch, warnings
import torch_ltc
warnings.simplefilter("ignore")
parts = [torch.ones(2), torch.ones(3)]
made = torch.nested.nested_tensor(parts, layout=torch.{layout}, device="lazy")
assert [part.tolist() for part in (made + 1).unbind()] == [[2.0] * 2, [2.0] * 3]
"""


@pytest.mark.parametrize("layout", ["strided", "jagged"])
def test_the_first_lazy_tensor_is_nested(layout: str) -> None:
    run_python(FIRST.format(layout=layout))


def _two(device: str) -> tuple[TwoTensor, torch.Tensor]:
    x = torch.arange(6.0, device=device).reshape(2, 3)
    return TwoTensor(x, x + 1), torch.ones(2, 3, device=device) * 2


SUBCLASS = {
    "both": lambda t, x: t + t,
    "with a lazy tensor": lambda t, x: t * x,
    "the other way": lambda t, x: x - t,
    "views": lambda t, x: t[1:] * x[1:],
    "a product": lambda t, x: F.linear(t, x),
    "written": lambda t, x: t.add_(x),
    "cat": lambda t, x: torch.cat([t, x]),
    "sum": lambda t, x: t.sum() * x,
    "where": lambda t, x: torch.where(x > 1, t, x),
    "reshape": lambda t, x: t.t().reshape(-1) / x.view(-1),
}


@pytest.mark.parametrize("program", SUBCLASS.values(), ids=SUBCLASS)
def test_subclasses_next_to_lazy_tensors(program: Any) -> None:
    actual, expected = program(*_two("lazy")), program(*_two("cpu"))
    assert type(actual) is type(expected)
    _same(actual, expected)


def test_gradients_through_a_subclass() -> None:
    gradients = []
    for device in ("cpu", "lazy"):
        t, x = _two(device)
        x.requires_grad_()
        (t * x).exp().sum().backward()
        gradients.append(x.grad)
    assert type(gradients[0]) is type(gradients[1])
    _same(gradients[1], gradients[0])
