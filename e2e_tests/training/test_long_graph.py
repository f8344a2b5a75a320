"""A very long graph is cut with a message; it doesn't overflow the stack and is computed
within five minutes."""

from __future__ import annotations

import threading
import time

import torch
import torch_ltc
from subprocesses import run_python


def test_chain_of_200000_ops() -> None:
    # Runs in a subprocess, because a failure would be a crash.
    program = """
        import logging, torch, torch_ltc
        x = torch.ones(4, device="lazy")
        y = x
        for _ in range(200_000):
            y = y + 1
        torch_ltc.mark_step()
        print("value", y[0].item(), "cuts", torch_ltc.metrics()["graph_cuts"])
    """
    started = time.monotonic()
    result = run_python(program, timeout=400)
    assert "value 200001.0" in result.stdout
    assert "cuts 0" not in result.stdout
    assert "max_trace_ops" in result.stderr, "the cut is reported"
    assert time.monotonic() - started < 300


def test_deep_chain_in_a_thread_with_a_small_stack() -> None:
    results = []

    def chain() -> None:
        y = torch.zeros(2, device="lazy")
        for _ in range(3000):
            y = y + 1
        results.append(y.sum().item())

    previous = threading.stack_size(256 << 10)
    try:
        thread = threading.Thread(target=chain)
        thread.start()
    finally:
        threading.stack_size(previous)
    thread.join()
    assert results == [6000.0]


def test_cut_keeps_results() -> None:
    with torch_ltc.config(max_trace_ops=100):
        before = torch_ltc.metrics()["graph_cuts"]
        y = torch.zeros(3, device="lazy")
        kept = []
        for step in range(450):
            y = y + 1
            if step % 90 == 0:
                kept.append(y)
        assert y.tolist() == [450.0] * 3
        assert [k[0].item() for k in kept] == [1.0, 91.0, 181.0, 271.0, 361.0]
        assert torch_ltc.metrics()["graph_cuts"] - before >= 4
