"""Handles what changes from one run of an exported step to the next: hyperparameters, step
counts and random numbers.

The manifest describes each number argument of a program as a constant or as a formula of
hyperparameters ("1 - lr * weight_decay"). Step counts are tensors with role "state", like
the rest of an optimizer's state. Random numbers are inputs, described by the distribution
from which they are drawn.
"""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Iterator
from typing import Any

import torch

from torch_ltc._backend import bindings
from torch_ltc._capture.numbers import FORMULAS, formulas_of, make_formula
from torch_ltc._diagnostics.messages import logger
from torch_ltc._export import size_formulas

Row = dict[str, Any]


@contextlib.contextmanager
def counting_on_the_device(optimizer: torch.optim.Optimizer | None) -> Iterator[None]:
    """Keeps step counts on device lazy (with PyTorch's option `capturable`) during a `with`
    block, so that the traced step reads and writes them."""
    changed: list[dict[str, Any]] = []
    counts: list[tuple[dict[str, Any], torch.Tensor, torch.Tensor, int]] = []
    for group in optimizer.param_groups if optimizer else ():
        if _can_count_on_the_device(optimizer, group):
            group["capturable"] = True
            changed.append(group)
            for state in _states(optimizer, group):
                count = state["step"]
                state["step"] = count.to("lazy")
                key = bindings().data_key(state["step"])
                counts.append((state, count, state["step"], key))
    try:
        yield
    finally:
        for group in changed:
            group["capturable"] = False
        for state, count, traced, key in counts:
            # The traced count isn't computed yet, but a changed key shows that the step
            # wrote it.
            count += float(bindings().data_key(traced) != key)
            state["step"] = count


def _can_count_on_the_device(optimizer: Any, group: dict[str, Any]) -> bool:
    if group.get("capturable") is not False or group.get("fused"):
        return False
    on_cpu = {
        key
        for state in _states(optimizer, group)
        for key, value in state.items()
        if isinstance(value, torch.Tensor) and value.device.type == "cpu"
    }
    if on_cpu - {"step"}:
        logger.warning(
            "torch_ltc.export_step: %s stores %s on the CPU, so numbers of the program that depend on them are constants of one step (role constant).",
            type(optimizer).__name__,
            ", ".join(sorted(on_cpu)),
        )
    return on_cpu == {"step"}


def _states(optimizer: Any, group: dict[str, Any]) -> list[dict[str, Any]]:
    states = [optimizer.state.get(p, {}) for p in group["params"]]
    return [s for s in states if isinstance(s.get("step"), torch.Tensor)]


class Hyperparameters:
    """An optimizer's hyperparameters. A `with` block changes each by some units in the last
    place, so that a number of the program that follows from hyperparameters can be
    distinguished from a constant with the same value."""

    def __init__(self, optimizer: torch.optim.Optimizer | None) -> None:
        self._groups = optimizer.param_groups if optimizer else []
        self._optimizer = optimizer
        self.is_known = optimizer is not None
        self._original = [dict(group) for group in self._groups]
        self._marked: list[dict[str, float]] = []
        #: Each group's step count in the traced step; 0 if the count is a tensor of the
        #: program.
        self._steps = [self._step(group) for group in self._groups]
        #: The hyperparameters that formulas read, by name.
        self.values: dict[str, float] = {}

    def __enter__(self) -> Hyperparameters:
        count = 0
        for group in self._groups:
            numbers: dict[str, float] = {}
            for key, value in list(group.items()):
                if type(value) is float and value:
                    count += 1
                    group[key] = numbers[key] = _next(value, count)
                elif key == "betas" and all(type(beta) is float for beta in value):
                    marked = []
                    for place, beta in enumerate(value, 1):
                        count += 1
                        marked.append(_next(beta, count))
                        numbers[f"beta{place}"] = marked[-1]
                    group[key] = tuple(marked)
            self._marked.append(numbers)
        return self

    def __exit__(self, *error: Any) -> None:
        for group, original in zip(self._groups, self._original):
            group.update({k: v for k, v in original.items() if k in group})

    def explain(self, value: float) -> str:
        """Returns the formula of a number argument; "" for a constant."""
        for place, marked in enumerate(self._marked):
            step = self._steps[place]
            for text, formula in {**formulas_of(marked), **FORMULAS}.items():
                if step == 0 and "step" in text:
                    continue
                with contextlib.suppress(KeyError, ZeroDivisionError, OverflowError):
                    if value and formula(marked, step) == value:
                        return self._named(text, place)
        return ""

    def _step(self, group: dict[str, Any]) -> float:
        counts = [state["step"] for state in _states(self._optimizer, group)]
        if not counts or counts[0].device.type != "cpu":
            return 0.0
        return counts[0].item() + 1

    def _named(self, text: str, place: int) -> str:
        suffix = f"_{place}" if place else ""

        def rename(match: re.Match[str]) -> str:
            name = match[0] if match[0] == "step" else match[0] + suffix
            self.values[name] = self._value(match[0], place)
            return name

        return re.sub(r"[A-Za-z_]\w*", rename, text)

    def _value(self, name: str, place: int) -> float:
        if name == "step":
            return self._steps[place]
        if name in ("beta1", "beta2"):
            return self._original[place]["betas"][int(name[-1]) - 1]
        return self._original[place][name]


def _next(value: float, count: int) -> float:
    for _ in range(count):
        value = math.nextafter(value, math.inf)
    return value


def evaluate(
    rows: list[Row],
    known: dict[str, float],
    given: dict[str, float],
    sizes: dict[str, int],
) -> list:
    """Returns the program's number arguments. `known`: the hyperparameters' values in the
    trace; `given`: new values for some of them; `sizes`: the values of the program's
    symbols. Raises ValueError for an unknown hyperparameter."""
    unknown = sorted(given.keys() - known.keys())
    if unknown:
        names = ", ".join(sorted(known)) or "none"
        raise ValueError(
            f"The exported program has no hyperparameter '{unknown[0]}'; it has: "
            f"{names}."
        )
    values = {**known, **given}
    step = values.get("step", 0.0)
    return [_number(row, values, step, sizes) for row in rows]


def _number(
    row: Row, hyperparameters: dict[str, float], step: float, sizes: dict[str, int]
) -> float:
    formula = row.get("formula")
    if not formula:
        return row["value"]
    if row["role"] == "size":
        value = size_formulas.evaluate(formula, sizes)
        return round(value) if row["kind"] == "int" else float(value)
    return make_formula(formula)(hyperparameters, step)


# -- random numbers ------------------------------------------------------------

_DRAWS = {
    "bernoulli": lambda t, p=0.5: t.bernoulli_(p),
    "rand": lambda t: t.uniform_(),
    "uniform": lambda t, low=0.0, high=1.0: t.uniform_(low, high),
    "randn": lambda t: t.normal_(),
    "normal": lambda t, mean=0.0, deviation=1.0: t.normal_(mean, deviation),
    "randint": lambda t, *limits: t.random_(*(limits if limits[1:] else (0, *limits))),
    "random": lambda t, *limits: t.random_(*limits),
    "exponential": lambda t, rate=1.0: t.exponential_(rate),
}


def draw(row: Row) -> torch.Tensor:
    """Returns new random numbers from PyTorch's generator, for an input with role
    "random". Raises ValueError for a distribution that isn't in `_DRAWS`."""
    name, _, arguments = row["distribution"].rstrip(")").partition("(")
    known = _DRAWS.get(name)
    if known is None:
        raise ValueError(
            f"Input '{row['name']}' is drawn by {row['distribution']}, which "
            "torch_ltc.ExportedProgram.next can't repeat: pass the numbers yourself."
        )
    tensor = torch.empty(row["shape"], dtype=getattr(torch, row["dtype"]))
    numbers = [
        float(a) if "." in a or "e" in a else int(a) for a in arguments.split(", ") if a
    ]
    return known(tensor, *numbers)
