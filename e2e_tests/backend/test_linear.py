"""A linear layer is one node and its gradient another; both have eager's results."""

from __future__ import annotations

import pytest
import torch
import torch_ltc
from comparison import assert_close
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

CASES = {
    "matrix": ((4, 8), True),
    "batch": ((2, 3, 8), True),
    "no bias": ((2, 3, 8), False),
    "two batches": ((5, 2, 3, 8), True),
    "vector": ((8,), True),
    "empty": ((0, 8), True),
}
DTYPES = (torch.float32, torch.float64, torch.bfloat16)


def both(compute) -> None:
    """Compares the values and strides of the tensors that `compute` returns for device lazy
    and for the CPU."""
    for lazy, eager in zip(compute("lazy"), compute("cpu"), strict=True):
        tolerance = {"rtol": 5e-2, "atol": 0.1} if eager.dtype == torch.bfloat16 else {}
        assert lazy.stride() == eager.stride()
        assert_close(lazy, eager, **tolerance)


def layer(device: str, dtype=torch.float32, bias: bool = True) -> nn.Linear:
    torch.manual_seed(0)
    return nn.Linear(8, 6, bias=bias, dtype=dtype).to(device)


def values(device: str, *sizes: int, dtype=torch.float32) -> torch.Tensor:
    return torch.randn(*sizes, dtype=dtype).to(device).requires_grad_()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients(name: str, dtype: torch.dtype) -> None:
    sizes, bias = CASES[name]

    def compute(device: str) -> list[torch.Tensor]:
        module = layer(device, dtype, bias)
        x = values(device, *sizes, dtype=dtype)
        y = module(x)
        y.square().sum().backward()
        return [y, x.grad, *(p.grad for p in module.parameters())]

    both(compute)


@pytest.mark.parametrize("frozen", ["input", "weight", "bias"])
def test_what_needs_no_gradient(frozen: str) -> None:
    def compute(device: str) -> list[torch.Tensor]:
        module, x = layer(device), values(device, 4, 8)
        tensors = {"input": x, "weight": module.weight, "bias": module.bias}
        tensors[frozen].requires_grad_(False)
        module(x).square().sum().backward()
        assert tensors.pop(frozen).grad is None
        return [tensor.grad for tensor in tensors.values()]

    both(compute)


def test_gradients_of_gradients() -> None:
    def compute(device: str) -> list[torch.Tensor]:
        module = layer(device, torch.float64)
        x = values(device, 2, 3, 8, dtype=torch.float64)
        inputs = [x, *module.parameters()]
        first = torch.autograd.grad((module(x) ** 3).sum(), inputs, create_graph=True)
        second = torch.autograd.grad(sum((g**2).sum() for g in first), inputs[:2])
        return [*first, *second]

    both(compute)


def test_gradients_that_are_views() -> None:
    def compute(device: str) -> list[torch.Tensor]:
        module, x = layer(device), values(device, 4, 8)
        y = module(x)
        y.sum().backward(retain_graph=True)  # the gradient is expanded
        # The gradient is transposed.
        y.t().matmul(torch.ones(4, 2, device=device)).sum().backward()
        return [x.grad, module.weight.grad, module.bias.grad]

    both(compute)


def test_operands_that_are_views() -> None:
    def compute(device: str) -> list[torch.Tensor]:
        module, x = layer(device), values(device, 8, 3, 2)
        weight = values(device, 8, 6)
        y = module(x.permute(2, 1, 0))
        z = nn.functional.linear(x.select(2, 0).t(), weight.t())
        (y.square().sum() + z.square().sum()).backward()
        return [y, z, x.grad, weight.grad]

    both(compute)


def test_costs() -> None:
    module, x = layer("lazy"), values("lazy", 2, 3, 8)
    with torch_ltc.config(auto_step=False):
        torch_ltc.mark_step()
        before = torch_ltc.metrics()["traced_ops"]
        y = module(x)
        forward = torch_ltc.metrics()["traced_ops"] - before
        grad = torch.ones(2, 3, 6, device="lazy")
        before = torch_ltc.metrics()["traced_ops"]
        torch.autograd.grad(y, [x, *module.parameters()], grad)
        backward = torch_ltc.metrics()["traced_ops"] - before
    assert (forward, backward) == (1, 1)


def test_a_write_before_the_gradient_is_an_error() -> None:
    module, x = layer("lazy"), values("lazy", 4, 8)
    y = module(x)
    with torch.no_grad():
        module.weight.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()
    module, x = layer("lazy"), values("lazy", 4, 8)
    x.requires_grad_(False)
    y = module(x)
    with torch.no_grad():
        module.weight.add_(1)  # the weight isn't saved, because x needs no gradient
    y.sum().backward()


def test_a_second_gradient_is_an_error() -> None:
    loss = layer("lazy")(values("lazy", 4, 8)).sum()
    loss.backward()
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        loss.backward()


def test_wrong_sizes_are_eagers_error() -> None:
    for sizes in ((4, 7), (2, 3, 7)):
        errors = []
        for device in ("cpu", "lazy"):
            with pytest.raises(RuntimeError) as error:
                layer(device)(values(device, *sizes))
            errors.append(str(error.value).split("\n")[0])
        assert errors[1].startswith(errors[0])


def test_saved_tensor_hooks_see_what_is_kept() -> None:
    def kept(device: str) -> list[torch.Size]:
        sizes = []

        def pack(tensor: torch.Tensor) -> torch.Tensor:
            sizes.append(tensor.numel())
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            y = layer(device)(values(device, 4, 8))
        y.sum().backward()
        return sorted(sizes)

    assert kept("lazy") == kept("cpu")


def test_a_dispatch_mode_sees_torchs_ops() -> None:
    class Names(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            names.append(function.overloadpacket.__name__)
            return function(*args, **kwargs or {})

    names: list[str] = []
    module, x = layer("lazy"), values("lazy", 4, 8)
    with Names():
        module(x)
    assert "addmm" in names


def test_a_forced_fallback_reaches_the_layer() -> None:
    module, x = layer("lazy"), values("lazy", 4, 8)
    torch_ltc.reset_metrics()
    with torch_ltc.config(force_fallback="aten::addmm"):
        y = module(x)
    assert torch_ltc.metrics()["fallback_calls"] == 1
    assert_close(y, layer("cpu")(x.detach().cpu()))


def test_autocast_and_transforms() -> None:
    def compute(device: str) -> list[torch.Tensor]:
        module, x = layer(device), values(device, 4, 8)
        with torch.autocast(device, dtype=torch.bfloat16):
            y = module(x)
        assert y.dtype == torch.bfloat16
        state = {name: p.detach() for name, p in module.named_parameters()}

        def loss(state, row):
            return torch.func.functional_call(module, state, (row,)).square().sum()

        rows = torch.func.vmap(torch.func.grad(loss), (None, 0))(state, x.detach())
        return [y, rows["weight"], rows["bias"]]

    both(compute)


@pytest.mark.parametrize("beta", [0, 0.0])
def test_an_ignored_addend_is_not_read(beta: float) -> None:
    """Attention calls `baddbmm` with an uninitialized addend and beta=0."""
    a, b = torch.rand(2, 3, 4), torch.rand(2, 4, 5)
    addend = torch.full((2, 3, 5), float("nan"))
    lazy = [x.to("lazy") for x in (addend, a, b)]
    with torch_ltc.config(tier="compile"):
        result = torch.baddbmm(*lazy, beta=beta, alpha=0.5)
        program = torch_ltc.debug.dump(result, "torch")
        assert "aten.add" not in program
        assert_close(result, torch.baddbmm(addend, a, b, beta=beta, alpha=0.5))
