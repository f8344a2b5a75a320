"""In-place ops on leaves and views of leaves, `.data`, `set_`, `out=` and versions behave
as in eager."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from comparison import assert_close, assert_same, compare, outcome, to_lazy


def leaf() -> torch.Tensor:
    return torch.arange(1.0, 7.0).reshape(2, 3).requires_grad_()


def plain() -> torch.Tensor:
    return torch.arange(1.0, 7.0).reshape(2, 3)


def under_no_grad(x: torch.Tensor) -> torch.Tensor:
    (x * x).sum().backward()
    with torch.no_grad():
        x.sub_(0.1 * x.grad)
        x[0].mul_(2)
    x.grad.zero_()
    (x * x).sum().backward()
    return x * 1


def through_data(x: torch.Tensor) -> torch.Tensor:
    y = x * x
    x.data.add_(1)
    x.data[0] = 3
    y.sum().backward()
    return y


def swapped_data(x: torch.Tensor) -> list[torch.Tensor]:
    y = (x * 2).detach()
    old = x.data
    x.data = y
    old.zero_()
    y.add_(1)
    return [x * 1, old, y]


def detached(x: torch.Tensor) -> list[torch.Tensor]:
    y = x * 3
    z = y.detach()
    z[0] = 7
    y.sum().backward()
    return [y, z]


def requires_grad_on_a_view(x: torch.Tensor) -> list[torch.Tensor]:
    v = x.detach()[1].requires_grad_()
    (v * v).sum().backward()
    return [v, v.grad, x * 1]


def written_before_use(x: torch.Tensor) -> list[torch.Tensor]:
    y = x.clone()
    y[0] = y[1] * 2
    y[:, 1].mul_(y[:, 0])
    y.t()[0].add_(x.sum())
    y.sum().backward()
    return [y]


def views_carry_gradients(x: torch.Tensor) -> list[torch.Tensor]:
    y = x.exp()
    v = y.view(-1)[1:4]
    v.mul_(2)
    (y * v.sum()).sum().backward()
    return [y, v]


def hooks_and_retained(x: torch.Tensor) -> list[torch.Tensor]:
    y = x * 2
    y.retain_grad()
    y.register_hook(lambda grad: grad * 5)
    y.sigmoid().sum().backward()
    return [y.grad]


GRADIENTS = [
    under_no_grad,
    through_data,
    swapped_data,
    detached,
    requires_grad_on_a_view,
    written_before_use,
    views_carry_gradients,
    hooks_and_retained,
]


@pytest.mark.parametrize("program", GRADIENTS, ids=lambda p: p.__name__)
def test_gradients(program: Callable) -> None:
    compare(program, leaf())


ERRORS: dict[str, Callable[[torch.Tensor], object]] = {
    "write to a leaf": lambda x: x.add_(1),
    "write to a view of a leaf": lambda x: x[0].zero_(),
    "saved value was written": lambda x: (
        lambda y: (y.exp_(), y.mul_(2), y.sum().backward())
    )(x * 1),
    "saved operand was written": lambda x: (
        lambda y: ((y * y).sum(), y.add_(1))[0].backward() or (y * y).sum()
    )(x.clone()),
    "a saved list was written": lambda x: (
        lambda y: (torch._foreach_add_([y], 1.0), y.sum().backward())
    )((x * 1).exp()),
    "a saved list was zeroed": lambda x: (
        lambda y: (torch._foreach_zero_([y.detach()]), y.sum().backward())
    )((x * 1).exp()),
    "output of unbind": lambda x: (x * 1).unbind(0)[0].add_(1),
    "out= with gradients": lambda x: torch.add(x, x, out=torch.empty_like(x)),
    "grad of an integer": lambda x: x.long().requires_grad_(),
    "result doesn't fit": lambda x: x.detach().long().add_(1.5),
    "a number that doesn't fit": lambda x: x.detach().long().mul_(1.5),
    "a tensor that doesn't fit": lambda x: x.detach().long().addcmul_(x, x),
    "a mask of a product": lambda x: (x.detach() > 2).mul_(x.detach()),
    "a quotient of integers": lambda x: x.detach().long().div_(2),
    "broadcast in place": lambda x: x.detach()[:1].add_(x.detach()),
    "sizes": lambda x: x.detach().copy_(torch.ones(4).to(x.device)),
}


# Writes to a result that autograd saved, through various aliases. Autograd doesn't detect
# those through `data`.
WRITES: dict[str, Callable[[torch.Tensor], object]] = {
    "add_": lambda y: y.add_(1),
    "a view": lambda y: y[0].add_(1),
    "detach": lambda y: y.detach().add_(1),
    "data": lambda y: y.data.add_(1),
    "zero_": lambda y: y.zero_(),
    "copy_": lambda y: y.copy_(torch.ones_like(y)),
    "setitem": lambda y: y.__setitem__(0, 1.0),
    "masked_fill_": lambda y: y.masked_fill_(y > 1, 1.0),
    "out": lambda y: torch.add(y.detach(), 1, out=y.detach()),
    "index_put_": lambda y: y.index_put_(
        (torch.tensor([0]).to(y.device),), torch.ones(3).to(y.device)
    ),
    "resize_": lambda y: y.detach().resize_(2),
    "relu_": lambda y: torch.relu_(y),
    "an optimizer": lambda y: torch.optim.SGD([y.detach().requires_grad_()]).step(
        lambda: y.detach().neg_()
    ),
}


@pytest.mark.parametrize("name", WRITES)
def test_a_saved_result_was_written(name: str) -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        y = (x * 1).exp()
        WRITES[name](y)
        y.sum().backward()
        return x.grad

    compare(program, leaf())
    assert isinstance(outcome(program, leaf()), str) == (name != "data")


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name: str) -> None:
    compare(ERRORS[name], leaf())


def test_versions() -> None:
    def versions(x: torch.Tensor) -> list[int]:
        seen = [x._version]
        view = x[0]
        view.add_(1)
        seen += [x._version, view._version]
        x.detach().mul_(2)
        seen += [x._version, view._version]
        x.data.add_(1)
        seen += [x._version]
        x.copy_(x.clone())
        x.zero_()
        torch._foreach_add_([x, view], 1.0)
        torch._foreach_copy_([x], [x.clone()])
        torch._foreach_mul_([x, x[1].double()], 2.0)
        seen += [x._version]
        with torch.no_grad():
            torch._foreach_exp_([x])
            torch._foreach_zero_([x])
        return [*seen, x._version, view._version, view.detach()._version]

    x = plain()
    assert versions(x.to("lazy")) == versions(x)


def set_to_another(x: torch.Tensor) -> list[torch.Tensor]:
    y = torch.empty(0, dtype=x.dtype, device=x.device)
    y.set_(x)
    y.add_(1)
    return [x, y]


def set_to_a_view(x: torch.Tensor) -> list[torch.Tensor]:
    y = torch.zeros(4, device=x.device)
    y.set_(x[1])
    y.mul_(3)
    x[1, 1] = 100
    return [x, y]


def set_to_a_part(x: torch.Tensor) -> list[torch.Tensor]:
    y, z = (torch.zeros(4, device=x.device) for _ in range(2))
    y.set_(x, 1, (2, 2), (3, 1))
    z.set_(x, 2, (2, 2))
    y.mul_(3)
    x[1, 1] = 100
    return [x, y, z]


def moved_to_where_it_is(x: torch.Tensor) -> list[torch.Tensor]:
    y = x.to(x.device.type)
    y.add_(1)
    return [x, y, x.to(x.device.type, torch.float32).mul_(2)]


def resized(x: torch.Tensor) -> list[torch.Tensor]:
    x.resize_(3, 2)
    x.add_(1)
    small = x.clone().resize_(2)
    return [x, small, torch.empty(0, device=x.device).resize_as_(x).zero_()]


def copies(x: torch.Tensor) -> list[torch.Tensor]:
    y = torch.zeros(4, 2, 3, dtype=torch.int64, device=x.device)
    y.copy_(x)
    y[1].copy_(x[0], non_blocking=True)
    z = torch.zeros_like(x).t()
    z.copy_(x.t())
    return [y, z, x.new_empty(3, 2).copy_(x.t())]


def fills(x: torch.Tensor) -> list[torch.Tensor]:
    return [
        x.clone().fill_diagonal_(9),
        x.clone().masked_fill_(x > 2, 0),
        x.clone().index_fill_(1, torch.tensor([0, 2]).to(x.device), -1),
        x.clone().index_add_(0, torch.tensor([1, 1]).to(x.device), x),
        x.clone().scatter_(1, torch.tensor([[0], [2]]).to(x.device), 5.0),
        x.clone().masked_scatter_(x > 2, torch.arange(6.0).to(x.device)),
        x.clone().index_copy_(0, torch.tensor([1, 0]).to(x.device), x * 2),
        x.clone().put_(torch.tensor([0, 5]).to(x.device), x[0, :2]),
    ]


def swapped(x: torch.Tensor) -> list[torch.Tensor]:
    y = x * 2
    x[0], x[1] = x[1].clone(), x[0].clone()
    x += y
    x[x > 5] = 0
    x[:, None, 1] -= 1
    x[[0, 1], [1, 2]] = 11.0
    return [x, y]


@pytest.mark.parametrize(
    "program",
    [
        set_to_another,
        set_to_a_view,
        set_to_a_part,
        moved_to_where_it_is,
        resized,
        copies,
        fills,
        swapped,
    ],
    ids=lambda p: p.__name__,
)
def test_writes(program: Callable) -> None:
    compare(program, plain())


def test_copies_between_devices() -> None:
    cpu, lazy = plain(), to_lazy(plain())
    strided = torch.zeros(3, 4)[:, ::2].t()
    strided.copy_(lazy)
    assert_same(strided, torch.zeros(3, 4)[:, ::2].t().copy_(cpu))
    view = torch.zeros(2, 6).to("lazy")[:, 1:4]
    view.copy_(cpu)
    assert_close(view, cpu)
    half = torch.zeros(2, 3, dtype=torch.bfloat16)
    half.copy_(lazy)
    assert half.tolist() == cpu.tolist()
    leaf = cpu.clone().requires_grad_()
    leaf.to("lazy").mul(2).cpu().sum().backward()
    assert leaf.grad.tolist() == [[2] * 3] * 2


OUTS: dict[str, Callable[[torch.Tensor, torch.Tensor], object]] = {
    "add": lambda x, out: torch.add(x, x, alpha=2, out=out),
    "matmul": lambda x, out: torch.matmul(x, x.t(), out=out),
    "mm": lambda x, out: torch.mm(x.t(), x, out=out),
    "sum": lambda x, out: torch.sum(x, 1, out=out),
    "cat": lambda x, out: torch.cat([x, x], out=out),
    "stack": lambda x, out: torch.stack([x, x], out=out),
    "sort": lambda x, out: torch.sort(x, out=(out, out.new_empty(0).long())),
    "max": lambda x, out: torch.max(x, 1, out=(out, out.new_empty(0).long())),
    "sigmoid": lambda x, out: torch.sigmoid(x, out=out),
    "arange": lambda x, out: torch.arange(6, out=out),
    "clamp": lambda x, out: torch.clamp(x, 2, 4, out=out),
    "index_select": lambda x, out: torch.index_select(
        x, 1, torch.tensor([2, 0]).to(x.device), out=out
    ),
    "cumsum": lambda x, out: torch.cumsum(x, 1, out=out),
    "norm": lambda x, out: torch.linalg.vector_norm(x, out=out),
    "svdvals": lambda x, out: torch.linalg.svdvals(x, out=out),
    "where": lambda x, out: torch.where(x > 2, x, -x, out=out),
    "zeta": lambda x, out: torch.special.zeta(x + 1, x, out=out),
    "logsumexp": lambda x, out: torch.logsumexp(x, 0, out=out),
    "tril": lambda x, out: torch.tril(x, out=out),
    "nanmean": lambda x, out: torch.nanmean(x, 0, out=out),
    "add to a view": lambda x, out: torch.add(
        x[0], 1, out=out.resize_(4, 3).zero_()[2]
    ),
}


@pytest.mark.parametrize("name", OUTS)
@pytest.mark.filterwarnings("ignore:An output with one or more elements was resized")
def test_out(name: str) -> None:
    compare(OUTS[name], plain(), torch.empty(0))
    compare(OUTS[name], plain(), torch.ones(3, 3))


def test_out_of_an_op_without_a_lowering() -> None:
    def rank(x: torch.Tensor) -> list[torch.Tensor]:
        out = torch.full((), -1, device=x.device)
        alias = out.view(1)
        torch.linalg.matrix_rank(x, out=out)
        return [out, alias, out + 1]

    compare(rank, torch.eye(3))


def test_out_through_a_view() -> None:
    def program(x: torch.Tensor) -> list[torch.Tensor]:
        store = torch.zeros(4, 3, device=x.device)
        torch.mul(x, 2, out=store[1:3])
        torch.special.zeta(x[0] + 1, x[0], out=store[3])
        return [store]

    compare(program, plain())


@pytest.mark.parametrize("name", ["clamp_", "clamp_min_", "clamp_max_", "mul_", "pow_"])
@pytest.mark.parametrize("dtype", [torch.int64, torch.int8, torch.bool], ids=str)
def test_a_result_of_another_dtype_raises_with_eagers_message(name: str, dtype) -> None:
    messages = []
    for device in ("cpu", "lazy"):
        x = torch.ones(2, 3, dtype=dtype, device=device)
        with pytest.raises(RuntimeError) as error:
            getattr(x, name)(0.5)
        messages.append(str(error.value).splitlines()[0])
    assert messages[0] in messages[1]
