"""torch._lazy, the interface that backends of LazyTensorCore share, works as documented."""

from __future__ import annotations

import pytest
import torch
import torch._lazy.config
import torch._lazy.ir_cache
import torch._lazy.metrics
import torch._lazy.ts_backend
import torch_ltc
from comparison import assert_close
from torch import fx, nn
from torch._lazy import metrics
from torch._lazy.extract_compiled_graph import extract_compiled_graph

OPS = {
    "lazy::add": lambda x: x + x,
    "lazy::relu": lambda x: x.relu(),
    "lazy::mm": lambda x: x @ x,
    "lazy::native_layer_norm": lambda x: nn.functional.layer_norm(x, (3,)),
    "lazy::view_copy_symint": lambda x: x.view(9),
    "lazy::expand_copy_symint": lambda x: x[0].expand(4, 3),
    "aten::nonzero": lambda x: x.nonzero(),
}


@pytest.mark.parametrize("name", OPS)
def test_counters_name_the_ops(name: str) -> None:
    x = torch.ones(3, 3, device="lazy")
    torch_ltc.mark_step()
    metrics.reset()
    y = OPS[name](x)
    assert metrics.counter_value(name) == 1 and name in metrics.counter_names()
    assert name in metrics.metrics_report()
    metrics.reset()
    assert name not in metrics.counter_names()
    del y


def test_counters_of_programs_and_reused_nodes() -> None:
    x, y = (torch.randn(2, 7, device="lazy") for _ in range(2))
    total = torch.zeros(2, 7, device="lazy")
    torch._lazy.mark_step()
    metrics.reset()
    # After many traces that differed, only every eighth one is cached.
    for _ in range(20):
        total += x + y
        torch._lazy.mark_step()
    assert metrics.counter_value("IrNodeReused_torch::lazy::AddTensor") >= 8
    assert metrics.counter_value("CachedCompile") >= 4
    torch._lazy.ir_cache.reset()


def test_configuration() -> None:
    config = torch._lazy.config
    assert config.get_force_fallback() == ""
    try:
        config.set_force_fallback("aten::sub")
        config.set_reuse_ir(False)
        assert config.get_force_fallback() == torch_ltc.config.force_fallback
        assert torch_ltc.config.reuse_traces is False
        metrics.reset()
        x = torch.ones(2, device="lazy")
        assert (x - x * 3).tolist() == [-2.0, -2.0]
        assert metrics.counter_value("aten::sub.Tensor") == 1
    finally:
        config.set_force_fallback("")
        config.set_reuse_ir(True)


def test_the_backend_stays() -> None:
    torch._lazy.ts_backend.init()
    assert (torch.ones(2, device="lazy") + 1).tolist() == [2.0, 2.0]


class Scale(nn.Module):
    def __init__(self, factor: float = 2.0) -> None:
        super().__init__()
        self.factor = factor

    def forward(self, a):
        return a * self.factor


class Several(nn.Module):
    def forward(self, a, b):
        c = a + b
        return a - b, c, a + 1, c


class InPlace(nn.Module):
    def forward(self, a, b):
        a.sub_(b)
        return b - 1, b + 1


class WithParameters(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 2)

    def forward(self, a):
        return self.layer(a).tanh()


class Addcmul(nn.Module):
    def forward(self, a, b, c):
        return torch.addcmul(a, b, c, value=5)


MODULES = {Scale: 1, Several: 2, InPlace: 2, WithParameters: 1, Addcmul: 3}


def draw(count: int) -> list[torch.Tensor]:
    return [torch.randn(2, 3) for _ in range(count)]


@pytest.mark.parametrize("kind", MODULES)
def test_compiled_graphs_run_on_other_inputs(kind: type) -> None:
    module = kind()
    compiled = extract_compiled_graph(fx.symbolic_trace(module), draw(MODULES[kind]))
    for _ in range(4):
        arguments = draw(MODULES[kind])
        others = [argument.clone() for argument in arguments]
        expected, actual = module(*arguments), compiled(*others)
        expected = expected if isinstance(expected, tuple) else (expected,)
        assert_close(list(actual), list(expected))
        assert_close(others, arguments)


def test_graphs_that_differ_in_a_number_are_two() -> None:
    compiled = [
        extract_compiled_graph(fx.symbolic_trace(Scale(factor)), draw(1))
        for factor in (2.0, 3.0)
    ]
    x = torch.ones(2, 3)
    assert [function(x)[0][0, 0].item() for function in compiled] == [2.0, 3.0]


def test_fallbacks_forbid_a_compiled_graph() -> None:
    with (
        torch_ltc.config(force_fallback="aten::sub"),
        pytest.raises(RuntimeError, match=r"fallback.*aten::sub"),
    ):
        extract_compiled_graph(fx.symbolic_trace(Several()), draw(2))
    with pytest.raises(RuntimeError, match="get_graph_hash"):
        torch._lazy.computation.run_cached_graph(b"unknown", [])
