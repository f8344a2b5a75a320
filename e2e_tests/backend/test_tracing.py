"""Tests what the tracer records: nodes, scalars, dtypes, lists, dims."""

from __future__ import annotations

import pytest
import torch
import torch_ltc
from comparison import assert_close
from counting import counting
from torch_ltc import debug


def ir(tensor: torch.Tensor) -> str:
    return debug.dump(tensor, "ir")


def test_nothing_runs_before_it_is_needed() -> None:
    before = torch_ltc.metrics()["executions"]
    x = torch.ones(3, device="lazy")
    y = (x + 1).exp().sum()
    assert torch_ltc.metrics()["executions"] == before
    assert y.item() == pytest.approx(3 * torch.e**2)
    assert torch_ltc.metrics()["executions"] == before + 1


def test_changing_numbers_are_scalar_parameters() -> None:
    x = torch.randn(4).to("lazy")
    base = x.cpu()
    for step in range(4):
        with counting() as counts:
            y = x * (0.1 * step + 0.3) + (step + 2)
            assert_close(y, base * (0.1 * step + 0.3) + (step + 2))
        assert step == 0 or counts.program_memory_hits == counts.executions == 1
    assert "scalar0" in ir(x * 0.7) and "0.7" not in ir(x * 0.7)


def test_exponents_and_defaults_are_constants() -> None:
    x = torch.ones(4, device="lazy")
    assert "exponent=2" in ir(x**2)
    assert "alpha=1" in ir(x + x)
    assert "alpha=scalar0" in ir(torch.add(x, x, alpha=3))


@pytest.mark.parametrize(
    "dtype", [torch.int32, torch.int64, torch.float64, torch.bfloat16, torch.bool]
)
@pytest.mark.parametrize(
    "other", [2, 2.5, torch.tensor(3), torch.tensor(1.5, dtype=torch.float64)]
)
def test_promotion_with_numbers(dtype: torch.dtype, other) -> None:
    cpu = torch.tensor([0, 1, 1]).to(dtype)
    lazy = cpu.to("lazy")
    for op in (torch.add, torch.mul, torch.div, torch.gt):
        expected, got = op(cpu, other), op(lazy, other)
        assert got.dtype == expected.dtype, op
        assert_close(got, expected)


def test_negative_dims_are_the_same_program() -> None:
    x = torch.randn(2, 3, 4).to("lazy")
    assert ir(x.sum(-1)) == ir(x.sum(2))
    assert ir(x.unsqueeze(-1)) == ir(x.unsqueeze(3))
    assert ir(torch.stack([x, x], -1)) == ir(torch.stack([x, x], 3))


def test_lists_of_tensors() -> None:
    cpu = torch.arange(24.0).reshape(4, 6)
    lazy = cpu.to("lazy")
    for split in (
        lambda t: t.split(4, 1),
        lambda t: t.split([1, 3], 0),
        lambda t: t.chunk(3, 1),
        lambda t: t.unbind(0),
        lambda t: torch.tensor_split(t, 4, 1),
    ):
        expected, got = split(cpu), split(lazy)
        assert len(expected) == len(got)
        assert_close(got, expected)
    assert torch_ltc.fallbacks() == [] or "split" not in str(torch_ltc.fallbacks())


def test_optional_tensor_lists() -> None:
    cpu = torch.arange(24.0).reshape(2, 3, 4)
    rows, columns = torch.tensor([1, 0]), torch.tensor([2, 3])
    expected = cpu[:, rows, columns]
    got = cpu.to("lazy")[:, rows.to("lazy"), columns.to("lazy")]
    assert_close(got, expected)
    # Indices may be on the CPU, as for tensors on other devices.
    assert_close(cpu.to("lazy")[:, rows], cpu[:, rows])


def test_writing_through_a_mask_needs_no_values() -> None:
    cpu = torch.randn(3, 4)
    lazy = cpu.to("lazy")
    torch_ltc.reset_metrics()
    lazy[lazy > 0] = 5.0
    cpu[cpu > 0] = 5.0
    assert torch_ltc.metrics()["executions"] == 0
    assert_close(lazy, cpu)


def test_a_minus_b_is_not_b_minus_a() -> None:
    a, b = torch.randn(3).to("lazy"), torch.randn(3).to("lazy")
    first, second = a - b, a - b
    torch_ltc.mark_step(wait=True)
    third, fourth = a - b, b - a
    torch_ltc.mark_step(wait=True)
    assert_close(third, first)
    assert_close(fourth, -second.cpu())


def test_clone_and_detach_share_the_value() -> None:
    x = torch.randn(3).to("lazy")
    y = x.exp()
    copies = [y.clone(), y.detach(), y.alias() if hasattr(y, "alias") else y.clone()]
    assert all("exp" in ir(copy) and "clone" not in ir(copy) for copy in copies)
    copies[0].add_(1)
    assert_close(y, x.cpu().exp())
    assert_close(copies[0], x.cpu().exp() + 1)
