"""The host memory of lazy tensors is freed, reused and counted."""

from __future__ import annotations

import gc

import torch
import torch_ltc
from comparison import assert_close


def allocated() -> int:
    torch_ltc.wait_device_ops()
    gc.collect()
    return torch_ltc.metrics()["memory"]["allocated_bytes"]


def test_freed_with_the_tensor() -> None:
    before = allocated()
    x = torch.ones(1 << 18).to("lazy")
    assert allocated() - before >= 1 << 20
    del x
    assert allocated() == before


def test_results_of_a_loop_are_reused() -> None:
    x = torch.ones(1 << 16).to("lazy")
    levels = []
    for _ in range(300):
        x = x * 1.0001
        torch_ltc.mark_step()
        levels.append(None)
        if len(levels) % 100 == 0:
            levels[-1] = allocated()
    kept = [level for level in levels if level is not None]
    assert kept[0] == kept[-1]


def test_graphs_are_freed_without_recursion() -> None:
    x = torch.ones(4, device="lazy")
    with torch_ltc.config(max_trace_ops=0):
        y = x
        for _ in range(60_000):
            y = y + x
        live = torch_ltc.metrics()["memory"]["live_tensors"]
        del y
        assert torch_ltc.metrics()["memory"]["live_tensors"] < live


def test_uploads_and_results_of_any_size() -> None:
    for size in (0, 1, 3, 17, 4096, 100_003):
        x = torch.arange(float(size))
        assert_close((x.to("lazy") + 1).cpu(), x + 1)
