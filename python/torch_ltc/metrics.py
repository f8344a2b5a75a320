"""Counts, times and logs of events; as data, and as a report in text."""

from __future__ import annotations

from typing import Any

from torch_ltc._backend import bindings


def metrics() -> dict[str, Any]:
    """All counters by name (`steps`, `compilations`, `fallback_calls`,
    `implicit_syncs`, ...), and the groups `timers`, `cache` and `memory`.
    Times are seconds, sizes bytes."""
    backend = bindings()
    return {
        **backend.counters(),
        "timers": backend.timers(),
        "cache": backend.cache_info(),
        "memory": backend.memory_stats(),
    }


def reset_metrics() -> None:
    """Resets counters, timers and logs; caches are unchanged."""
    bindings().reset_metrics()


def fallbacks() -> list[dict[str, Any]]:
    """Ops that ran eagerly on the CPU, most expensive first: op, location (Python
    line), calls, seconds, bytes, reason."""
    return sorted(
        bindings().fallback_log(), key=lambda row: row["seconds"], reverse=True
    )


def syncs() -> list[dict[str, Any]]:
    """Ops that cut the graph before the end of a step, most expensive first: op,
    location, calls, seconds, ops (cut off)."""
    return sorted(bindings().sync_log(), key=lambda row: row["seconds"], reverse=True)


def compile_log() -> list[dict[str, Any]]:
    """Misses of the in-memory program cache, oldest first: program (hash), step, origin
    ("compiled", "disk", "bound" to sizes, "interpreted", or "refused": no program for all
    sizes), reason, location, seconds, expected_seconds, stage_seconds,
    ops, kernels, ..., dump_directory."""
    return bindings().compile_log()


def step_log() -> list[dict[str, Any]]:
    """The last executions, oldest first: step, program, origin, trigger, ops,
    schedule_seconds, execute_seconds, donated."""
    return bindings().step_log()


def metrics_report() -> str:
    """All data of this module as tables in text."""
    from torch_ltc._diagnostics.report import metrics_tables

    return metrics_tables(metrics(), compile_log(), fallbacks(), syncs())
