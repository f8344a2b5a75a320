"""Counts, times and logs of events, as data and as a text report."""

from __future__ import annotations

from typing import Any

from torch_ltc._backend import bindings


def metrics() -> dict[str, Any]:
    """Returns all counters by name (`steps`, `compilations`, `fallback_calls`,
    `implicit_syncs`, ...), and the groups `timers`, `cache` and `memory`. Times are in
    seconds, sizes in bytes."""
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
    """Returns the fallback log: a row (op, location, calls, seconds, bytes, syncs, reason)
    for each op and Python line that ran eagerly on the CPU, most expensive first."""
    return sorted(
        bindings().fallback_log(), key=lambda row: row["seconds"], reverse=True
    )


def syncs() -> list[dict[str, Any]]:
    """Returns the implicit syncs: a row (op, location, calls, seconds, ops) for each op and
    Python line that cut the graph before the end of a step, most expensive first. `ops`:
    the number of ops that were pending."""
    return sorted(bindings().sync_log(), key=lambda row: row["seconds"], reverse=True)


def compile_log() -> list[dict[str, Any]]:
    """Returns a row for each of the last 1024 programs that were interpreted, loaded, bound,
    compiled or rejected, oldest first: program (hash), step, origin ("compiled", "disk",
    "bound" to sizes, "interpreted", or "rejected": no program for all sizes), reason,
    location, seconds, expected_seconds, stage_seconds, ops, kernels, ...,
    dump_directory."""
    return bindings().compile_log()


def step_log() -> list[dict[str, Any]]:
    """Returns a row for each of the last 1024 executions, oldest first: step, program,
    origin, trigger, ops, schedule_seconds, execute_seconds, donated, time, live_tensors,
    allocated_bytes."""
    return bindings().step_log()


def metrics_report() -> str:
    """Returns the metrics, the compile log, the fallbacks and the implicit syncs as text
    tables."""
    from torch_ltc._diagnostics.report import metrics_tables

    return metrics_tables(metrics(), compile_log(), fallbacks(), syncs())
