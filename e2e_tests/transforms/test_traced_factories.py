"""Tensors that a traced function creates are ops of the trace, not constants."""

from __future__ import annotations

import weakref
from collections.abc import Callable

import pytest
import torch
import torch_ltc  # noqa: F401
from comparison import assert_close
from torch import Tensor
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils._python_dispatch import TorchDispatchMode

FUNCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "zeros_like": torch.zeros_like,
    "full_like": lambda x: torch.full_like(x, 2),
    "zeros": lambda x: torch.zeros(x.shape, device=x.device),
    "arange": lambda x: torch.arange(x.shape[0], device=x.device),
    "eye": lambda x: torch.eye(x.shape[0], device=x.device)[0],
    "rand_like": torch.rand_like,
    "randint_like": lambda x: torch.randint_like(x, 99),
    "randn": lambda x: torch.randn(x.shape, device=x.device),
    "randperm": lambda x: x[torch.randperm(x.shape[0], device=x.device)],
    "normal_": lambda x: torch.empty_like(x).normal_(),
    "bernoulli_": lambda x: torch.empty_like(x).bernoulli_(),
    "gumbel_softmax": lambda x: torch.nn.functional.gumbel_softmax(x, dim=0),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_trace_creates_tensors_anew(name: str) -> None:
    def function(x: Tensor) -> Tensor:
        return FUNCTIONS[name](x) + x

    results = {}
    for device in ("cpu", "lazy"):
        x = torch.linspace(-1, 1, 4, device=device)
        longer = torch.linspace(-1, 1, 6, device=device)
        script = torch.jit.trace(function, (x,), check_trace=False)
        graph = make_fx(function)(x)
        torch.manual_seed(3)
        calls = [script(x), script(x), script(longer), graph(x), graph(x)]
        results[device] = [y.cpu() for y in calls]
    assert_close(results["lazy"], results["cpu"])


def test_a_dispatch_mode_sees_the_tensors_that_the_program_gets() -> None:
    seen = []

    class Seeing(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            result = func(*args, **(kwargs or {}))
            # A reference would make torch return a copy, as it does on the CPU.
            seen.append(weakref.ref(result))
            return result

    x = torch.ones(3, device="lazy")
    with Seeing():
        for make in (torch.zeros_like, torch.rand_like, torch.empty_like):
            assert make(x) is seen[-1]()
        assert torch.zeros(2, device="lazy") is seen[-1]()
