"""Finds formulas of sizes for the numbers of a program that is exported for all sizes, such
as the factor `1 / sqrt(length)`.

The program's traces at several sizes give the values of each number. A formula is one of a
few functions of an affine expression of a product or quotient of sizes; it must hold in all
traces.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import partial

#: Values of the symbols in one trace, by name.
Sizes = dict[str, int]

#: The functions that a formula may call.
_FUNCTIONS = {"sqrt": math.sqrt, "log": math.log, "exp": math.exp}
#: Forms of a formula, each with the function that returns the affine expression's value.
_FORMS: dict[str, Callable[[float], float]] = {
    "{}": lambda v: v,
    "1 / ({})": lambda v: 1 / v,
    "sqrt({})": lambda v: v * v if v > 0 else math.nan,
    "1 / sqrt({})": lambda v: 1 / (v * v) if v > 0 else math.nan,
    "-sqrt({})": lambda v: v * v if v < 0 else math.nan,
    "-1 / sqrt({})": lambda v: 1 / (v * v) if v < 0 else math.nan,
    "log({})": math.exp,
    "1 / log({})": lambda v: math.exp(1 / v),
    "exp({})": math.log,
}
_MOST_FACTORS = 4
#: Strides of convolutions, poolings and slices, by which sizes are divided.
_DIVISORS = range(2, 9)
_TOLERANCE = 1e-12


def evaluate(formula: str, sizes: Sizes) -> float:
    """Returns the value of a formula, which is in Python's syntax."""
    return eval(formula, {"__builtins__": {}, **_FUNCTIONS}, sizes)


def find_formula(numbers: Sequence[float], traces: Sequence[Sizes]) -> str:
    """Returns the shortest formula that has these values in the traces; "" if none is
    known."""
    return min(_formulas(numbers, traces), key=len, default="")


def _formulas(numbers: Sequence[float], traces: Sequence[Sizes]) -> Iterator[str]:
    terms = list(_terms(traces))
    for form, inverse in _FORMS.items():
        try:
            values = [inverse(number) for number in numbers]
        except (ArithmeticError, ValueError):
            continue
        if not all(map(math.isfinite, values)):
            continue
        for text, column in terms:
            for inner in _affine(values, text, column):
                formula = form.format(inner)
                if all(map(partial(holds, formula), numbers, traces)):
                    yield formula


def _terms(traces: Sequence[Sizes]) -> Iterator[tuple[str, list[float]]]:
    """Yields products, quotients and rounded quotients of sizes with their values."""
    names = sorted(traces[0])
    texts = [
        " * ".join(factors)
        for count in range(1, min(len(names), _MOST_FACTORS) + 1)
        for factors in itertools.combinations(names, count)
    ]
    texts += [f"{name} * {name}" for name in names]
    texts += [f"1 / {name}" for name in names]
    texts += [f"{a} / {b}" for a, b in itertools.permutations(names, 2)]
    for name, divisor in itertools.product(names, _DIVISORS):
        for summand in range(divisor):
            size = f"({name} + {summand})" if summand else name
            texts.append(f"({size} // {divisor})")
            others = [other for other in names if other != name]
            texts += [f"{other} * ({size} // {divisor})" for other in others]
    for text in texts:
        yield text, [evaluate(text, sizes) for sizes in traces]


def _affine(
    values: Sequence[float], text: str, column: Sequence[float]
) -> Iterator[str]:
    """Yields expressions `factor * term + summand` that hold in the first traces."""
    pairs = list(zip(column, values))
    first = pairs[0]
    other = next((pair for pair in pairs if pair[0] != first[0]), None)
    if other is None or first[1] == other[1]:
        return
    if first[0]:
        yield _product(first[1] / first[0], text)
    slope = (other[1] - first[1]) / (other[0] - first[0])
    for factor in dict.fromkeys((_simple(slope), slope)):
        summand = float(_simple(first[1] - float(factor) * first[0]))
        sign = "-" if summand < 0 else "+"
        yield f"{_product(float(factor), text)} {sign} {_text(abs(summand))}"


def _simple(value: float) -> Fraction | float:
    """Returns the fraction with a small denominator that is close to the value, if any."""
    near = Fraction(value).limit_denominator(1 << 10)
    return near if math.isclose(near, value, rel_tol=1e-9) else value


def _product(factor: float, text: str) -> str:
    near = _simple(factor)
    if not isinstance(near, Fraction):
        return f"{factor!r} * {text}"
    above, below = near.numerator, near.denominator
    result = {1: text, -1: f"-{text}"}.get(above, f"{above} * {text}")
    return result if below == 1 else f"{result} / {below}"


def _text(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)


def holds(formula: str, number: float, sizes: Sizes) -> bool:
    """Whether the formula has this value."""
    try:
        return math.isclose(evaluate(formula, sizes), number, rel_tol=_TOLERANCE)
    except (ArithmeticError, ValueError):
        return False
