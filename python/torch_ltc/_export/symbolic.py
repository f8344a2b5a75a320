"""Makes the program for all sizes that an export with `dynamic_shapes` returns."""

from __future__ import annotations

import contextlib
import re
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from torch_ltc._backend import bindings
from torch_ltc._export.dynamic_shapes import UNBOUNDED, Place, Variable
from torch_ltc._export.size_formulas import find_formula, holds
from torch_ltc.program import SymbolicTrace


class TooLarge(Exception):
    """Raised by a trace at sizes whose tensors would need too much memory."""


#: Sizes by argument and dim, with which a function is traced again.
Sizes = dict[tuple[str, int], int]
#: The number of traces besides the example's: two of these and the example's determine the
#: expressions of the sizes, the others check them.
OTHER_TRACES = 4
#: A program that is valid at this size is considered valid for all larger sizes.
LARGE = 1 << 20

_OURS = (str(Path(torch.__file__).parent), str(Path(__file__).parents[1]))


@dataclass
class Symbol:
    """A size that varies: its name in the program, and its range."""

    name: str
    least: int
    most: int
    variable: Variable

    def row(self) -> dict[str, Any]:
        return {"name": self.name, "min": self.least, "max": self.most}


class SymbolicSizes:
    """Expresses the sizes of an exported program's inputs by symbols."""

    def __init__(
        self,
        symbols: list[Symbol],
        places: list[tuple[int, int, str]],
        trace: SymbolicTrace,
        labels: list[str],
        formulas: list[str],
    ) -> None:
        """`places`: input, dim and expression of each varying size; `labels`: the inputs'
        names; `formulas`: for each number argument, its formula of the symbols, or "" if it
        doesn't vary."""
        self.symbols = symbols
        self.formulas = formulas
        self.places = places
        self.trace = trace
        self._labels = labels

    def values(self, tensors: Sequence[torch.Tensor]) -> list[tuple[str, int]]:
        """Returns the symbols' values for these inputs. Raises ValueError if the program
        isn't valid for one of their sizes."""
        found: dict[str, int] = {}
        for symbol in self.symbols:
            place = next(
                p for p in symbol.variable.places if p.argument in self._labels
            )
            tensor = tensors[self._labels.index(place.argument)]
            value = found[symbol.name] = place.root(tensor.shape[place.dim])
            if not symbol.least <= value <= symbol.most:
                most = "" if symbol.most == UNBOUNDED else f" to {symbol.most}"
                raise ValueError(
                    f"{symbol.variable.places[0].start_of_sentence()} is {value}, but "
                    f"{symbol.name} is from {symbol.least}{most}."
                )
            for place in symbol.variable.places:
                if place.argument in self._labels:
                    size = tensors[self._labels.index(place.argument)].shape[place.dim]
                    if size != place.size(value):
                        raise ValueError(
                            f"{place.start_of_sentence()} is {size}, but must be "
                            f"{place.size(value)}: {symbol.name} is {value}, "
                            f"{symbol.variable.places[0]}."
                        )
        for number, dim, text in self.places:
            expected = _evaluate(text, found)
            if tensors[number].shape[dim] != expected:
                raise ValueError(
                    f"Size {dim} of '{self._labels[number]}' is "
                    f"{tensors[number].shape[dim]}, but must be {text} = {expected}."
                )
        ordered = [found[symbol.name] for symbol in self.symbols]
        if problem := self.trace.symbolic.problem_at(ordered):
            raise ValueError(f"The program isn't valid for these sizes: {problem}")
        return list(found.items())


def _evaluate(text: str, values: dict[str, int]) -> int:
    """Returns the value of an expression in the syntax of `GeneralGraph`."""
    return int(
        eval(text.replace("/", "//"), {"__builtins__": {}, "floor": int}, values)
    )


def learn_numbers(variables: list[Variable], trace: Callable[[Sizes], Any]) -> None:
    """Traces the program at several sizes, after which the tracer makes the numbers that
    differ (for example, a bound of `clamp`) arguments of the program."""
    rows = [variable.others(1, seed) for seed, variable in enumerate(variables, 1)]
    if not rows or not all(rows):
        return
    for sizes in ({}, _sizes(variables, [row[0] for row in rows])):
        with contextlib.suppress(Exception):  # `generalize` raises it again
            trace(sizes)


def generalize(
    variables: list[Variable],
    trace: Callable[[Sizes], Any],
    base: Any,
    inputs: list[dict[str, Any]],
    stage: str,
) -> SymbolicSizes:
    """Makes the program for all sizes. `trace` traces the program at given sizes; `base`:
    the program at the example's sizes, whose inputs are described by `inputs`. Raises
    ValueError, with the input, its dim and the Python line, if a size can't vary as
    specified."""
    labels = [row["name"] for row in inputs]
    others = _traces(variables, trace, base)
    try:
        general = bindings().GeneralGraph([*others[:-1], base], len(variables))
    except RuntimeError as error:
        raise ValueError(
            f"The program has no form for all sizes: {_sentence(error)}"
        ) from error
    programs = [*others, base]
    _check_constants(inputs, programs)
    bound = [general.bind(program) for program in programs]
    for values, reason in bound:
        if values is None:
            raise ValueError(f"The program has no form for all sizes: {reason}.")
    symbols = _symbols(variables, general, labels)
    names = [symbol.name for symbol in symbols]
    formulas = _formulas(programs, [dict(zip(names, values)) for values, _ in bound])
    ranges = [(symbol.name, 2, UNBOUNDED) for symbol in symbols]
    try:
        wide = SymbolicTrace(general, stage, ranges=ranges)
    except RuntimeError as error:
        raise ValueError(_sentence(error)) from error
    _find_ranges(symbols, wide)
    _trace_bounds(symbols, general, formulas, trace)
    ranges = [(symbol.name, symbol.least, symbol.most) for symbol in symbols]
    narrow = SymbolicTrace(general, stage, ranges=ranges)
    places = [
        (number, dim, _renamed(text, symbols))
        for number, dim, text in general.parameter_sizes()
    ]
    return SymbolicSizes(symbols, places, narrow, labels, formulas)


def _renamed(text: str, symbols: list[Symbol]) -> str:
    return re.sub(r"\bs(\d+)\b", lambda match: symbols[int(match[1])].name, text)


def _check_constants(inputs: list[dict[str, Any]], programs: list[Any]) -> None:
    """Raises ValueError if a tensor that isn't an argument differs between traces."""
    for number, row in enumerate(inputs):
        if row["role"] != "constant":
            continue
        first, *others = (program.input_tensor(number) for program in programs)
        for other in others:
            if first.shape != other.shape or not first.equal(other):
                raise ValueError(
                    f"The values of '{row['name']}', a tensor that the function creates "
                    "on the CPU, depend on the sizes that vary: create it on the device "
                    "of the arguments (device=x.device), or pass it as an argument."
                )


def _formulas(programs: list[Any], traces: list[dict[str, int]]) -> list[str]:
    """Returns a formula of the symbols for each number argument; "" for a constant."""
    formulas = []
    for numbers in zip(*([v for _, v in program.scalars()] for program in programs)):
        if all(number == numbers[0] for number in numbers):
            formulas.append("")
            continue
        formulas.append(find_formula(numbers, traces))
        if not formulas[-1]:
            examples = ", ".join(f"{number:.6g}" for number in numbers[:3])
            raise ValueError(
                f"A number of the program ({examples} at some sizes) depends on the sizes "
                "that vary, but isn't a known function of them: compute it with tensors, "
                "or pass it as a tensor argument."
            )
    return formulas


# -- traces --------------------------------------------------------------------


def _sizes(variables: list[Variable], values: Sequence[int | None]) -> Sizes:
    return {
        (place.argument, place.dim): place.size(value)
        for variable, value in zip(variables, values)
        if value is not None
        for place in variable.places
    }


def _traces(
    variables: list[Variable], trace: Callable[[Sizes], Any], base: Any
) -> list[Any]:
    """Returns traces at sizes other than the example's. Removes from `variables` hinted
    sizes that turn out to be constant, and joins sizes that turn out to be equal."""
    for attempt in range(2):
        rows = [
            variable.others(OTHER_TRACES, seed)
            for seed, variable in enumerate(variables, 1)
        ]
        for variable, row in zip(list(variables), rows):
            if len(row) < OTHER_TRACES:
                _drop(variables, variable, "its range has one size only", None)
                return _traces(variables, trace, base)
        if not variables:
            raise ValueError(
                "No size of the program varies: export it without dynamic_shapes."
            )
        programs = []
        try:
            for values in zip(*rows):
                programs.append(trace(_sizes(variables, values)))
        except Exception:
            if attempt:
                raise
        skeleton = bindings().skeleton
        if len(programs) == OTHER_TRACES and all(
            skeleton(program) == skeleton(base) for program in programs
        ):
            return programs
        if attempt == 0:
            _settle(variables, trace, base)
    raise ValueError(
        "The program has no form for all sizes: it has different ops when several sizes "
        "vary together."
    )


def _settle(
    variables: list[Variable], trace: Callable[[Sizes], Any], base: Any
) -> None:
    """Finds the sizes that vary independently of others: joins sizes that must be equal,
    and drops sizes that can't vary."""

    def problem(group: list[Variable]) -> Exception | str | None:
        value = group[0].others(1, 1)[0]
        try:
            program = trace(_sizes(group, [value] * len(group)))
        except Exception as error:
            return error
        same = bindings().skeleton(program) == bindings().skeleton(base)
        return None if same else "the ops of the program depend on the sizes"

    for variable in list(variables):
        if variable not in variables or (reason := problem([variable])) is None:
            continue
        equal = [v for v in variables if v is not variable and v.base == variable.base]
        partner = next((v for v in equal if problem([variable, v]) is None), None)
        if partner is None and len(equal) > 1 and problem([variable, *equal]) is None:
            partner = equal[0]
        if partner is None:
            _drop(variables, variable, reason, trace)
        elif partner.name and variable.name:
            raise ValueError(
                f"{variable.places[0].start_of_sentence()} ({variable.name}) must equal "
                f"{partner.places[0]} ({partner.name}), but dynamic_shapes gives them "
                f"different Dims: {_reason(reason)}."
            )
        else:
            kept, joined = (variable, partner) if variable.name else (partner, variable)
            kept.places += joined.places
            kept.least = max(kept.least or 0, joined.least or 0) or None
            kept.most = min(kept.most, joined.most)
            variables.remove(joined)


def _drop(
    variables: list[Variable], variable: Variable, reason: Any, trace: Any
) -> None:
    """Removes a size that can't vary: it is constant in the program. Raises ValueError if
    the user requires the size to vary."""
    if variable.is_required:
        name = variable.name or "Dim.DYNAMIC"
        raise ValueError(
            f"{variable.places[0].start_of_sentence()} can't vary as dynamic_shapes says "
            f"({name}): {_reason(reason)}."
        )
    variables.remove(variable)


def _reason(problem: Exception | str) -> str:
    """Returns the problem as one sentence, with the Python line of the user's code."""
    if isinstance(problem, str):
        return problem
    frames = traceback.extract_tb(problem.__traceback__)
    own = [f for f in frames if not f.filename.startswith(_OURS)]
    where = f" at {Path(own[-1].filename).name}:{own[-1].lineno}" if own else ""
    return f"{_sentence(problem).rstrip('.')}{where}"


def _sentence(error: BaseException) -> str:
    return str(error).split("\n")[0]


# -- symbols -------------------------------------------------------------------


def _symbols(
    variables: list[Variable], general: Any, labels: list[str]
) -> list[Symbol]:
    """Returns the program's symbols, in the order of the general graph's symbols. Raises
    ValueError if a variable isn't a symbol or a symbol isn't a variable."""
    texts = {
        (labels[number], dim): text for number, dim, text in general.parameter_sizes()
    }
    found: dict[int, Symbol] = {}
    for variable in variables:
        used = [
            (place, texts[place.argument, place.dim])
            for place in variable.places
            if (place.argument, place.dim) in texts
        ]
        if not used:  # the argument isn't used
            continue
        number = _number_of(variable, used)
        if number is None or number in found:
            place, text = used[0]
            other = text if number is None else str(found[number].variable.places[0])
            raise ValueError(
                f"{place.start_of_sentence()} can't vary by itself: it is {other} in "
                "the program."
            )
        name = variable.name or f"s{number}"
        found[number] = Symbol(name, variable.least or 2, variable.most, variable)
    for number, text in enumerate(general.symbols()):
        if number not in found:
            raise ValueError(
                "A number depends on the sizes that vary, but isn't a known function of "
                f"them: {text.split(' = ', 1)[1].rsplit(', ', 1)[0]}."
            )
    return [found[number] for number in range(len(found))]


def _number_of(variable: Variable, used: list[tuple[Place, str]]) -> int | None:
    """Returns the number of the symbol that the variable is. `used`: the variable's sizes
    in the program, as expressions of symbols. If the program has a symbol for a derived
    size such as `2*batch`, but not for `batch`, the variable becomes that size."""
    for place, text in used:
        names = set(re.findall(r"s\d+", text))
        if len(names) != 1:
            continue
        name = names.pop()
        values = range(variable.base, variable.base + 9)
        if all(_evaluate(text, {name: value}) == place.size(value) for value in values):
            return int(name[1:])
    for place, text in used:
        if re.fullmatch(r"s\d+", text):
            variable.become(place)
            return int(text[1:])
    return None


def _trace_bounds(
    symbols: list[Symbol],
    general: Any,
    formulas: list[str],
    trace: Callable[[Sizes], Any],
) -> None:
    """Traces the program at the bounds of each symbol: Python code may depend on a size in
    a way that isn't visible at others (`if x.shape[0] > 100`). Raises ValueError for a
    bound that the user gave, and narrows other bounds."""
    base = [symbol.variable.base for symbol in symbols]
    variables = [symbol.variable for symbol in symbols]
    names = [symbol.name for symbol in symbols]

    def problem(number: int, value: int) -> str:
        wanted = [*base[:number], value, *base[number + 1 :]]
        try:
            program = trace(_sizes(variables, wanted))
        except TooLarge:
            return ""
        except Exception as error:
            return _reason(error)
        values, reason = general.bind(program)
        if values is None:
            return str(reason)
        sizes = dict(zip(names, values))
        numbers = [number for _, number in program.scalars()]
        if any(f and not holds(f, n, sizes) for f, n in zip(formulas, numbers)):
            return "a number of the program is another function of the sizes there"
        return ""

    for number, symbol in enumerate(symbols):
        variable = symbol.variable
        for bound, is_given in (
            (symbol.least, variable.least is not None),
            (symbol.most, variable.most != UNBOUNDED),
        ):
            if bound in (UNBOUNDED, base[number]) or not (
                reason := problem(number, bound)
            ):
                continue
            if is_given:
                raise _wrong_bound(symbol, bound, reason)
            good = _bisect(base[number], bound, lambda v, n=number: not problem(n, v))
            if bound == symbol.least:
                symbol.least = good
            else:
                symbol.most = good


def _wrong_bound(symbol: Symbol, bound: int, reason: str) -> ValueError:
    place = symbol.variable.places[0]
    return ValueError(
        f"{place.start_of_sentence()} can't be {bound}, which is in the range of "
        f"{symbol.name}: {reason.rstrip('.')}."
    )


def _bisect(good: int, bad: int, is_good: Callable[[int], bool]) -> int:
    """Returns the last good number on the way from `good` to `bad`."""
    while abs(good - bad) > 1:
        middle = (good + bad) // 2
        good, bad = (middle, bad) if is_good(middle) else (good, middle)
    return good


def _find_ranges(symbols: list[Symbol], trace: SymbolicTrace) -> None:
    """Checks the bounds that the user gave and finds the others. Raises ValueError if the
    program isn't valid at a given bound or at the example's sizes."""
    base = [symbol.variable.base for symbol in symbols]

    def problem(number: int, value: int) -> str:
        values = [*base[:number], value, *base[number + 1 :]]
        return trace.symbolic.problem_at(values).split("\n")[0]

    def bisect(number: int, good: int, bad: int) -> int:
        return _bisect(good, bad, lambda value: not problem(number, value))

    for number, symbol in enumerate(symbols):
        if reason := problem(number, base[number]):
            raise ValueError(
                f"The program isn't valid at the example's sizes: {reason}"
            )
        for bound in (symbol.variable.least, symbol.variable.most):
            if bound is None or bound == UNBOUNDED:
                continue
            if reason := problem(number, max(bound, 2)):
                raise _wrong_bound(symbol, bound, reason)
        if symbol.variable.least is None and problem(number, 2):
            symbol.least = bisect(number, base[number], 2)
        large = max(LARGE, 2 * base[number])
        if symbol.most == UNBOUNDED and problem(number, large):
            symbol.most = bisect(number, base[number], large)
