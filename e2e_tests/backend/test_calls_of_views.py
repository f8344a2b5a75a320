"""A view op dispatches no other op; writes through views and op-by-op runs make no
unnecessary copies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
import torch
import torch_ltc
from torch.profiler import ProfilerActivity, profile

VIEWS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "view": lambda x: x.view(24),
    "expand": lambda x: x.expand(2, 4, 6),
    "permute": lambda x: x.permute(1, 0),
    "transpose": lambda x: x.transpose(0, 1),
    "t": lambda x: x.t(),
    "unsqueeze": lambda x: x.unsqueeze(1),
    "squeeze": lambda x: x.squeeze(0),
    "select": lambda x: x.select(0, 1),
    "slice": lambda x: x[1:3],
    "diagonal": lambda x: x.diagonal(),
}


def calls(function: Callable[[], object]) -> Counter[str]:
    function()  # isn't profiled, because the first call does additional work
    torch.lazy.synchronize()
    with profile(activities=[ProfilerActivity.CPU]) as recorded:
        function()
        torch.lazy.synchronize()
    return Counter(event.name for event in recorded.events())


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_dispatches_nothing_else(name: str) -> None:
    x = torch.ones(4, 6).to("lazy")
    names = calls(lambda: VIEWS[name](x))
    names = Counter({n: c for n, c in names.items() if n.startswith("aten::")})
    assert names == {f"aten::{name}": 1}


@pytest.mark.parametrize("name", VIEWS)
def test_writes_through_views(name: str) -> None:
    def written(device: str) -> list[torch.Tensor]:
        torch.manual_seed(0)
        x = torch.randn(4, 6).to(device)
        y = VIEWS[name](x)
        row = y[0]
        row.copy_(row * 2)
        if name != "expand":
            y.add_(1)
        x.mul_(3)
        return [x, y, row]

    for eager, lazy in zip(written("cpu"), written("lazy"), strict=True):
        assert torch.equal(eager, lazy.cpu())
        assert eager.stride() == lazy.stride()
        assert eager.storage_offset() == lazy.storage_offset()


def test_rows_are_written_in_place_op_by_op() -> None:
    def rows() -> torch.Tensor:
        x = torch.zeros(8, 5).to("lazy") + 1
        for i in range(8):
            x[i] = float(i)
        x[2:4] = x[:2] * 2
        return x

    with torch_ltc.config(tier="interpret"):
        assert calls(rows)["aten::clone"] == 0
        x = rows()
        torch.lazy.synchronize()
        expected = torch.arange(8.0).unsqueeze(1).repeat(1, 5)
        expected[2:4] = expected[:2] * 2
        assert torch.equal(x.cpu(), expected)


def test_memory_that_others_read_is_not_written_op_by_op() -> None:
    with torch_ltc.config(tier="interpret"):
        parameter = torch.zeros(3, 4).to("lazy")
        torch.lazy.synchronize()
        seen = parameter.view(2, 6)
        copy = seen.clone()
        # In an op-by-op run, `copy` shares the parameter's memory up to here.
        copy[0] = 1.0
        doubled = parameter * 2
        both = doubled.t().clone()
        doubled[1] = 5.0
        torch.lazy.synchronize()
        assert parameter.sum() == 0
        assert seen.sum() == 0
        assert copy.sum() == 6
        assert both.sum() == 0
        assert doubled.sum() == 20


def test_numbers_are_made_without_dispatch_op_by_op() -> None:
    x = torch.ones(4).to("lazy")
    with torch_ltc.config(tier="interpret"):
        names = calls(lambda: (x + 1, x * 2.5))
    assert names["aten::scalar_tensor"] == names["aten::to"] == 0


@pytest.mark.parametrize("name", ["view", "unbind"])
def test_a_view_of_written_memory_is_computed_once(name: str) -> None:
    x = torch.ones(4, 6).to("lazy")
    x.add_(1)
    before = torch_ltc.metrics()["traced_ops"]
    view = x.view(24) if name == "view" else x.unbind(0)[1]
    traced = torch_ltc.metrics()["traced_ops"] - before
    _ = view + 1
    assert torch_ltc.metrics()["traced_ops"] - before == traced + 1
