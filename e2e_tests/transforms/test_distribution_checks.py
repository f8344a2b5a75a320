"""Checks of torch.distributions read no values, and raise PyTorch's error later."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import torch
import torch_ltc
from comparison import assert_close
from torch import distributions as d
from torch_ltc._backend import bindings


@pytest.fixture(autouse=True)
def validation() -> Iterator[None]:
    """Switches validation on, as by default: some libraries, such as pyro, switch it off
    when they are imported."""
    before = d.Distribution._validate_args
    d.Distribution.set_default_validate_args(True)
    yield
    d.Distribution.set_default_validate_args(before)


POSITIVE = torch.rand(4, 3, generator=torch.Generator().manual_seed(0)) + 0.1
SIMPLEX = POSITIVE.softmax(1)

# Functions of two tensors: positive numbers, and rows of a simplex.
DISTRIBUTIONS: dict[str, Callable] = {
    "Normal": lambda a, p: d.Normal(a, a),
    "Categorical": lambda a, p: d.Categorical(p),
    "logits": lambda a, p: d.Categorical(logits=a),
    "OneHotCategorical": lambda a, p: d.OneHotCategorical(p),
    "Bernoulli": lambda a, p: d.Bernoulli(p),
    "Beta": lambda a, p: d.Beta(a, a),
    "Dirichlet": lambda a, p: d.Dirichlet(a),
    "Gamma": lambda a, p: d.Gamma(a, a),
    "Exponential": lambda a, p: d.Exponential(a),
    "Laplace": lambda a, p: d.Laplace(a, a),
    "LogNormal": lambda a, p: d.LogNormal(a, a),
    "Uniform": lambda a, p: d.Uniform(a, a + 1),
    "Poisson": lambda a, p: d.Poisson(a),
    "StudentT": lambda a, p: d.StudentT(a + 2, a, a),
    "Cauchy": lambda a, p: d.Cauchy(a, a),
    "HalfNormal": lambda a, p: d.HalfNormal(a),
    "Gumbel": lambda a, p: d.Gumbel(a, a),
    "Weibull": lambda a, p: d.Weibull(a, a),
    "Pareto": lambda a, p: d.Pareto(a, a),
    "Kumaraswamy": lambda a, p: d.Kumaraswamy(a, a),
    "Independent": lambda a, p: d.Independent(d.Normal(a, a), 1),
    "mixture": lambda a, p: d.MixtureSameFamily(d.Categorical(p), d.Normal(a, a)),
    "tanh": lambda a, p: d.TransformedDistribution(
        d.Normal(a, a), [d.TanhTransform(cache_size=1)]
    ),
}
# Distributions that aren't sampled here, because sampling loops until values are accepted,
# or depends on values in another way.
READ_BY_SAMPLING = ("Beta", "Dirichlet", "Gamma", "StudentT", "Poisson")


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    yield
    torch_ltc.wait_device_ops()


def make(name: str, device: str) -> d.Distribution:
    tensors = (POSITIVE, SIMPLEX)
    return DISTRIBUTIONS[name](*(tensor.to(device) for tensor in tensors))


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_no_reads(name: str) -> None:
    torch.manual_seed(0)
    x = make(name, "cpu").sample()
    expected = make(name, "cpu").log_prob(x)
    x = x.to("lazy")
    torch_ltc.mark_step()
    with torch_ltc.debug.no_sync():
        result = make(name, "lazy").log_prob(x)
        if name not in READ_BY_SAMPLING:
            make(name, "lazy").sample()
    torch_ltc.mark_step(wait=True)
    assert_close(result, expected)


INVALID: dict[str, Callable[[str], object]] = {
    "parameter": lambda device: d.Normal(0.0, torch.tensor([1.0, -2.0], device=device)),
    "nan": lambda device: d.Normal(torch.tensor([float("nan")], device=device), 1.0),
    "simplex": lambda device: d.Categorical(torch.tensor([[0.5, -0.5]], device=device)),
    "second parameter": lambda device: d.Beta(
        torch.ones(2, device=device), torch.zeros(2, device=device)
    ),
    "sample": lambda device: d.Exponential(torch.ones(1, device=device)).log_prob(
        torch.tensor([-2.0], device=device)
    ),
    "matrix": lambda device: d.MultivariateNormal(
        torch.zeros(2, device=device), scale_tril=torch.ones(2, 2, device=device)
    ),
}
ENDS = {
    "wait": lambda: torch_ltc.wait_device_ops(),
    "step": lambda: torch_ltc.mark_step(),
    "next check": lambda: d.Normal(0.0, torch.ones(2, device="lazy")),
}


def text(error: BaseException) -> str:
    return str(error).replace(", device='lazy:0'", "")


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("name", INVALID)
def test_an_invalid_argument_raises_later(name: str, end: str) -> None:
    with pytest.raises(ValueError) as expected:
        INVALID[name]("cpu")
    _ = INVALID[name]("lazy")
    with pytest.raises(ValueError) as caught:
        torch_ltc.mark_step()
        bindings().wait_device_ops()  # raises nothing; torch_ltc's functions raise
        ENDS[end]()
    assert text(caught.value) == str(expected.value)
    ENDS[end]()  # the error is raised once


@pytest.mark.parametrize("name", INVALID)
def test_at_once_without_the_option(name: str) -> None:
    with pytest.raises(ValueError) as expected:
        INVALID[name]("cpu")
    with torch_ltc.config(defer_checks=False), pytest.raises(ValueError) as caught:
        INVALID[name]("lazy")
    assert text(caught.value) == str(expected.value)


def test_what_was_overwritten_is_reported_all_the_same() -> None:
    scale = torch.tensor([-1.0], device="lazy")
    _ = d.Normal(0.0, scale)
    scale.fill_(1.0)
    with pytest.raises(ValueError, match="have been overwritten since"):
        torch_ltc.mark_step(wait=True)


def test_other_errors_are_raised_at_once() -> None:
    normal = d.Normal(torch.zeros(3, device="lazy"), 1.0)
    with pytest.raises(ValueError, match="not broadcastable"):
        normal.log_prob(torch.zeros(2, device="lazy"))
    with pytest.raises(ValueError, match="must be a Tensor"):
        normal.log_prob(1.0)


def test_a_custom_constraint_may_read() -> None:
    class Sorted(d.constraints.Constraint):
        def check(self, value: torch.Tensor) -> torch.Tensor:
            if value.sum() > 100:
                raise RuntimeError("never")
            return (value.diff() > 0).all(-1)

    class Order(d.Distribution):
        arg_constraints = {"points": Sorted()}

        def __init__(self, points: torch.Tensor) -> None:
            self.points = points
            super().__init__()

    Order(torch.arange(3.0, device="lazy"))
    torch_ltc.mark_step(wait=True)
    Order(torch.arange(3.0, device="lazy").flip(0))
    with pytest.raises(ValueError, match="points"):
        torch_ltc.mark_step(wait=True)


@pytest.mark.parametrize(
    "read",
    [
        lambda x: x.sum().item(),
        lambda x: x.tolist(),
        lambda x: x.cpu(),
        lambda x: x.detach().cpu().numpy(),
        lambda x: torch.equal(x, x + 1),
        lambda x: bool((x > 0).any()),
    ],
)
def test_values_of_a_failed_check_are_not_read(read: Callable) -> None:
    zeros, ones = torch.zeros(2, device="lazy"), torch.ones(2, device="lazy")
    for i in range(6):
        scale = -ones if i % 2 else ones
        log_prob = d.Normal(zeros, scale).log_prob(zeros)
        if i % 2:
            with pytest.raises(ValueError, match="to satisfy the constraint"):
                read(log_prob)
        else:
            read(log_prob)


FAILING: dict[str, Callable[[str], torch.Tensor]] = {
    "factorization": lambda device: (
        d.MultivariateNormal(
            torch.zeros(2, device=device), -torch.eye(2, device=device)
        ).scale_tril
    ),
    "index": lambda device: d.Categorical(torch.ones(3, device=device)).log_prob(
        torch.tensor([7], device=device)
    ),
}


@pytest.mark.parametrize("end", ["read", *ENDS])
@pytest.mark.parametrize("name", FAILING)
def test_a_failed_check_precedes_the_op_that_fails(name: str, end: str) -> None:
    with pytest.raises(ValueError) as expected:
        FAILING[name]("cpu")
    with pytest.raises(ValueError) as caught:
        result = FAILING[name]("lazy")
        if end == "read":
            result.cpu()
        torch_ltc.mark_step(wait=True)
        ENDS[end]()
    # Which attributes a message lists depends on what was computed before.
    assert text(caught.value)[:120] == str(expected.value)[:120]


@pytest.mark.parametrize(
    "read",
    [lambda y: y[y > 0], lambda y: (y > 0).nonzero(), lambda y: int((y > 0).sum())],
    ids=["mask", "nonzero", "count"],
)
def test_a_cheap_read_raises_a_failed_check(read) -> None:
    """A few ops compute the value, but not without the checks that precede them."""
    loc, scale = torch.ones(6).to("lazy"), -torch.ones(6).to("lazy")
    with pytest.raises(ValueError, match="parameter scale"):
        y = torch.distributions.Normal(loc, scale).loc * 2
        read(y)
