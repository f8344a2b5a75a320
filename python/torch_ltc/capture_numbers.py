"""Where a step's changing numbers come from: formulas of optimizers.

A program's dynamic scalars are numbers that Python computed: learning rates,
bias corrections. For each of them all formulas are kept whose values were the
traced ones, exactly, in every trace; a number stays explained as long as the
remaining formulas agree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

Hyperparameters = dict[str, float]
# Of hyperparameters and the number of the step, from 1.
Formula = Callable[[Hyperparameters, float], float]


def _bias(h: Hyperparameters, t: float, beta: str) -> float:
    return 1 - h[beta] ** t


def _adagrad(h: Hyperparameters, t: float) -> float:
    return h["lr"] / (1 + (t - 1) * h["lr_decay"])


# As torch 2.13's optimizers compute them, to the last bit.
_FORMULAS: dict[str, Formula] = {
    "1-lr*weight_decay": lambda h, t: 1 - h["lr"] * h["weight_decay"],
    "lr*weight_decay": lambda h, t: h["lr"] * h["weight_decay"],
    "bias 1": lambda h, t: _bias(h, t, "beta1"),
    "bias 2": lambda h, t: _bias(h, t, "beta2"),
    "step size": lambda h, t: h["lr"] / _bias(h, t, "beta1"),
    "-step size": lambda h, t: (h["lr"] / _bias(h, t, "beta1")) * -1,
    "root of bias 2": lambda h, t: _bias(h, t, "beta2") ** 0.5,
    "decayed rate": _adagrad,
    "-decayed rate": lambda h, t: -h["lr"] / (1 + (t - 1) * h["lr_decay"]),
}


def _of_hyperparameter(name: str) -> Iterator[tuple[str, Formula]]:
    yield name, lambda h, t: h[name]
    yield f"-{name}", lambda h, t: -h[name]
    yield f"1-{name}", lambda h, t: 1 - h[name]


class _Expression:
    """Formulas of one group of one optimizer, or a constant."""

    def __init__(self, source: Any, names: frozenset[str]) -> None:
        self.source, self.names = source, names


class Numbers:
    """Explains the scalars of one program."""

    def __init__(self, program: Any, scalars: list[float], state: Any) -> None:
        self._program = program
        self.recorded = list(scalars)
        self._candidates: list[set[tuple[int, str]]] | None = None
        self._formulas: dict[str, Formula] = dict(_FORMULAS)
        for h, _ in state.hyperparameters():
            for name in h:
                self._formulas.update(_of_hyperparameter(name))
        self._sets: list[list[tuple[int, str]]] = []
        self._bindings: list[tuple[int, int]] = []

    def fits(self, program: Any, state: Any) -> bool:
        """Whether another trace is one of the same program and optimizers."""
        return program == self._program and set(self._formulas) >= {
            name for h, _ in state.hyperparameters() for name in h
        }

    def _matches(self, scalars: list[float], state: Any) -> list[set[tuple[int, str]]]:
        by_value: dict[float, set[tuple[int, str]]] = {}
        for group, (h, t) in enumerate(state.hyperparameters()):
            for name, formula in self._formulas.items():
                try:
                    value = formula(h, t)
                except (KeyError, ZeroDivisionError, OverflowError, TypeError):
                    continue
                if isinstance(value, (int, float)):
                    by_value.setdefault(value, set()).add((group, name))
        return [by_value.get(scalar, set()) for scalar in scalars]

    def learn(self, scalars: list[float], state: Any) -> None:
        """Another trace. Raises ValueError for numbers that nothing explains."""
        found = self._matches(scalars, state)
        for number, scalar in enumerate(scalars):
            if scalar == self.recorded[number]:
                found[number].add((-1, "constant"))
        if self._candidates is None:
            self._candidates = found
        else:
            for known, new in zip(self._candidates, found):
                known &= new
        for number, known in enumerate(self._candidates):
            if not known:
                raise ValueError(
                    f"a number of the step ({scalars[number]}, formerly "
                    f"{self.recorded[number]}) changes in a way that no formula "
                    "of an optimizer explains; numbers that change must be "
                    "tensors, or come from an optimizer's hyperparameters"
                )
        self._bind()

    def _bind(self) -> None:
        """Scalars with equal candidates share an expression."""
        places: dict[frozenset[tuple[int, str]], int] = {}
        self._bindings = []
        for number, known in enumerate(self._candidates):
            if known == {(-1, "constant")}:
                continue
            key = frozenset(known)
            self._bindings.append((number, places.setdefault(key, len(places))))
        self._sets = [sorted(key) for key in places]
        first = {place: number for number, place in reversed(self._bindings)}
        self._constants = [self.recorded[first[i]] for i in range(len(places))]

    def bindings(self) -> list[tuple[int, int]]:
        """(scalar, expression): which number each scalar is."""
        return self._bindings

    def constants(self) -> list[int]:
        bound = {number for number, _ in self._bindings}
        return [n for n in range(len(self.recorded)) if n not in bound]

    def values(self, state: Any) -> list[float] | None:
        """Of the expressions for the next step; None if formulas that were
        equal so far would give different numbers."""
        groups = state.hyperparameters(ahead=1)
        formulas, result = self._formulas, []
        for candidates, constant in zip(self._sets, self._constants):
            value = None
            for group, name in candidates:
                if group < 0:
                    other = constant
                else:
                    h, t = groups[group]
                    other = formulas[name](h, t)
                if value is None:
                    value = other
                elif value != other:
                    return None
            result.append(value)
        return result
