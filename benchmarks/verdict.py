"""Compares the results of a run with the goals: ratios of times, geometric means."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from race import LOSS_TOLERANCE, Result

Table = dict[str, dict[str, Result]]  # by workload and contender


@dataclass
class Goal:
    about: str
    ours: str
    peers: list[str]
    each: float | None
    mean: float | None
    only: str = ""  # workload


_PEERS = ["eager", "eager fused", "TorchScript LTC", "compile", "compile step", "jax"]

GOALS = [
    Goal("plain loop / eager with fused optimizer", "lazy", ["eager fused"], 0.95, 0.7),
    Goal("plain loop / torch.compile of the model", "lazy", ["compile"], 1.0, 0.85),
    Goal("captured step / best peer", "lazy captured", _PEERS, 1.1, 0.9),
    Goal("captured step / JAX", "lazy captured", ["jax"], 1.2, 0.8),
    Goal(
        "captured step / eager, small perceptron", "lazy captured", ["eager"], 0.16,
        None, "perceptron 3x64",
    ),
]  # fmt: skip


def ratios(
    table: Table, ours: str, peers: list[str], seconds: Callable[[Result], float]
) -> dict[str, float]:
    """Returns, for each workload that both ran, the time of `ours` divided by the time of
    the fastest of `peers`."""
    found = {}
    for workload, results in table.items():
        mine = results.get(ours)
        others = [results[p] for p in peers if p in results and results[p].rounds]
        if mine and mine.rounds and others:
            found[workload] = seconds(mine) / min(seconds(r) for r in others)
    return found


def geometric_mean(values: list[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values))


def judge(table: Table, seconds: Callable[[Result], float]) -> list[str]:
    """Returns a line for each goal that the results in `table` can decide."""
    lines = []
    for goal in GOALS:
        found = ratios(table, goal.ours, goal.peers, seconds)
        if goal.only:
            found = {k: v for k, v in found.items() if k == goal.only}
        if not found:
            continue
        parts, met = [], True
        if goal.each is not None:
            worst = max(found, key=found.get)
            parts.append(f"worst {found[worst]:.2f} ({worst}; goal {goal.each:.2f})")
            met &= found[worst] <= goal.each
        if goal.mean is not None:
            mean = geometric_mean(list(found.values()))
            parts.append(f"mean of {len(found)}: {mean:.2f} (goal {goal.mean:.2f})")
            met &= mean <= goal.mean
        lines.append(f"{'met ' if met else 'MISS'} {goal.about}: {', '.join(parts)}")
    return lines


def wrong_losses(table: Table) -> list[str]:
    """Names the workloads and contenders whose losses differ from eager's."""
    return [
        f"{workload}: {result.contender} ({result.loss_difference:.1e})"
        for workload, results in table.items()
        for result in results.values()
        if result.losses and not result.loss_difference <= LOSS_TOLERANCE
    ]
