"""`resize_`, `set_` and `x.data = y` change a tensor's sizes or its memory. As in eager,
tensors that share the old or the new memory see writes, and gradients use saved values.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from comparison import assert_close, compare
from torch import Tensor


def _view_resized(x: Tensor, *sizes: int) -> list[Tensor]:
    base = x.flatten()
    view = base[4:8]
    view.resize_(*sizes).add_(10)
    return [base, view]


def _aliased(x: Tensor) -> list[Tensor]:
    base = x.flatten()
    kept = base.view(3, 4)
    base.resize_(5)
    base.resize_(12)
    base.add_(1)
    return [base, kept]


def _grown(x: Tensor) -> list[Tensor]:
    x.resize_(5)
    x.resize_(24)
    x[12:] = 7
    return [x, x.view(4, 6)]


#: `x` has sizes (3, 4).
RESIZED: dict[str, Callable[[Tensor], object]] = {
    "smaller and back": lambda x: [x.resize_(2).clone(), x.resize_(3, 4)],
    "to nothing and back": lambda x: x.resize_(0).resize_(2, 6),
    "twice": lambda x: x.resize_(2, 2).resize_(3, 3),
    "part of a view": lambda x: _view_resized(x, 2),
    "a larger part": lambda x: _view_resized(x, 2, 3),
    "shared and back": _aliased,
    "beyond its memory": _grown,
    "transposed": lambda x: x.t().contiguous().t().resize_(4, 2),
    "a transposed view": lambda x: [x, x.t().resize_(2, 2)],
    "resize_as_": lambda x: x.resize_(0).resize_as_(x.new_ones(2, 2)),
    "resize_as_ with a format": lambda x: x.resize_as_(
        x.new_ones(1, 3, 2, 2).contiguous(memory_format=torch.channels_last),
        memory_format=torch.preserve_format,
    ),
    "channels last": lambda x: x.resize_(1, 2, 2, 3, memory_format=torch.channels_last),
    "used afterwards": lambda x: (x.resize_(4) * 2).sum() + x.resize_(3, 4).prod(),
}


@pytest.mark.parametrize("program", RESIZED.values(), ids=RESIZED)
def test_resized(program: Callable) -> None:
    compare(program, torch.arange(1.0, 13.0).reshape(3, 4))


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.bool])
def test_what_deterministic_mode_fills(dtype: torch.dtype) -> None:
    def program(x: Tensor) -> list[Tensor]:
        shown = x.clone()
        return [x.resize_(6), shown.resize_(2).resize_(4), x.new_empty(0).resize_(3)]

    torch.use_deterministic_algorithms(True)
    try:
        x = torch.ones(4).to(dtype)
        eager = program(x.clone())
        lazy = program(x.to("lazy"))
    finally:
        torch.use_deterministic_algorithms(False)
    assert_close(lazy, eager, equal_nan=True)


def _set(change: Callable[[Tensor, Tensor], object]) -> Callable[[Tensor], object]:
    def program(x: Tensor) -> list[Tensor]:
        other = torch.zeros(12, device=x.device)
        view = other[2:]
        change(other, x.flatten())
        view.add_(5)
        other.mul_(3)
        return [x, other, view, other.view(-1)]

    return program


SET: dict[str, Callable[[Tensor, Tensor], object]] = {
    "to a tensor": lambda y, x: y.set_(x),
    "to a part": lambda y, x: y.set_(x[3:7]),
    "to a storage": lambda y, x: y.set_(x.untyped_storage(), 1, (2, 2), (4, 1)),
    "to itself": lambda y, x: y.set_(y),
    "to its own part": lambda y, x: y.set_(y[1:]),
    "to nothing": lambda y, x: y.set_(),
    "twice": lambda y, x: y.set_(x).set_(x[1:]),
    "and written": lambda y, x: y.set_(x).add_(1),
}


@pytest.mark.parametrize("change", SET.values(), ids=SET)
def test_set(change: Callable) -> None:
    compare(_set(change), torch.arange(12.0).reshape(3, 4))


def test_is_set_to() -> None:
    def answers(device: str) -> list[bool]:
        x = torch.zeros(4, device=device)
        alias, part, other = x.view(4), x[1:], torch.zeros(4, device=device)
        pairs = [(x, x), (x, alias), (x, part), (part, alias[1:]), (x, x.detach())]
        pairs += [(x, other), (x, x.clone()), (x.view(2, 2), x.view(2, 2).t())]
        answers = [a.is_set_to(b) for a, b in pairs]
        return [*answers, other.set_(x).is_set_to(x), x.add_(1).is_set_to(alias)]

    assert answers("lazy") == answers("cpu")


@pytest.mark.parametrize(
    "split",
    [
        lambda x: torch.unsafe_split(x, 2),
        lambda x: torch.unsafe_split(x, 3, -1),
        lambda x: torch.unsafe_split_with_sizes(x, (1, 0, 2)),
        lambda x: torch.unsafe_chunk(x, 3, 1),
    ],
)
def test_parts_of_unsafe_splits_share_memory(split: Callable) -> None:
    def program(x: Tensor) -> list[object]:
        parts = split(x)
        parts[0].add_(10)
        x.mul_(2)
        return [*parts, *(part._is_view() for part in parts)]

    compare(program, torch.arange(12.0).reshape(3, 4))


def test_unsafe_split_of_a_conjugate() -> None:
    def program(x: Tensor) -> list[object]:
        x = torch.complex(x, x + 1).conj()
        parts = torch.unsafe_split(x, 2)
        x.mul_(2)
        return [x, *parts, *(part.is_conj() for part in parts)]

    compare(program, torch.arange(4.0))


def test_gradients_of_unsafe_splits() -> None:
    def program(x: Tensor) -> Tensor:
        x = x.requires_grad_()
        first, second = torch.unsafe_chunk(x * 2, 2)
        second.mul_(first)
        return torch.autograd.grad((second * second).sum(), x)[0]

    compare(program, torch.arange(12.0))


#: Views whose elements are computed from the elements in memory.
BITS: dict[str, Callable[[Tensor], Tensor]] = {
    "conj": torch.conj,
    "neg": torch._neg_view,
    "both": lambda x: torch._neg_view(x.conj()),
}

#: In-place ops that change which elements a view (one of BITS) consists of.
CHANGES: dict[str, Callable[[Tensor], Tensor]] = {
    "resize_": lambda view: view.resize_(2),
    "resize_as_": lambda view: view.resize_as_(view.new_ones(2, 2)),
    "as_strided_": lambda view: view.as_strided_((2,), (2,), 1),
    "set_": lambda view: view.new_empty(0).set_(view),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("bits", BITS.values(), ids=BITS)
def test_changed_bits(bits: Callable, change: Callable) -> None:
    def program(x: Tensor) -> list[Tensor]:
        view = change(bits(x))
        before = view * 1
        view.mul_(2 + 1j)
        answers = torch.tensor([view.is_conj(), view.is_neg()])
        return [x, view * 1, before, answers]

    compare(program, torch.arange(6.0) + 1j * torch.arange(6.0).flip(0))


LAYERS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "linear": lambda x, w: F.linear(x, w),
    "linear of rows": lambda x, w: F.linear(x[None], w),
    "linear with a bias": lambda x, w: F.linear(x, w, w[:, 0]),
    "product": lambda x, w: x @ w.t(),
    "elementwise": lambda x, w: (x[:2] * w).exp(),
    "a view": lambda x, w: F.linear(x, w[1:]),
}


@pytest.mark.parametrize("twice", [False, True])
@pytest.mark.parametrize("layer", LAYERS.values(), ids=LAYERS)
def test_data_between_forward_and_backward(layer: Callable, twice: bool) -> None:
    """A gradient uses the tensors that eager saves: an operand itself, which has the new
    data, or a view of the old memory."""

    def program(x: Tensor, w: Tensor) -> list[Tensor]:
        loss = layer(x, w).square().sum()
        w.data = torch.ones_like(w)
        gradients = torch.autograd.grad(loss, [x, w], create_graph=twice)
        if twice:
            total = sum(g.square().sum() for g in gradients)
            gradients += torch.autograd.grad(total, [x, w], allow_unused=True)
        return [g for g in gradients if g is not None]

    torch.manual_seed(0)
    x = torch.randn(4, 3).requires_grad_()
    compare(program, x, torch.randn(2, 3).requires_grad_())


@pytest.mark.parametrize("make", [torch.nn.LSTM, torch.nn.GRU, torch.nn.RNN])
def test_data_of_recurrent_layers(make: Callable) -> None:
    gradients = []
    for device in ("cpu", "lazy"):
        torch.manual_seed(0)
        layer = make(4, 3, 2, bidirectional=True).double().to(device)
        x = torch.randn(5, 2, 4).double().to(device).requires_grad_()
        loss = layer(x)[0].square().sum()
        for parameter in layer.parameters():
            parameter.data = torch.full_like(parameter, 0.3)
        loss.backward()
        gradients.append([x.grad, *[p.grad for p in layer.parameters()]])
    for lazy, eager in zip(*reversed(gradients), strict=True):
        assert_close(lazy, eager, rtol=1e-4, atol=1e-5)


def test_data_written_between_forward_and_backward() -> None:
    def program(x: Tensor, w: Tensor) -> list[Tensor]:
        loss = F.linear(x, w).square().sum()
        w.data.mul_(2)
        return list(torch.autograd.grad(loss, [x, w]))

    x = torch.randn(4, 3).requires_grad_()
    compare(program, x, torch.randn(2, 3).requires_grad_())


#: Torch kernels that read sizes before and after they call other ops. The memory of their
#: operands has been written through another view.
STALE: dict[str, Callable[[Tensor], Tensor]] = {
    "spectrum": lambda y: torch.fft.rfft(y)[..., 1:],
    "spectrum of rows": lambda y: torch.fft.rfft2(y)[0],
    "product": lambda y: torch.matmul(y, y.t()),
    "interpolation": lambda y: F.interpolate(y[None], scale_factor=1.5, mode="linear"),
    "norm": lambda y: F.normalize(y, dim=1),
    "tiles": lambda y: y.tile(2, 3).unflatten(1, (3, 4)),
}


@pytest.mark.parametrize("name", STALE)
def test_sizes_of_written_memory(name: str) -> None:
    def program(x: Tensor) -> list[Tensor]:
        y = x * 1
        kept = y[1:]
        y[0].mul_(2)
        results = [STALE[name](y), STALE[name](kept)]
        for result in results:
            result.select(0, 0).mul_(2)
        loss = sum(torch.abs(result).square().sum() for result in results)
        return [*torch.autograd.grad(loss, x), *[r.abs() for r in results]]

    torch.manual_seed(0)
    compare(program, torch.randn(3, 4).requires_grad_())
