"""Ops that aren't in the op table run on the CPU and are added to the fallback log."""

from __future__ import annotations

import pytest
import torch
import torch_ltc
from comparison import assert_close


def fallback_rows() -> dict[str, dict]:
    return {row["op"]: row for row in torch_ltc.fallbacks()}


@pytest.fixture(autouse=True)
def empty_fallback_log() -> None:
    torch_ltc.reset_metrics()


CALLS = {
    "one result": lambda x: torch.special.zeta(x + 1, x),
    "several results": lambda x: torch.linalg.eigh(x @ x.t())[0],
    "size by value": lambda x: x.masked_select(x > 0),
    "positions": lambda x: x.nonzero(),
    "bool result": lambda x: torch.tensor(torch.equal(x, x + 1)),
    "unique": lambda x: torch.unique(x.round()),
    "list of tensors": lambda x: torch.block_diag(x, x),
    "in place": lambda x: x.clone().erfinv_(),
    "out": lambda x: torch.special.zeta(x + 1, x, out=torch.empty_like(x)),
    "mask index": lambda x: x[x > 0.5],
}


@pytest.mark.parametrize("name", CALLS)
def test_equals_eager(name: str) -> None:
    cpu = torch.rand(4, 4, generator=torch.Generator().manual_seed(1))
    expected = CALLS[name](cpu)
    got = CALLS[name](cpu.to("lazy") * 1.0)
    assert_close(got, expected)


#: Calls of ops without a row whose composite kernel only calls traced ops.
COMPOSED = {
    "foreach": lambda x: torch._foreach_norm([x, x + 1])[1],
    "foreach of a number": lambda x: torch._foreach_pow(2.0, [x, x])[0],
    "count_nonzero": lambda x: torch.count_nonzero(x),
    "unsafe index": lambda x: torch.ops.aten._unsafe_index(x, [x.long()[0]]),
    "empty_permuted": lambda x: torch.empty_permuted(
        (2, 3), (1, 0), device=x.device
    ).zero_(),
    "same size": lambda x: x + torch.ops.aten.is_same_size(x, x),
    "pinned": lambda x: x + x.is_pinned(),
}


@pytest.mark.parametrize("name", COMPOSED)
def test_composites_run_as_their_parts(name: str) -> None:
    cpu = torch.rand(4, 4, generator=torch.Generator().manual_seed(1))
    got = COMPOSED[name](cpu.to("lazy"))
    assert torch_ltc.fallbacks() == []
    assert_close(got, COMPOSED[name](cpu))


def test_cat_casts_to_out() -> None:
    x, out = torch.ones(2, 3, device="lazy"), torch.zeros(4, 3, device="lazy").double()
    torch.cat([x, x], out=out)
    assert torch_ltc.fallbacks() == []
    assert torch.equal(out.cpu(), torch.ones(4, 3, dtype=torch.float64))


def test_one_sync_for_all_arguments() -> None:
    a, b = torch.rand(3, device="lazy") + 1, torch.rand(3, device="lazy") + 2
    torch_ltc.reset_metrics()
    torch.special.zeta(a, b)
    assert torch_ltc.metrics()["executions"] == 1
    (row,) = torch_ltc.fallbacks()
    assert row["op"] == "aten::special_zeta" and row["calls"] == 1
    assert row["syncs"] == 1 and row["bytes"] == 3 * 4 * 3
    assert "test_fallback.py" in row["location"]
    assert row["reason"] == "not in the op table"


def test_reasons_that_a_table_row_would_not_change() -> None:
    x = torch.tensor([1, 0, 2]).to("lazy")
    x.bincount(), x.unique()
    reasons = {row["op"]: row["reason"] for row in torch_ltc.fallbacks()}
    assert len(reasons) == 2
    assert set(reasons.values()) == {"the result's size depends on values"}, reasons


def test_forced() -> None:
    x = torch.randn(5).to("lazy")
    with torch_ltc.config(force_fallback="aten::relu, aten::add.Tensor"):
        y = (x.relu() + x).exp()
        assert_close(y, (x.cpu().relu() + x.cpu()).exp())
    assert fallback_rows()["aten::relu"]["reason"] == "forced"
    assert fallback_rows()["aten::add.Tensor"]["calls"] == 1
    assert "aten::exp" not in fallback_rows()


def test_the_graph_goes_on_after_a_fallback() -> None:
    x = torch.rand(3, 3).to("lazy").requires_grad_()
    (torch.linalg.inv(x) * 2).sum().backward()
    cpu = x.detach().cpu().requires_grad_()
    (torch.linalg.inv(cpu) * 2).sum().backward()
    assert_close(x.grad, cpu.grad)


def test_results_do_not_share_the_arguments_memory() -> None:
    x = torch.ones(4, device="lazy")
    with torch_ltc.config(force_fallback="aten::view_copy,aten::expand_copy"):
        y = x.view(2, 2) + 0
    x.add_(1)
    torch_ltc.mark_step(wait=True)
    assert y.tolist() == [[1, 1], [1, 1]]
