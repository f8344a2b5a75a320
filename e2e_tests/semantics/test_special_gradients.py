"""Ops with a formula in Python have the values and gradients of eager's kernels at
infinities, NaN, zeros of both signs and denormals.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from comparison import assert_close
from torch import Tensor
from torch.nn import functional as F
from torch.utils._pytree import tree_leaves

NUMBERS = (math.inf, -math.inf, math.nan, 0.0, -0.0, 1e-40, 1e38, 1.5, -2.5)


def special(*shape: int, start: int = 0) -> Tensor:
    positions = (torch.arange(math.prod(shape)) + start) % len(NUMBERS)
    return torch.tensor(NUMBERS)[positions].reshape(shape)


def _bag(mode: str, padding: int | None = None) -> Callable[..., Tensor]:
    def call(weight: Tensor, scale: Tensor | None = None) -> Tensor:
        indices = torch.tensor([0, 1, 3, 1, 0, 2], device=weight.device)
        offsets = torch.tensor([0, 2, 2, 5], device=weight.device)
        return F.embedding_bag(
            indices,
            weight,
            offsets,
            mode=mode,
            padding_idx=padding,
            per_sample_weights=scale,
        )

    return call


def _margins(p: int, weights: list[float] | None) -> Callable[[Tensor], Tensor]:
    def call(x: Tensor) -> Tensor:
        target = torch.tensor([0, 2, 1], device=x.device)
        weight = torch.tensor(weights, device=x.device) if weights else None
        return F.multi_margin_loss(x, target, p=p, weight=weight)

    return call


def _label_margins(x: Tensor) -> Tensor:
    target = torch.tensor([[0, -1, 1], [2, 1, -1]], device=x.device)
    return F.multilabel_margin_loss(x, target)


def _resize(size: int, mode: str, align: bool) -> Callable[[Tensor], Tensor]:
    def call(x: Tensor) -> Tensor:
        sizes = (size,) * (x.dim() - 2)
        return F.interpolate(x, size=sizes, mode=mode, align_corners=align)

    return call


def _pool(*args: int, **kwargs: bool) -> Callable[[Tensor], Tensor]:
    return lambda x: F.max_pool3d(x, *args, return_indices=True, **kwargs)


def _adaptive_pool(x: Tensor) -> tuple[Tensor, Tensor]:
    return F.adaptive_max_pool3d(x, (2, 3, 2), return_indices=True)


def _lowest(*shape: int) -> Tensor:
    return torch.full(shape, -math.inf)


def _channels_last(x: Tensor) -> Tensor:
    return x.contiguous(memory_format=torch.channels_last_3d)


def _sampled(x: Tensor) -> Tensor:
    points = [
        [0.0, 0.0, 0.0],
        [1e38, 0.0, 0.0],
        [math.inf, 0.0, 0.0],
        [0.0, -math.inf, 2.0],
    ]
    grid = torch.tensor(points, device=x.device).reshape(1, 1, 2, 2, 3)
    return F.grid_sample(x, grid, align_corners=False)


CASES: dict[str, tuple] = {
    "median of infinities": (torch.median, torch.tensor([math.inf, math.inf, 1.0])),
    "median of NaN": (torch.median, special(9)),
    "nanmedian of infinity": (torch.nanmedian, torch.tensor(math.inf)),
    "nanmedian of NaN": (torch.nanmedian, torch.full((2,), math.nan)),
    "mean of NaN": (torch.nanmean, torch.full((2,), math.nan)),
    "infinite powers": (
        torch.ldexp,
        torch.tensor([math.inf, 0.0, 0.0]),
        torch.tensor([-math.inf, 300.0, math.inf]),
    ),
    "infinite sums": (lambda x: torch.nansum(x) * math.inf, special(9)),
    "pool": (_pool(3, 2, 1), special(2, 3, 4, 5)),
    "pool, dilated": (
        lambda x: F.max_pool3d(x, 3, 2, 1, dilation=2),
        special(1, 1, 7, 7, 7),
    ),
    "pool, ceil": (_pool(3, 2, 1, ceil_mode=True), special(1, 1, 6, 7, 5)),
    "pool of padding and -inf": (_pool(3, 2, 1), _lowest(1, 1, 4, 4, 4)),
    "pool, channels last": (_pool(2), _channels_last(special(2, 3, 4, 4, 4))),
    "adaptive pool": (_adaptive_pool, special(2, 4, 5, 3)),
    "adaptive pool of -inf": (_adaptive_pool, _lowest(2, 1, 4, 5, 3)),
    "margins of labels": (_label_margins, special(2, 3)),
    "cross": (torch.linalg.cross, special(5, 3), special(5, 3, start=2)),
    "bags": (_bag("sum"), special(4, 3)),
    "bags of means": (_bag("mean"), special(4, 3)),
    "bags of maxima": (_bag("max"), special(4, 3)),
    "padded bags of maxima": (_bag("max", 0), special(4, 3)),
    "scaled bags": (_bag("sum"), special(4, 3), special(6, start=4)),
    "scaled padded bags": (_bag("sum", 1), special(4, 3), special(6, start=4)),
    "points outside of a volume": (_sampled, torch.arange(8.0).reshape(1, 1, 2, 2, 2)),
}
#: Factors of products: eager's formula for the gradient depends on the number of zeros.
FACTORS = {
    "numbers": (3.0, 2.0, -1.5, 4.0),
    "zero": (3.0, 0.0, -1.5, 4.0),
    "zeros": (3.0, 0.0, 0.0, 4.0),
    "NaN": (3.0, math.nan, 2.0, 4.0),
    "NaN and zero": (3.0, math.nan, 0.0, 4.0),
    "NaN and zeros": (0.0, math.nan, 0.0, 4.0),
    "infinity": (3.0, math.inf, 2.0, 4.0),
    "overflow": (1e30, 1e30, 2.0, 4.0),
    "underflow": (1e-30, 1e-30, 2.0, 1e20),
}
for name, factors in FACTORS.items():
    row = torch.tensor(factors)
    rows = torch.stack([row, row.flip(0), torch.ones(4)])
    CASES[f"product with {name}"] = (torch.prod, row)
    CASES[f"product of all with {name}"] = (torch.prod, rows)
    CASES[f"products of rows with {name}"] = (lambda x: x.prod(1), rows)
    CASES[f"products of columns with {name}"] = (
        lambda x: x.prod(0, keepdim=True, dtype=torch.float64),
        rows,
    )
    CASES[f"cumulative product with {name}"] = (lambda x: x.cumprod(0), row)
for power in (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, math.inf):
    CASES[f"cdist {power}"] = (
        lambda a, b, p=power: torch.cdist(a, b, p),
        special(2, 1, 3, 2),
        special(4, 5, 2, start=2),
    )
    CASES[f"pdist {power}"] = (lambda x, p=power: F.pdist(x, p), special(4, 3))
    if power:
        CASES[f"renorm {power}"] = (
            lambda x, p=power: x.renorm(p, 0, 0.5),
            special(4, 3),
        )
for align in (True, False):
    for size in (3, 5, 8):
        for rank, mode in enumerate(("linear", "bilinear", "trilinear"), 1):
            x = special(1, 2, *[4] * rank)
            CASES[f"{mode} {size} {align}"] = (_resize(size, mode, align), x)
for p in (1, 2):
    CASES[f"margins {p}"] = (_margins(p, None), special(3, 3))
    CASES[f"weighted margins {p}"] = (
        _margins(p, [1.0, math.inf, math.nan]),
        special(3, 3),
    )


def _run(function: Callable, operands: tuple[Tensor, ...], device: str) -> list[Tensor]:
    leaves = [x.detach().to(device).requires_grad_() for x in operands]
    results = function(*leaves)
    results = list(results) if isinstance(results, tuple) else [results]
    loss = results[0]
    weights = torch.arange(1.0, loss.numel() + 1).reshape(loss.shape).to(device)
    return [*results, *torch.autograd.grad(loss, leaves, weights)]


@pytest.mark.parametrize("name", CASES)
def test_special_gradients(name: str) -> None:
    function, *operands = CASES[name]
    ours, eagers = (_run(function, tuple(operands), d) for d in ("lazy", "cpu"))
    for result, wanted in zip(ours, eagers, strict=True):
        assert result.stride() == wanted.stride()
        assert_close(result, wanted, rtol=1e-4, atol=1e-5, equal_nan=True)


@pytest.mark.parametrize("name", CASES)
def test_special_gradients_of_transforms(name: str) -> None:
    """Inside torch.func.vjp, tensors have another autograd key than outside."""
    function, *operands = CASES[name]
    results = []
    for device in ("lazy", "cpu"):
        loss, pull = torch.func.vjp(
            lambda *leaves: tree_leaves(function(*leaves))[0],
            *[x.detach().to(device) for x in operands],
        )
        weights = torch.arange(1.0, loss.numel() + 1).reshape(loss.shape).to(device)
        results.append([grad.cpu() for grad in pull(weights)])
    assert_close(*results, rtol=1e-4, atol=1e-5, equal_nan=True)


#: Gradients inside another transform, where eager itself avoids reading values.
NESTED: dict[str, Callable[[Callable], Callable]] = {
    "grad of grad": lambda f: torch.func.grad(lambda x: torch.func.grad(f)(x).sum()),
    "grad of vjp": lambda f: torch.func.grad(
        lambda x: torch.func.vjp(f, x)[1](torch.ones_like(f(x)))[0].nansum()
    ),
    "jvp of grad": lambda f: (
        lambda x: torch.func.jvp(torch.func.grad(f), (x,), (torch.ones_like(x),))
    ),
    "vmap of grad": lambda f: (
        lambda x: torch.func.vmap(torch.func.grad(f))(torch.stack([x, x.flip(0)]))
    ),
    "grad of vmap": lambda f: torch.func.grad(
        lambda x: torch.func.vmap(f)(torch.stack([x, x])).sum()
    ),
}
SCALARS: dict[str, Callable[[Tensor], Tensor]] = {
    "prod": torch.prod,
    "prod of a dim": lambda x: x[None].prod(1).sum(),
    "cumprod": lambda x: x.cumprod(0).sum(),
    "max": torch.max,
    "min": torch.min,
    "masked prod": lambda x: torch.masked.prod(x, 0, mask=x != 2).sum(),
}


@pytest.mark.parametrize("transform", NESTED)
@pytest.mark.parametrize("function", SCALARS)
def test_special_gradients_of_nested_transforms(function: str, transform: str) -> None:
    derivative = NESTED[transform](SCALARS[function])
    for factors in FACTORS.values():
        x = torch.tensor(factors)
        ours = derivative(x.to("lazy"))
        assert_close(ours, derivative(x), rtol=1e-4, atol=1e-5, equal_nan=True)


def test_gradients_of_a_batch_of_eigenvectors() -> None:
    def loss(x: Tensor) -> Tensor:
        values, vectors = torch.linalg.eig(x)
        return values.abs().sum() + vectors.abs().square()[0].sum()

    x = torch.randn(2, 3, 3, dtype=torch.float64)
    gradients = torch.func.vmap(torch.func.grad(loss))
    assert_close(gradients(x.to("lazy")), gradients(x))


@pytest.mark.parametrize("device", ["cpu", "lazy"])
@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_a_bag_has_no_second_derivative(mode: str, device: str) -> None:
    weight = torch.randn(4, 3).to(device).requires_grad_()
    loss = _bag(mode)(weight).square().sum()
    (grad,) = torch.autograd.grad(loss, weight, create_graph=True)
    with pytest.raises(
        RuntimeError, match="the derivative for '_embedding_bag_backward'"
    ):
        grad.square().sum().backward()


@pytest.mark.parametrize("mode", ["sum", "mean"])
def test_a_sparse_gradient_of_bags(mode: str) -> None:
    grads = []
    for device in ("cpu", "lazy"):
        weight = torch.arange(12.0).reshape(4, 3).to(device).requires_grad_()
        indices = torch.tensor([[0, 1, 3], [1, 0, 2]], device=device)
        loss = F.embedding_bag(indices, weight, mode=mode, sparse=True).square().sum()
        (grad,) = torch.autograd.grad(loss, weight)
        assert grad.is_sparse
        grads.append(grad.to_dense().cpu())
    assert_close(*grads)


@pytest.mark.parametrize("device", ["cpu", "lazy"])
def test_multilabel_margins_have_no_second_derivative(device: str) -> None:
    scores = torch.randn(2, 3).to(device).requires_grad_()
    target = torch.tensor([[0, -1, 1], [2, 1, -1]], device=device)
    loss = F.multilabel_margin_loss(scores, target).square()
    (grad,) = torch.autograd.grad(loss, scores, create_graph=True)
    with pytest.raises(RuntimeError, match="multilabel_margin_loss_backward"):
        grad.sum().backward()


@pytest.mark.parametrize("device", ["cpu", "lazy"])
@pytest.mark.parametrize("function", [F.pdist, lambda x: torch.cdist(x, x, 3.0)])
def test_a_distance_has_no_second_derivative(function: Callable, device: str) -> None:
    x = torch.randn(4, 3).to(device).requires_grad_()
    (grad,) = torch.autograd.grad(function(x).sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="dist_backward"):
        grad.square().sum().backward()


def test_a_median_of_a_batch_has_tangents() -> None:
    x = torch.tensor([[1.0, 1.0, 3.0], [2.0, 2.0, 2.0]])
    for transform in (
        torch.func.vmap(torch.func.grad(torch.median)),
        torch.func.jacfwd(torch.median),
    ):
        assert_close(transform(x.to("lazy")), transform(x))


#: Excludes factors for which autograd multiplies infinity or NaN by zero: the sum below
#: gives `grad[1]` and `grad[3]` the weight zero.
@pytest.mark.parametrize("name", sorted({*FACTORS} - {"NaN and zeros", "infinity"}))
@pytest.mark.parametrize("product", [torch.prod, lambda x: x.cumprod(0)])
def test_second_derivatives_of_products(name: str, product: Callable) -> None:
    results = []
    for device in ("cpu", "lazy"):
        x = torch.tensor(FACTORS[name], device=device, requires_grad=True)
        (grad,) = torch.autograd.grad(product(x).sum(), x, create_graph=True)
        (second,) = torch.autograd.grad(grad[0] + 2 * grad[2], x)
        results.append((grad.detach().cpu(), second.cpu()))
    assert_close(*results, rtol=1e-4, atol=1e-5, equal_nan=True)


@pytest.mark.parametrize("op", [F.avg_pool3d, F.adaptive_avg_pool3d])
def test_second_derivatives_of_pools_in_3d(op: Callable) -> None:
    def cubes(x: torch.Tensor) -> torch.Tensor:
        return op(x, 2).pow(3).sum()

    x = torch.linspace(-1, 1, 128).reshape(1, 2, 4, 4, 4)
    for device in ("cpu", "lazy"):
        by_graphs = torch.autograd.functional.hessian(cubes, x.to(device))
        by_transforms = torch.func.hessian(cubes)(x.to(device))
        assert_close(by_graphs, by_transforms)


@pytest.mark.parametrize("op", [F.avg_pool3d, F.adaptive_avg_pool3d])
def test_a_pool_in_3d_that_is_linear_has_a_second_derivative_of_zero(
    op: Callable,
) -> None:
    for device in ("cpu", "lazy"):
        x = torch.ones(1, 2, 4, 4, 4, device=device, requires_grad=True)
        (first,) = torch.autograd.grad(op(x, 2).sum(), x, create_graph=True)
        (second,) = torch.autograd.grad(first.sum(), x)
        assert not second.any()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("dim", [0, 1, 2])
def test_weight_norm(dim: int, dtype: torch.dtype) -> None:
    """The gradient is eager's also if weights change between forward and backward, and if
    it is differentiated (eager's second derivatives aren't exact)."""
    factor = torch.linspace(0.5, 2, 24).view(2, 3, 4).to(dtype)
    magnitudes = torch.linspace(1, 2, 2 + dim).view(
        [-1 if d == dim else 1 for d in range(3)]
    )

    def program(device: str) -> list[Tensor]:
        v, g = (
            x.to(device, dtype).requires_grad_() for x in (factor.sin(), magnitudes)
        )
        w = torch._weight_norm(v, g, dim)
        results = [w.detach()]
        if dtype == torch.float32:
            first = torch.autograd.grad((w**3).sum(), (v, g), create_graph=True)
            results += torch.autograd.grad(sum(x.square().sum() for x in first), (v, g))
            w = torch._weight_norm(v, g, dim)
        loss = (w * factor.to(device)).sum()
        v.data, g.data = v.data * 2, g.data * 3
        return [*results, *torch.autograd.grad(loss, (v, g))]

    tolerance = 1e-2 if dtype == torch.bfloat16 else 1e-4
    assert_close(program("lazy"), program("cpu"), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(
    "function", [torch.linalg.eig, lambda x: torch.linalg.eigh(x @ x.mH)]
)
def test_second_derivatives_of_complex_eigenvectors(function: Callable) -> None:
    """torch's formula scatters the real gradient of eigenvalues into a complex matrix."""
    matrix = torch.randn(3, 3, dtype=torch.complex128)
    results = {}
    for device in ("cpu", "lazy"):
        x = matrix.to(device).requires_grad_()
        values, vectors = function(x)
        loss = (vectors.abs()[0] ** 3).sum() + values.abs().square().sum()
        (first,) = torch.autograd.grad(loss, x, create_graph=True)
        (second,) = torch.autograd.grad(first.abs().square().sum(), x)
        results[device] = [first.detach(), second]
    assert_close(results["lazy"], results["cpu"], rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
@pytest.mark.parametrize(
    "function", [torch.linalg.eig, lambda x: torch.linalg.eigh(x @ x.mH)]
)
def test_a_loss_of_the_phase_of_eigenvectors(
    function: Callable, dtype: torch.dtype
) -> None:
    """Eager raises an error if the loss depends on the phase, which is arbitrary."""

    def gradient(x: torch.Tensor, measure: Callable) -> torch.Tensor:
        values, vectors = function(x)
        loss = measure(vectors).sum() + values.abs().sum()
        (result,) = torch.autograd.grad(loss, x)
        return result.cpu()

    x = torch.randn(3, 3, dtype=dtype, generator=torch.Generator().manual_seed(1))
    x.requires_grad_()
    lazy = x.detach().to("lazy").requires_grad_()
    assert_close(gradient(lazy, torch.abs), gradient(x, torch.abs))
    if not function(x)[1].is_complex():
        return
    for tensor in (x, lazy):
        with pytest.raises(
            RuntimeError, match="_backward: The eigenvectors in the com"
        ):
            gradient(tensor, torch.real)
