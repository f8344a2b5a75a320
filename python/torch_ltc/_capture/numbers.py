"""Explains a step's changing numbers by formulas of optimizers.

A program's dynamic scalars are numbers that Python computed, such as learning rates and
bias corrections. A formula remains a candidate for a scalar while its value exactly equals
the traced value in every trace. A scalar is explained as long as its candidates agree.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

Hyperparameters = dict[str, float]
# Numbers that follow from the sizes of the arguments, by name (sizes.py).
Sizes = dict[str, float]
# Groups of candidates that aren't formulas of a parameter group.
_CONSTANT, _SIZE = -1, -2
_NONE: Sizes = {}
# A function of the hyperparameters and the step number, which starts at 1.
Formula = Callable[[Hyperparameters, float], float]


@cache
def make_formula(text: str) -> Formula:
    """Returns the function for a text such as "lr / (1 - beta1 ** step)"."""

    def place(match: re.Match[str]) -> str:
        return "t" if match[0] == "step" else f"h[{match[0]!r}]"

    return eval(f"lambda h, t: {re.sub('[A-Za-z_][A-Za-z_0-9]*', place, text)}")


# These formulas have bitwise the same values as the numbers that torch 2.13's optimizers
# compute.
FORMULAS: dict[str, Formula] = {
    text: make_formula(text)
    for text in (
        "1 - lr * weight_decay",
        "lr * weight_decay",
        "1 - beta1 ** step",
        "1 - beta2 ** step",
        "lr / (1 - beta1 ** step)",
        "lr / (1 - beta1 ** step) * -1",
        "(1 - beta2 ** step) ** 0.5",
        "lr / (1 + (step - 1) * lr_decay)",
        "-lr / (1 + (step - 1) * lr_decay)",
    )
}


def formulas_of(names: Iterable[str]) -> dict[str, Formula]:
    """Returns the formulas that derive values from single hyperparameters."""
    texts = [
        text
        for name in names
        if name.isidentifier()
        for text in (name, f"-{name}", f"1 - {name}")
    ]
    return {text: make_formula(text) for text in texts}


class Numbers:
    """Explains the dynamic scalars of one program."""

    def __init__(self, program: Any, scalars: list[float], state: Any) -> None:
        self._program = program
        self.recorded = list(scalars)
        self._candidates: list[set[tuple[int, str]]] | None = None
        self._formulas: dict[str, Formula] = dict(FORMULAS)
        for h, _ in state.hyperparameters():
            self._formulas.update(formulas_of(h))
        self._sets: list[list[tuple[int, str]]] = []
        self._bindings: list[tuple[int, int]] = []

    def fits(self, program: Any, state: Any) -> bool:
        """Whether a trace has this program and no hyperparameter without a formula."""
        return program == self._program and set(self._formulas) >= {
            name for h, _ in state.hyperparameters() for name in h
        }

    def _matches(
        self, scalars: list[float], state: Any, sizes: Sizes
    ) -> list[set[tuple[int, str]]]:
        by_value: dict[float, set[tuple[int, str]]] = {}
        for name, value in sizes.items():
            by_value.setdefault(value, set()).add((_SIZE, name))
        for group, (h, t) in enumerate(state.hyperparameters()):
            for name, formula in self._formulas.items():
                try:
                    value = formula(h, t)
                except (KeyError, ZeroDivisionError, OverflowError, TypeError):
                    continue
                if isinstance(value, (int, float)):
                    by_value.setdefault(value, set()).add((group, name))
        return [set(by_value.get(scalar, ())) for scalar in scalars]

    def learn(self, scalars: list[float], state: Any, sizes: Sizes = _NONE) -> None:
        """Adds a trace. Raises ValueError if a scalar is neither constant nor given by the
        same formula or size in all traces."""
        found = self._matches(scalars, state, sizes)
        for number, scalar in enumerate(scalars):
            if scalar == self.recorded[number]:
                found[number].add((_CONSTANT, "constant"))
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
                    "of an optimizer or of sizes explains; numbers that change must be "
                    "tensors, or come from an optimizer's hyperparameters"
                )
        self._bind()

    def _bind(self) -> None:
        """Assigns an expression to each scalar that isn't constant; scalars with equal
        candidates share an expression."""
        places: dict[frozenset[tuple[int, str]], int] = {}
        self._bindings = []
        for number, known in enumerate(self._candidates):
            if known == {(_CONSTANT, "constant")}:
                continue
            key = frozenset(known)
            self._bindings.append((number, places.setdefault(key, len(places))))
        self._sets = [sorted(key) for key in places]
        first = {place: number for number, place in reversed(self._bindings)}
        self._constants = [self.recorded[first[i]] for i in range(len(places))]

    def size_names(self) -> set[str]:
        """Returns the names of the sizes that `values` needs."""
        return {n for key in self._sets for group, n in key if group == _SIZE}

    def bindings(self) -> list[tuple[int, int]]:
        """Returns (scalar, expression) for each scalar that isn't constant."""
        return self._bindings

    def constants(self) -> list[int]:
        bound = {number for number, _ in self._bindings}
        return [n for n in range(len(self.recorded)) if n not in bound]

    def values(self, state: Any, sizes: Sizes) -> list[float] | None:
        """Returns the values of the expressions for the next step; None if formulas that
        agreed so far yield different values."""
        groups = state.hyperparameters(ahead=1)
        formulas, result = self._formulas, []
        for candidates, constant in zip(self._sets, self._constants):
            value = None
            for group, name in candidates:
                if group == _CONSTANT:
                    other = constant
                elif group == _SIZE:
                    other = sizes[name]
                else:
                    h, t = groups[group]
                    other = formulas[name](h, t)
                if value is None:
                    value = other
                elif value != other:
                    return None
            result.append(value)
        return result
