"""Counts and logs report what happened, with Python lines."""

from __future__ import annotations

import torch
import torch._lazy.metrics
import torch_ltc
from comparison import assert_close
from counting import counting
from subprocesses import run_python
from torch_ltc._backend import bindings


def _unsupported(x: torch.Tensor) -> torch.Tensor:
    return x.bincount()  # the result's size depends on values


def test_reset_sets_all_counters_and_timers_to_zero() -> None:
    (torch.ones(3, device="lazy") + 1).tolist()
    metrics = torch_ltc.metrics()
    assert metrics["traced_ops"] and metrics["timers"]["execute"]["count"]
    torch_ltc.reset_metrics()
    metrics = torch_ltc.metrics()
    assert not any(metrics[name] for name in metrics if isinstance(metrics[name], int))
    assert not any(timer["count"] for timer in metrics["timers"].values())


def test_asking_loads_neither_runtime_nor_compiler(own_cache: str) -> None:
    program = """
        import torch, torch_ltc
        kept = torch.ones(3, device="lazy") + 1
        cache = torch_ltc.metrics()["cache"]
        torch_ltc.metrics_report()
        print(cache["directory"], cache["writable"], cache["problem"] or "none")
        mapped = open("/proc/self/maps").read()
        print("libltc_runtime" in mapped, "libLLVM" in mapped, "libMLIR" in mapped)
        kept.tolist()
        print("libltc_runtime" in open("/proc/self/maps").read())
        print(torch_ltc.metrics()["cache"]["stores"] > 0)
    """
    result = run_python(program, TORCH_LTC_CACHE="1")
    assert result.stdout.splitlines() == [
        f"{own_cache} True none",
        "False False False",
        "True",
        "True",
    ]


def test_counts_of_a_step() -> None:
    x = torch.ones(7, 3, device="lazy")
    torch_ltc.mark_step()
    with counting() as counts:
        y = (x * 3 + 1).sum()
        torch_ltc.mark_step()
        z = (x * 3 + 1).sum()
        torch_ltc.mark_step(wait=True)
    assert counts.steps == 2
    assert counts.executions == 2
    assert counts.compilations + counts.program_disk_hits == 1
    assert counts.program_memory_hits == 1
    assert counts.traced_ops == 6
    assert y.item() == z.item() == 84


def test_fallback_log() -> None:
    x = torch.tensor([1, 2, 2], device="lazy")
    torch_ltc.reset_metrics()
    for _ in range(3):
        assert _unsupported(x).tolist() == [0, 1, 2]
    (row,) = torch_ltc.fallbacks()
    assert row["op"] == "aten::bincount"
    assert row["calls"] == 3
    assert row["seconds"] > 0
    assert row["bytes"] >= 3 * (24 + 24)
    assert row["reason"]
    assert "test_metrics.py" in row["location"]


def test_fallback_syncs_all_its_arguments_at_once() -> None:
    x = torch.arange(4, device="lazy").float()
    torch_ltc.mark_step(wait=True)
    with counting() as counts:
        result = torch.special.zeta(x + 2, x + 1)
    assert counts.executions == 1
    assert counts.fallback_calls == 1
    y = torch.arange(4).float()
    assert_close(result, torch.special.zeta(y + 2, y + 1))


def test_sync_log() -> None:
    torch_ltc.reset_metrics()
    x = torch.ones(3, device="lazy")
    for _ in range(2):
        (x + 1).sum().item()
    assert [row["calls"] for row in torch_ltc.syncs()] == [2]
    (row,) = torch_ltc.syncs()
    assert row["op"] == "aten::_local_scalar_dense"
    assert "test_metrics.py" in row["location"]
    assert row["ops"] >= 4


def test_reading_a_finished_value_is_no_sync() -> None:
    y = torch.ones(3, device="lazy") + 1
    torch_ltc.mark_step()
    with counting() as counts:
        assert y.tolist() == [2.0] * 3
    assert counts.implicit_syncs == 0


def test_compile_and_step_logs() -> None:
    torch_ltc.reset_metrics()
    y = (torch.ones(5, 9, device="lazy") @ torch.ones(9, 2, device="lazy")).tanh()
    torch_ltc.mark_step(wait=True)
    entry = torch_ltc.compile_log()[-1]
    assert entry["origin"] in ("compiled", "disk")
    assert entry["seconds"] > 0
    assert entry["ops"] >= 2 and entry["outputs"] == 1 and entry["commands"] >= 2
    assert "test_metrics.py" in entry["location"]
    assert entry["reason"]
    if entry["origin"] == "compiled":
        assert set(entry["stage_seconds"]) == {"torch", "linalg", "kernels", "llvm"}
        assert entry["kernels"] >= entry["kernels_compiled"] >= 0
    step = torch_ltc.step_log()[-1]
    assert step["program"] == entry["program"]
    assert step["trigger"] == "mark_step"
    assert step["execute_seconds"] >= 0
    assert y.shape == (5, 2)


def test_reason_of_a_recompilation() -> None:
    bindings().clear_program_cache()  # other tests of the process trace such slices, too
    x = torch.ones(6, device="lazy")
    torch_ltc.mark_step(wait=True)
    torch_ltc.reset_metrics()
    for start in (1, 2):
        kept = x[start:].sin()
        torch_ltc.mark_step()
    assert kept.shape == (4,)
    reasons = [entry["reason"] for entry in torch_ltc.compile_log()]
    # The log has three rows, because the second trace runs a bound executable of a program
    # that is compiled for all sizes.
    assert len(reasons) == 3
    assert "slice" in reasons[-1], reasons


def test_report_names_everything() -> None:
    torch_ltc.reset_metrics()
    x = torch.tensor([1, 2], device="lazy")
    _unsupported(x)
    (x + 1).sum().item()
    torch_ltc.mark_step(wait=True)
    report = torch_ltc.metrics_report()
    for word in (
        "bincount",
        "_local_scalar_dense",
        "compilations",
        "test_metrics",
    ):
        assert word in report, word
    assert "fallback_calls" in torch._lazy.metrics.metrics_report() or (
        "bincount" in torch._lazy.metrics.metrics_report()
    )


def test_memory_stats() -> None:
    stats = torch.lazy.memory_stats()
    for name in ("allocated_bytes", "peak_allocated_bytes", "arena_bytes"):
        assert stats[name] >= 0
    assert stats["peak_allocated_bytes"] >= stats["allocated_bytes"]


def test_programs_share_their_temporaries() -> None:
    def product(size: int) -> None:
        x = torch.ones(size, size, device="lazy")
        (x @ x @ x).cpu()

    product(512)
    of_the_largest = torch.lazy.memory_stats()["arena_bytes"]
    assert of_the_largest >= 512 * 512 * 4
    product(256)
    assert torch.lazy.memory_stats()["arena_bytes"] == of_the_largest
