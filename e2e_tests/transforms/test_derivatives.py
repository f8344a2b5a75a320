"""Higher derivatives, torch.func, checkpoints, hooks and custom ops equal eager's."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from comparison import assert_close, compare
from torch import nn
from torch.utils.checkpoint import (
    CheckpointPolicy,
    checkpoint,
    create_selective_checkpoint_contexts,
)


def x34() -> torch.Tensor:
    return torch.linspace(-1, 2, 12).reshape(3, 4)


def double_backward(x: torch.Tensor) -> list[torch.Tensor]:
    x = x.detach().requires_grad_()
    y = (x.sin() * x.exp()).softmax(1).square().sum()
    (first,) = torch.autograd.grad(y, x, create_graph=True)
    (second,) = torch.autograd.grad(first.square().sum(), x, create_graph=True)
    (third,) = torch.autograd.grad(second.sum(), x)
    return [first.detach(), second.detach(), third]


def gradient_penalty(x: torch.Tensor) -> list[torch.Tensor]:
    weight = (x[:, :1] * 0.3).detach().requires_grad_()
    inputs = x.detach().requires_grad_()
    score = F.elu(inputs.t() @ weight).sum()
    (gradient,) = torch.autograd.grad(score, inputs, create_graph=True)
    ((gradient.norm(2) - 1) ** 2).backward()
    return [weight.grad]


def func_grad(x: torch.Tensor) -> list[torch.Tensor]:
    f = lambda v: (v.tanh() * v).sum()  # noqa: E731
    gradient, value = torch.func.grad_and_value(f)(x)
    return [gradient, value, torch.func.grad(lambda v: torch.func.grad(f)(v).sum())(x)]


def func_vmap(x: torch.Tensor) -> list[torch.Tensor]:
    per_row = torch.func.vmap(torch.func.grad(lambda r: (r * r).sum() * r[0]))(x)
    outer = torch.func.vmap(torch.outer)(x, x)
    nested = torch.func.vmap(torch.func.vmap(lambda a: a.exp() + 1))(x)
    spaces = [
        torch.func.vmap(lambda end: torch.linspace(end, 2.0, 4, device=x.device))(x[0]),
        torch.func.vmap(lambda end: torch.logspace(1.0, end, 4, device=x.device))(x[0]),
    ]
    return [per_row, outer, nested, torch.func.vmap(torch.dot, (1, 1))(x, x), *spaces]


def func_jvp(x: torch.Tensor) -> list[torch.Tensor]:
    value, tangent = torch.func.jvp(lambda v: v.sin() @ v.t(), (x,), (x.cos(),))
    return [value, tangent]


def func_of_written_views(x: torch.Tensor) -> list[torch.Tensor]:
    """A view is returned whose memory the function has written."""

    def part(x: torch.Tensor) -> torch.Tensor:
        y = x.sin()
        view = y[1:].t()
        y.mul_(y.detach() + 2)
        return view

    value, pull = torch.func.vjp(part, x)
    rows = torch.func.jacrev(part)(x)
    columns = torch.func.jacfwd(part)(x)
    return [value, *pull(torch.ones_like(value)), rows, columns]


def func_vjp(x: torch.Tensor) -> list[torch.Tensor]:
    value, pull = torch.func.vjp(lambda v: v.softmax(-1), x)
    return [value, *pull(torch.ones_like(value) * 2)]


def func_linearize(x: torch.Tensor) -> list[torch.Tensor]:
    value, derivative = torch.func.linearize(lambda v: v.sin() * v, x)
    return [value, derivative(torch.ones_like(x)), derivative(x)]


def func_functionalize(x: torch.Tensor) -> list[torch.Tensor]:
    def f(v: torch.Tensor) -> torch.Tensor:
        w = v.clone().add_(1)
        w.view(-1)[:3].mul_(2)
        return w

    both = [
        torch.func.functionalize(f, remove=remove)
        for remove in ("mutations", "mutations_and_views")
    ]
    return [*(g(x) for g in both), torch.func.grad(lambda v: both[0](v).sum())(x)]


def func_jacobians(x: torch.Tensor) -> list[torch.Tensor]:
    f = lambda v: (v * v.roll(1)).cumsum(0)  # noqa: E731
    row = x[0]
    return [
        torch.func.jacrev(f)(row),
        torch.func.jacfwd(f)(row),
        torch.func.hessian(lambda v: f(v).square().sum())(row),
    ]


def per_sample_gradients(x: torch.Tensor) -> list[torch.Tensor]:
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 2)).to(x.device)
    parameters = {k: v.detach() for k, v in model.named_parameters()}

    def loss(parameters: dict, row: torch.Tensor) -> torch.Tensor:
        return torch.func.functional_call(model, parameters, (row,)).square().sum()

    gradients = torch.func.vmap(torch.func.grad(loss), (None, 0))(parameters, x)
    return list(gradients.values())


def ensemble(x: torch.Tensor) -> list[torch.Tensor]:
    torch.manual_seed(1)
    models = [nn.Linear(4, 2).to(x.device) for _ in range(3)]
    parameters, buffers = torch.func.stack_module_state(models)
    call = lambda p, b: torch.func.functional_call(models[0], (p, b), (x,))  # noqa: E731
    return [torch.func.vmap(call)(parameters, buffers).detach()]


def checkpointed(x: torch.Tensor) -> list[torch.Tensor]:
    results = []
    for reentrant in (False, True):
        inputs = x.detach().requires_grad_()
        block = lambda v: F.dropout(v.sin().exp(), 0.4)  # noqa: E731
        checkpoint(block, inputs * 2, use_reentrant=reentrant).sum().backward()
        results.append(inputs.grad)
    return results


def checkpointed_selectively(x: torch.Tensor) -> list[torch.Tensor]:
    def policy(context, op, *args, **kwargs) -> CheckpointPolicy:
        is_product = op == torch.ops.aten.mm.default
        return (
            CheckpointPolicy.MUST_SAVE
            if is_product
            else CheckpointPolicy.PREFER_RECOMPUTE
        )

    inputs = x.detach().requires_grad_()
    checkpoint(
        lambda v: ((v @ v.t()).sin() @ v).exp(),
        inputs * 2,
        use_reentrant=False,
        context_fn=lambda: create_selective_checkpoint_contexts(policy),
    ).sum().backward()
    return [inputs.grad]


def hooks(x: torch.Tensor) -> list[torch.Tensor]:
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2)).to(x.device)
    seen = []
    model[0].register_forward_pre_hook(lambda _, args: (args[0] * 2,))
    model[1].register_forward_hook(lambda _, args, out: out + 1)
    model[2].register_full_backward_hook(lambda _, gi, go: seen.extend([*gi, *go]))
    weight = model[0].weight
    weight.register_hook(lambda gradient: gradient.clamp(-0.1, 0.1))
    weight.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad.clone()))
    model(x).sum().backward()
    return [weight.grad, *seen]


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: torch.Tensor, scale: float) -> torch.Tensor:
        ctx.save_for_backward(x)
        ctx.scale = scale
        return x**3 * scale

    @staticmethod
    def backward(ctx, gradient: torch.Tensor):
        (x,) = ctx.saved_tensors
        return gradient * 3 * x * x * ctx.scale, None


class InPlaceDouble(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: torch.Tensor) -> torch.Tensor:
        ctx.mark_dirty(x)
        return x.mul_(2)

    @staticmethod
    def backward(ctx, gradient: torch.Tensor) -> torch.Tensor:
        return gradient * 2


def custom_function(x: torch.Tensor) -> list[torch.Tensor]:
    inputs = x.detach().requires_grad_()
    y = Cube.apply(inputs, 0.5)
    z = InPlaceDouble.apply(y * 1)
    (gradient,) = torch.autograd.grad(z.sum(), inputs, create_graph=True)
    gradient.sum().backward()
    return [z.detach(), gradient.detach(), inputs.grad]


def anomaly_and_saved(x: torch.Tensor) -> list[torch.Tensor]:
    inputs = x.detach().requires_grad_()
    pack = torch.autograd.graph.saved_tensors_hooks(
        lambda t: t.cpu(), lambda t: t.to(x.device)
    )
    with torch.autograd.detect_anomaly(check_nan=False), pack:
        (inputs.exp() * inputs).sum().backward()
    return [inputs.grad]  # fmt: skip


PROGRAMS: list[Callable] = [
    double_backward,
    gradient_penalty,
    func_grad,
    func_vmap,
    func_jvp,
    func_of_written_views,
    func_vjp,
    func_linearize,
    func_functionalize,
    func_jacobians,
    per_sample_gradients,
    ensemble,
    checkpointed,
    checkpointed_selectively,
    hooks,
    custom_function,
    anomaly_and_saved,
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
@pytest.mark.filterwarnings("ignore:Anomaly Detection")
def test_as_eager(program: Callable) -> None:
    compare(program, x34())


def test_forward_mode() -> None:
    import torch.autograd.forward_ad as forward

    def program(x: torch.Tensor) -> list[torch.Tensor]:
        with forward.dual_level():
            dual = forward.make_dual(x, x.cos())
            value, tangent = forward.unpack_dual((dual.sin() @ dual.t()).relu())
            return [value, tangent]

    compare(program, x34())


def test_forward_mode_over_backward_of_dropout() -> None:
    def derivative(x: torch.Tensor) -> torch.Tensor:
        torch.manual_seed(0)
        x = x.detach().requires_grad_()
        with torch.autograd.forward_ad.dual_level():
            dual = torch.autograd.forward_ad.make_dual(x, x.detach().cos())
            y = F.dropout(dual.sin(), 0.4).square().sum()
            (gradient,) = torch.autograd.grad(y, x)
            return torch.autograd.forward_ad.unpack_dual(gradient).tangent.detach()

    compare(derivative, x34())


@pytest.fixture(scope="module")
def library():
    with torch.library._scoped_library("ltc_tests", "FRAGMENT") as scoped:
        yield scoped


def test_custom_ops(library) -> None:
    """An op that decomposes is traced; one with only a CPU kernel runs on the CPU."""
    library.define("scaled_gelu(Tensor x, float scale) -> Tensor")
    library.impl(
        "scaled_gelu", lambda x, scale: F.gelu(x) * scale, "CompositeImplicitAutograd"
    )
    library.define("cpu_only(Tensor x) -> Tensor")
    library.impl("cpu_only", lambda x: torch.from_numpy(x.numpy() + 1), "CPU")

    def program(x: torch.Tensor) -> list[torch.Tensor]:
        inputs = x.detach().requires_grad_()
        torch.ops.ltc_tests.scaled_gelu(inputs, 2.0).sum().backward()
        return [inputs.grad, torch.ops.ltc_tests.cpu_only(x) * 2]

    compare(program, x34())


@torch.library.custom_op("ltc_tests_py::shift", mutates_args=(), device_types="cpu")
def shift(x: torch.Tensor, by: float) -> torch.Tensor:
    return torch.from_numpy(x.numpy() + by)


@shift.register_fake
def _(x: torch.Tensor, by: float) -> torch.Tensor:
    return torch.empty_like(x)


shift.register_autograd(lambda ctx, gradient: (gradient * 1, None))


def test_custom_op_of_the_python_api() -> None:
    def program(x: torch.Tensor) -> list[torch.Tensor]:
        inputs = x.detach().requires_grad_()
        (shift(inputs * 2, 0.5) ** 2).sum().backward()
        return [inputs.grad]

    compare(program, x34())


@pytest.mark.parametrize("name", ["mul", "div", "add", "matmul"])
def test_tangents_that_are_zero(name: str) -> None:
    """Forward derivatives equal eager's, although a factor that doesn't depend on the input
    has a zero tensor without memory as its tangent."""
    function = {
        "mul": lambda x: x * 1j,
        "div": lambda x: x / torch.full_like(x, 2j, dtype=torch.complex64),
        "add": lambda x: x + torch.ones_like(x, dtype=torch.complex64),
        "matmul": lambda x: x.to(torch.complex64) @ torch.eye(2, device=x.device) * 1j,
    }[name]

    def run(device: str) -> torch.Tensor:
        x = torch.tensor([0.5, 2.0], device=device)
        return torch.func.jvp(function, (x,), (torch.ones_like(x),))[1].cpu()

    try:
        expected = run("cpu")
    except RuntimeError as error:
        with pytest.raises(type(error)):
            run("lazy")
    else:
        assert_close(run("lazy"), expected)


#: Functions of a square matrix whose results are transposed in memory.
FACTORIZATIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "cholesky": torch.linalg.cholesky,
    "inv": lambda x: torch.linalg.inv(x).mT,
    "eigvalsh": lambda x: torch.linalg.eigvalsh(x + x.mT),
    "svdvals": torch.linalg.svdvals,
    "qr": lambda x: torch.linalg.qr(x)[1],
    "solve_triangular": lambda x: torch.linalg.solve_triangular(x, x, upper=True),
    "pinv": torch.linalg.pinv,
}


@pytest.mark.parametrize("name", FACTORIZATIONS)
@pytest.mark.parametrize("is_forward_twice", [False, True])
def test_second_derivatives_of_factorizations(
    name: str, is_forward_twice: bool
) -> None:
    """Batches of tangents have the strides of the values that they belong to."""
    x = torch.randn(3, 3)
    x = x @ x.mT + 3 * torch.eye(3)

    def function(x: torch.Tensor) -> torch.Tensor:
        return FACTORIZATIONS[name](x).square().sum()

    func = torch.func
    second = (
        func.jacfwd(func.jacfwd(function))
        if is_forward_twice
        else func.hessian(function)
    )
    result = second(x.to("lazy")).cpu()
    assert_close(result, second(x), rtol=1e-4, atol=1e-4)
