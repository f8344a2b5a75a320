"""torch.inference_mode behaves as in eager: models, views and writes have eager's results,
the same tensors are inference tensors, and the same uses of inference tensors are rejected
outside of the mode."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from comparison import assert_close, compare
from torch import nn
from torch.nn import functional as F


def test_models_run() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3), nn.Flatten(), nn.LayerNorm(12),
        nn.Linear(12, 4),
    ).eval()  # fmt: skip
    recurrent = nn.LSTM(4, 3)
    x = torch.randn(5, 2, 4, 4)
    with torch.no_grad():
        y = model(x)
        expected = [y, recurrent(y)[0]]
    model.to("lazy")
    recurrent.to("lazy")
    with torch.inference_mode():
        z = model(x.to("lazy"))
        results = [z, recurrent(z)[0]]
    assert_close(results, expected, rtol=1e-4, atol=1e-5)


def test_views_of_normal_tensors() -> None:
    def program(x: torch.Tensor) -> list[torch.Tensor]:
        base = x.clone()
        with torch.inference_mode():
            view = base[1:]
            view.mul_(2)
            rows = base.t().unbind()
            rows[0].add_(1)
            inner = (x * 2).view(-1)
            inner[0] = 9
        base.add_(1)
        return [base, view, *rows, inner]

    compare(program, torch.arange(6.0).reshape(3, 2))


def test_training_continues_after_it() -> None:
    def program(x: torch.Tensor) -> list[torch.Tensor]:
        weight = x.clone().requires_grad_()
        with torch.inference_mode():
            (weight.t() @ x).sum()
        (weight.t() @ x).sum().backward()
        return [weight.grad]

    compare(program, torch.arange(6.0).reshape(3, 2))


#: Composite ops; some write through views of a new tensor.
COMPOSITES = {
    "circular padding": lambda x: F.pad(x, (1, 2, 1, 0), mode="circular"),
    "circular padding of one dimension": lambda x: F.pad(x[0], (2, 1), mode="circular"),
    "block_diag": lambda x: torch.block_diag(x[0, 0], x[0, 1]),
    "repeat": lambda x: x.repeat(2, 1, 2, 1),
    "fold": lambda x: F.fold(F.unfold(x, 2), (4, 5), 2),
    "cov": lambda x: torch.cov(x[0, 0]),
    "stft": lambda x: torch.stft(x.flatten(), 8, return_complex=True).abs(),
}  # fmt: skip


@pytest.mark.parametrize("name", COMPOSITES)
def test_composite_ops_have_eagers_values(name: str) -> None:
    x = torch.linspace(-1, 2, 40).reshape(1, 2, 4, 5)
    with torch.inference_mode():
        result = COMPOSITES[name](x.to("lazy"))
        assert_close(result, COMPOSITES[name](x))


MADE_INSIDE = {
    "moved": lambda x, d: torch.ones(3).to(d),
    "op": lambda x, d: x * 2,
    "reduction": lambda x, d: x.sum(),
    "list": lambda x, d: x.clone().split(1)[0],
    "view of one": lambda x, d: (x * 2)[1:],
    "fallback": lambda x, d: torch.special.bessel_j0(x),
    "clone": lambda x, d: x.clone(),
    "written": lambda x, d: (x * 2).add_(1),
    "complex": lambda x, d: torch.complex(x, x).conj(),
    "view": lambda x, d: x[1:],
    "detach": lambda x, d: x.detach(),
    "reshape": lambda x, d: x.reshape(1, 3),
    "ones": lambda x, d: torch.ones(3, device=d),
    "empty, filled": lambda x, d: torch.empty(3, device=d).fill_(2),
    "arange": lambda x, d: torch.arange(3, device=d),
    "rand": lambda x, d: torch.rand(3, device=d) * 0,
    "zeros_like": lambda x, d: torch.zeros_like(x),
    "rand_like": lambda x, d: torch.rand_like(x) * 0,
    "new_ones": lambda x, d: x.new_ones(2),
    "eye": lambda x, d: torch.eye(2, device=d),
    "linspace of tensors": lambda x, d: torch.linspace(x[0], 1, 4),
    "logspace of tensors": lambda x, d: torch.logspace(x[0], x[1], 4),
    "normal of numbers": lambda x, d: torch.normal(0.0, 1.0, (3,), device=d) * 0,
    "normal of tensors": lambda x, d: torch.normal(x, x) * 0,
    "take": lambda x, d: x.take(torch.tensor([2, 0], device=d)),
    "take one": lambda x, d: x.take(torch.tensor(2, device=d)),
    "one_hot": lambda x, d: F.one_hot(x.long(), 4),
    "itself, filled": lambda x, d: x.fill_(2),
    "itself, zeroed": lambda x, d: x.zero_(),
    "itself, from the CPU": lambda x, d: x.copy_(torch.ones(3)),
    "itself, drawn": lambda x, d: x.uniform_(1, 1),
    "view, filled": lambda x, d: x[1:].fill_(2),
    "itself, written": lambda x, d: x.add_(1),
    "view, written": lambda x, d: x[1:].add_(1),
}


def _inside(name: str, device: str) -> torch.Tensor:
    x = torch.arange(3.0).to(device)
    with torch.inference_mode():
        return MADE_INSIDE[name](x, device)


@pytest.mark.parametrize("name", MADE_INSIDE)
def test_what_is_an_inference_tensor(name: str) -> None:
    cpu, lazy = _inside(name, "cpu"), _inside(name, "lazy")
    assert lazy.is_inference() == cpu.is_inference()
    assert_close(lazy, cpu.clone())
    assert (lazy * 1).is_inference() == (cpu * 1).is_inference()
    assert lazy.view(-1).is_inference() == cpu.view(-1).is_inference()
    with torch.inference_mode():
        assert lazy.view_as(lazy).is_inference() == cpu.view_as(cpu).is_inference()


#: Composite ops that, in the mode, return a view of the operand, the operand itself, or a
#: copy.
RETURNED = {
    "broadcast_tensors": lambda x: torch.broadcast_tensors(x, x[:1])[0],
    "meshgrid": lambda x: torch.meshgrid(x[0], x[1], indexing="ij")[0],
    "expand_as": lambda x: x.expand_as(x),
    "reshape": lambda x: x.reshape(-1),
    "flatten": lambda x: x.flatten(),
    "chunk": lambda x: x.chunk(2)[1],
    "tensor_split": lambda x: x.tensor_split(2)[1],
    "movedim": lambda x: x.movedim(0, 1),
    "atleast_2d": torch.atleast_2d,
    "contiguous": lambda x: x.contiguous(),
    "dropout": lambda x: F.dropout(x, training=False),
    "conj_physical": torch.conj_physical,
    "diag": torch.diag,
    "expand_copy": lambda x: torch.expand_copy(x, (4, 4)),
    "permute_copy": lambda x: torch.permute_copy(x, (1, 0)),
    "slice_scatter": lambda x: torch.slice_scatter(x, x[:1] * 0, 0, 0, 1),
    "masked_scatter": lambda x: x.masked_scatter(x > 3, x),
}


@pytest.mark.parametrize("name", RETURNED)
def test_what_composite_ops_return(name: str) -> None:
    """Writes to the result and to the operand have the same effects as in eager."""

    def program(x: torch.Tensor) -> list:
        x = x.clone()
        with torch.inference_mode():
            result = RETURNED[name](x)
            properties = [result is x, result._is_view(), result.is_inference()]
            properties += [result.stride(), result.requires_grad]
            x.mul_(2)
            result.select(0, 0).fill_(7)
        return [x, result, *properties]

    x = torch.arange(16.0).reshape(4, 4)
    eager, lazy = program(x), program(x.to("lazy"))
    assert lazy[2:] == eager[2:]
    for result, expected in zip(lazy[:2], eager[:2], strict=True):
        assert_close(result, expected.clone())


OUTSIDE = {
    "saved for backward": lambda x: x * torch.ones_like(x).requires_grad_(),
    "written": lambda x: x.add_(1),
    "filled": lambda x: x.zero_(),
    "requires_grad": lambda x: x.requires_grad_(),
    "version": lambda x: x._version,
    "out": lambda x: torch.add(torch.ones_like(x), 1, out=x),
    "used without a gradient": lambda x: (x * 2).sum(),
    "added": lambda x: x + torch.ones_like(x).requires_grad_(),
}


@pytest.mark.parametrize("use", OUTSIDE.values(), ids=OUTSIDE)
def test_outside(use) -> None:
    answers = []
    for device in ("cpu", "lazy"):
        x = _inside("op", device)
        try:
            answers.append(use(x).tolist())
        except RuntimeError as error:
            answers.append(str(error)[:60])
    assert answers[1] == answers[0]


def test_normal_views_stay_usable() -> None:
    """A base that was written through a view in the mode can be saved for a backward pass
    afterwards."""

    def program(x: torch.Tensor) -> list[torch.Tensor]:
        base = x.clone()
        with torch.inference_mode():
            view = base[1:]
            view.mul_(2)
            view.sum()
        other = base.view(-1)
        weight = torch.ones_like(base).requires_grad_()
        (weight * base).sum().backward()
        other.add_(1)
        return [base, other, weight.grad]

    compare(program, torch.arange(6.0).reshape(3, 2))


FROM_PYTHON = {
    "tensor": lambda device: torch.tensor([1.0, 2.0], device=device),
    "tensor of a number": lambda device: torch.tensor(1, device=device),
    "as_tensor": lambda device: torch.as_tensor([1.0], device=device),
    "asarray": lambda device: torch.asarray([1.0], device=device),
}


@pytest.mark.parametrize("name", FROM_PYTHON)
def test_tensors_of_python_numbers(name: str) -> None:
    """Tensors that the mode creates from Python numbers are inference tensors, although
    their creation also calls `lift_fresh`, below the kernels of views."""
    with torch.inference_mode():
        made = FROM_PYTHON[name]("lazy")
        made.add_(1)
    assert made.is_inference()
    assert not FROM_PYTHON[name]("lazy").is_inference()
    assert_close(made, FROM_PYTHON[name]("cpu") + 1)


#: Writes of a normal 3x3 tensor into an inference tensor.
WRITES = {
    "copy_": lambda x, normal: x.copy_(normal),
    "copy_ from the CPU": lambda x, normal: x.copy_(normal.cpu()),
    "copy_ into a view": lambda x, normal: x.t().copy_(normal),
    "a row": lambda x, normal: x.__setitem__(0, normal[0]),
    "add_": lambda x, normal: x.add_(normal),
    "addmm_": lambda x, normal: x.addmm_(normal, normal),
    "masked_fill_": lambda x, normal: x.masked_fill_(normal > 0, 2.0),
    "bernoulli_": lambda x, normal: x.bernoulli_(normal.sigmoid()),
    "out of add": lambda x, normal: torch.add(normal, normal, out=x),
    "out of cumsum": lambda x, normal: torch.cumsum(normal, 0, out=x),
    "a list": lambda x, normal: torch._foreach_add_([x], [normal]),
    "a copied list": lambda x, normal: torch._foreach_copy_([x], [normal]),
}


@pytest.mark.parametrize("name", WRITES)
def test_a_written_tensor_stays_one(name: str) -> None:
    """A written inference tensor remains one, and its later views are inference tensors
    as in eager."""
    outcomes = {}
    for device in ("cpu", "lazy"):
        normal = torch.linspace(-1, 1, 9).reshape(3, 3).to(device)
        torch.manual_seed(0)
        with torch.inference_mode():
            x = torch.ones(3, 3, device=device)
            WRITES[name](x, normal)
            results = [x, x.t(), x[0], x.view(-1), x + normal]
        results.append(x[1])
        outcomes[device] = [r.is_inference() for r in results]
        assert_close(results[0], outcomes.setdefault("x", x))
    assert outcomes["lazy"] == outcomes["cpu"]


#: Ops that return new tensors and also write operands, by the operands they write.
WRITTEN_BESIDE: dict[str, Callable[..., object]] = {
    "batch_norm": lambda x, mean, variance: F.batch_norm(x, mean, variance, training=True),
    "_native_batch_norm_legit": lambda x, mean, variance: (
        torch.ops.aten._native_batch_norm_legit(x, None, None, mean, variance, True, 0.1, 1e-5)
    ),
    "_batch_norm_with_update": lambda x, mean, variance: (
        torch.ops.aten._batch_norm_with_update(x, None, None, mean, variance, 0.1, 1e-5)
    ),
    "fused_moving_avg_obs_fake_quant": lambda x, mean, variance: (
        torch.fused_moving_avg_obs_fake_quant(
            x, torch.ones(1, device=x.device), torch.ones(1, device=x.device), mean[0],
            variance[0], mean.new_ones(1), mean.new_zeros(1).int(), 0.1, 0, 255, 0,
        )
    ),
    "_amp_update_scale_": lambda x, mean, variance: torch._amp_update_scale_(
        variance[0], mean.view(torch.int32)[0], x[0, 0] * 0, 2.0, 0.5, 9
    ),
    "rrelu_": lambda x, mean, variance: F.rrelu_(mean.sub_(x[0]), training=True),
    "rrelu_with_noise": lambda x, mean, variance: (
        torch.ops.aten.rrelu_with_noise(x[0], mean, 0.1, 0.3, True)
    ),
    "_amp_foreach_non_finite_check_and_unscale_": lambda x, mean, variance: (
        torch._amp_foreach_non_finite_check_and_unscale_(
            [mean, variance], x.new_zeros(()), x.new_ones(())
        )
    ),
    "split_copy.out": lambda x, mean, variance: (
        torch.split_copy(x[:2].flatten(), 3, out=[mean, variance])
    ),
    "unbind_copy.out": lambda x, mean, variance: (
        torch.unbind_copy(x[:2], out=[mean, variance])
    ),
    "lists with views": lambda x, mean, variance: (
        torch._foreach_mul_([mean[1:], variance], [x[0, 1:], x[1]])
    ),
    "lists with integers": lambda x, mean, variance: (
        torch._foreach_add_([mean, variance], [x[0].int(), x[1].int()])
    ),
    "normal and inference tensors": lambda x, mean, variance: (
        torch._foreach_add_([x + 1, mean, x * 2, variance], 2.0)
    ),
}  # fmt: skip


_WITH_LIST = (
    "_foreach_add_", "_foreach_clamp_max_", "_foreach_clamp_min_", "_foreach_copy_",
    "_foreach_div_", "_foreach_maximum_", "_foreach_minimum_", "_foreach_mul_",
    "_foreach_pow_", "_foreach_sub_",
)  # fmt: skip


def _foreach(name: str) -> Callable[..., object]:
    """Returns a function that calls `torch.NAME`, which writes a list."""

    def call(x: torch.Tensor, *written: torch.Tensor) -> object:
        arguments: tuple = ()
        if name in ("_foreach_addcdiv_", "_foreach_addcmul_"):
            arguments = ([x[0], x[1]], [x[2], x[3]])
        elif name == "_foreach_lerp_":
            arguments = ([x[0], x[1]], 0.25)
        elif name in _WITH_LIST:
            arguments = ([x[0], x[1]],)
        return getattr(torch, name)(list(written), *arguments)

    return call


WRITTEN_BESIDE |= {
    name: _foreach(name)
    for name in dir(torch)
    if name.startswith("_foreach_") and name.endswith("_")
}


@pytest.mark.parametrize("name", WRITTEN_BESIDE)
def test_normal_tensors_that_are_written_stay_normal(name: str) -> None:
    def program(x: torch.Tensor) -> list:
        mean, variance = x.new_zeros(3), x.new_ones(3)
        torch.manual_seed(0)
        with torch.inference_mode():
            WRITTEN_BESIDE[name](x, mean, variance)
            inside = mean.detach()
        written = [mean, variance, mean.detach(), variance[1:], inside]
        return [*written, [tensor.is_inference() for tensor in written]]

    compare(program, torch.linspace(-2, 3, 12).view(4, 3))


def test_storages_that_are_released_stay_normal() -> None:
    def program(x: torch.Tensor) -> list:
        tensor = x.clone()
        storage = tensor.untyped_storage()
        size = storage.nbytes()
        with torch.inference_mode():
            storage.resize_(0)
        storage.resize_(size)
        view = tensor[1:]
        tensor.copy_(x)
        return [tensor, view, tensor.is_inference(), view.is_inference()]

    compare(program, torch.arange(3.0))


def test_aliases_of_inference_tensors_outside_of_it() -> None:
    def program(x: torch.Tensor) -> list[bool]:
        with torch.inference_mode():
            made = x * 2
            normal = [x.detach(), torch._lazy_clone(x)]
        aliases = [
            made.detach(),
            made[:],
            made.data,
            made.clone(),
            torch._lazy_clone(made),
        ]
        return [tensor.is_inference() for tensor in [*normal, *aliases]]

    compare(program, torch.arange(3.0))

    def parameter(x: torch.Tensor) -> torch.Tensor:
        with torch.inference_mode():
            made = x * 2
        return nn.Parameter(made)  # raises an error

    compare(parameter, torch.arange(3.0))
