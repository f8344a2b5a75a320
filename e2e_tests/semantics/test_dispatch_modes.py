"""A TorchDispatchMode doesn't change results."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch_ltc
from comparison import assert_close, compare
from subprocesses import run_python
from torch import nn
from torch._decomp import get_decompositions
from torch.autograd.graph import allow_mutation_on_saved_tensors
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

aten = torch.ops.aten


class Listener(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.ops: list[str] = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.ops.append(str(func))
        return func(*args, **(kwargs or {}))


#: Functions that create a tensor on the given device.
NEW: dict[str, Callable[[torch.device], torch.Tensor]] = {
    "zeros": lambda d: torch.zeros(3, 2, device=d),
    "empty": lambda d: torch.empty(3, 2, device=d).fill_(1),
    "empty_strided": lambda d: torch.empty_strided((3, 2), (1, 3), device=d).fill_(1),
    "full": lambda d: torch.full((3, 2), 2.5, device=d),
    "eye": lambda d: torch.eye(3, device=d),
    "arange": lambda d: torch.arange(6, device=d).view(3, 2),
    "rand": lambda d: torch.rand(3, 2, device=d),
    "randint": lambda d: torch.randint(9, (3, 2), device=d),
    "tensor": lambda d: torch.tensor([[1.0, 2.0], [3.0, 4.0]], device=d),
    "moved": lambda d: torch.ones(3, 2).to(d),
    "moved and cast": lambda d: torch.ones(3, 2).to(d, torch.float64),
    "like": lambda d: torch.ones_like(torch.zeros(3, 2, device=d)),
    "new": lambda d: torch.zeros(3, device=d).new_ones(3, 2),
    "moved with a gradient": lambda d: torch.ones(3, 2, requires_grad=True).to(d) * 1,
}


@pytest.mark.parametrize("name", NEW)
def test_writes_through_views_of_new_tensors(name: str) -> None:
    def program(x: torch.Tensor) -> list:
        torch.manual_seed(3)
        with Listener():
            new = NEW[name](x.device)
            row = new[0]
            row.mul_(2)
            new[:, 1].fill_(7)
        new[1:].add_(1)
        return [new, row, new.sum()]

    compare(program, torch.zeros(()))


def test_gradient_of_what_was_moved() -> None:
    def program(x: torch.Tensor) -> list:
        leaf = torch.arange(4.0).requires_grad_()
        with Listener():
            moved = leaf.to(x.device)
            y = moved * moved
            y[0].zero_()
            y.sum().backward()
        return [leaf.grad.to(x.device), y]

    compare(program, torch.zeros(()))


def test_a_mode_sees_no_ops_of_the_backend() -> None:
    listener = Listener()
    x = torch.zeros(3, device="lazy")
    with listener:
        y = x.new_full((3,), 2.0)
        y[0].add_(1)
        z = torch.zeros_like(x, dtype=torch.int64)
    assert y.tolist() == [3, 2, 2] and z.tolist() == [0, 0, 0]
    assert "aten.lift.default" not in listener.ops


def train(device: str, mode: TorchDispatchMode) -> list[float]:
    torch.manual_seed(0)
    losses = []
    with mode:
        model = nn.Sequential(
            nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Dropout(0.3),
            nn.Flatten(), nn.Linear(144, 5),
        ).to(device)  # fmt: skip
        optimizer = torch.optim.AdamW(model.parameters(), 1e-2)
        for _ in range(4):
            x = torch.randn(2, 1, 8, 8).to(device)
            scale = torch.eye(8, device=device)
            scale[0].fill_(2)
            target = torch.tensor([1, 2], device=device)
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x @ scale), target)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


def test_training_and_its_flops() -> None:
    flops = FlopCounterMode(display=False), FlopCounterMode(display=False)
    torch_ltc.reset_metrics()
    losses = [train(d, mode) for d, mode in zip(("cpu", "lazy"), flops)]
    assert_close(losses[1], losses[0], rtol=1e-4, atol=1e-5)
    assert flops[1].get_total_flops() == flops[0].get_total_flops() > 0
    assert torch_ltc.metrics()["fallback_calls"] == 0


def of_a_product(x: torch.Tensor) -> list:
    leaf = x.detach().requires_grad_()
    y = leaf.clone()
    product = y * y
    y.mul_(3)
    (product.sum() + y.sum()).backward()
    return [leaf.grad, y]


def through_a_view(x: torch.Tensor) -> list:
    leaf = x.detach().requires_grad_()
    y = leaf.clone()
    square = (y**2).sum()
    y[0].sin_()
    return list(torch.autograd.grad(square + y.sum(), leaf))


def of_a_weight(x: torch.Tensor) -> list:
    weight = x.detach().requires_grad_()
    loss = (x @ weight.t()).relu().sum()
    with torch.no_grad():
        weight.mul_(2)
    loss.backward()
    return [weight, weight.grad]


def through_a_list(x: torch.Tensor) -> list:
    leaf = x.detach().requires_grad_()
    y = leaf.clone()
    product = y * y
    with torch.no_grad():
        torch._foreach_add_([y], 1.0)
    product.sum().backward()
    return [leaf.grad, y]


def twice(x: torch.Tensor) -> list:
    leaf = x.detach().requires_grad_()
    (first,) = torch.autograd.grad((leaf**3).sum(), leaf, create_graph=True)
    return [first.detach(), *torch.autograd.grad(first.sum(), leaf)]


PROGRAMS = [of_a_product, through_a_view, through_a_list, of_a_weight, twice]


@pytest.mark.parametrize("program", PROGRAMS)
def test_saved_tensors_that_are_written(program: Callable) -> None:
    def allowed(x: torch.Tensor) -> list:
        with allow_mutation_on_saved_tensors():
            return program(x)

    compare(allowed, torch.arange(6.0).view(2, 3))


def test_the_first_lazy_tensor_is_saved() -> None:
    run_python("""
        import torch
        import torch_ltc
        from torch.autograd.graph import allow_mutation_on_saved_tensors

        with allow_mutation_on_saved_tensors():
            x = torch.ones(3, device="lazy", requires_grad=True)
            y = x.clone()
            product = y * y
            with torch.no_grad():
                y.mul_(3)
            product.sum().backward()
            assert x.grad.tolist() == [2, 2, 2]
        """)


def test_a_saved_cpu_tensor_is_written_from_a_lazy_one() -> None:
    lazy = torch.ones(3, device="lazy")
    with allow_mutation_on_saved_tensors():
        leaf = torch.arange(3.0).requires_grad_()
        y = leaf * 1
        square = (y**2).sum()
        y.detach().copy_(lazy * 7)
        square.backward()
    assert leaf.grad.tolist() == [0, 2, 4]


def test_saved_tensors_outside_their_context() -> None:
    x = torch.ones(3, device="lazy", requires_grad=True)
    with allow_mutation_on_saved_tensors():
        loss = (x * x).sum()
    with pytest.raises(AssertionError, match="outside of the 'allow_mutation"):
        loss.backward()


def test_inference_mode() -> None:
    def program(x: torch.Tensor) -> list:
        with torch.inference_mode(), Listener() as listener:
            new = torch.ones(2, 3, device=x.device)
            y = F.linear(new, new).view(-1)
            y.add_(1)
        assert new.is_inference()
        return [y.clone(), listener.ops]

    compare(program, torch.zeros(()))


class Calling(TorchDispatchMode):
    """Changes the results of abs and split with further ops, which also read the tensor
    `held`; neg returns `held` itself."""

    def __init__(self, held: torch.Tensor) -> None:
        super().__init__()
        self.held = held

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        if func is torch.ops.aten.abs.default:
            return result * self.held + torch.full((), 2.0, device=result.device)
        if func is torch.ops.aten.neg.default:
            return self.held
        if func is torch.ops.aten.split.Tensor:
            return [part * self.held[0] for part in result]
        return result


def test_results_of_ops_that_a_mode_calls() -> None:
    def program(x: torch.Tensor) -> list:
        y, held = x.clone(), x + 1
        with Calling(held):
            with Calling(held):
                twice = y.abs()
            parts = y.split(2)
            same = -y
        same.mul_(2)  # the tensor that the mode holds
        return [twice, *parts, same, held]

    compare(program, torch.arange(-3.0, 3.0))


def test_a_mode_gets_the_users_tensors() -> None:
    """The mode gets the op that was called, not its functional form, and the user's
    tensors, not the values that they wrap."""

    def program(x: torch.Tensor) -> list:
        y = x.clone()
        with Listener() as listener:
            row = y.view(3, 2)[1]
            row.mul_(2)
            y.relu_().split(2)
            torch.ones(2, device=x.device).add_(row)
        return [y, row, listener.ops]

    compare(program, torch.arange(-3.0, 3.0))


@torch.library.custom_op("test_dispatch_modes::swap_", mutates_args={"x"})
def swap_(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    x.add_(y)
    return torch.where(x > 0, 0, y)


@torch.library.custom_op("test_dispatch_modes::double", mutates_args=())
def double(x: torch.Tensor) -> torch.Tensor:
    return x + x.clone().view(-1)[:3].mul_(1)


def test_custom_ops() -> None:
    """The mode sees the op, not the ops of its kernel."""

    def program(x: torch.Tensor) -> list:
        y = x.clone()
        with Listener() as listener:
            z = swap_(y[:2], x[1:])
            w = double(x)
        return [y, z, w, listener.ops]

    compare(program, torch.arange(3.0) - 1)


def of_writes(x: torch.Tensor) -> torch.Tensor:
    y = F.hardtanh_(x.clone()) + torch.ones(3, device=x.device)
    y[0].mul_(4)
    return y.view(3, 1) * torch.full((3, 1), 2.0, device=x.device)


@pytest.mark.parametrize("function", [F.hardshrink, F.softplus, of_writes])
@pytest.mark.parametrize("decomposed", [False, True])
def test_a_graph_of_make_fx(function: Callable, decomposed: bool) -> None:
    """The graph has the same nodes as on the CPU, and computes the function for different
    inputs."""
    # Names the ops, because core_aten_decompositions() fails after a test has defined an op
    # and removed it.
    ops = (aten.hardshrink, aten.softplus, aten.hardtanh, aten.hardtanh_)
    table = get_decompositions(ops) if decomposed else None
    x, other = torch.tensor([0.2, -1.0, 3.0]), torch.tensor([-0.7, 0.4, 0.9])
    graphs = [make_fx(function, table)(x.to(d)) for d in ("cpu", "lazy")]
    nodes = [[str(n.target) for n in g.graph.nodes] for g in graphs]
    assert nodes[1] == nodes[0]
    assert_close(graphs[1](other.to("lazy")), function(other))
