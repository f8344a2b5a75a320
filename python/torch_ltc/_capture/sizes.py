"""Decides for which sizes of its arguments a captured step's program for all sizes may be
replayed without tracing the function first.

The program is valid for other sizes if the function would execute the same ops. Python code
in the function, and PyTorch's own code, may depend on sizes in many ways. These rules find
the sizes for which nothing of that changes:

- The code's own computations with sizes are repeated for the new sizes (traced_sizes.py):
  comparisons must have the results that they had in the recorded calls, and numbers that
  were equal in all recorded calls must remain equal.
- Each size lies between those of recorded calls, so that a comparison with a constant in
  PyTorch's code, such as that of `x[:, :50]` with the length of x, has the recorded result.
  No recorded call with sizes in that range executed other ops.
- Two sizes are equal only if they were equal in a recorded call, and different only if they
  were different in one.
- The numbers in the program have had, in all recorded calls, the same value as a size of
  the program or a number that the code computes. If there are several such values, they
  must agree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch

from torch_ltc._capture.numbers import Numbers
from torch_ltc._capture.traced_sizes import Entry, SizeTrace

Sizes = tuple[int, ...]
# Two calls determine the formulas of the numbers, and the third one checks them.
_LEAST_SIZES = 3
_MOST_SIZES = 4096
# Calls from which origins of numbers are derived; each refers to a copy of the graph.
_MOST_CALLS = 8
_MOST_SKELETONS = 16


#: The numbers that PyTorch's gradients of means and variances compute from counts.
_FORMS: dict[str, Callable[[int], float]] = {
    "n": lambda n: n,
    "1/n": lambda n: 1 / n,
    "n-1": lambda n: n - 1,
    "2/(n-1)": lambda n: 2 / (n - 1),
}


def sizes_of(tensors: list[torch.Tensor]) -> Sizes:
    """Returns the sizes of all tensors, concatenated."""
    return tuple(size for tensor in tensors for size in tensor.shape)


class Changed(Exception):
    """Raised with the reason why sizes can't be replayed."""


class _Call:
    """What is remembered of a recorded call. It has the methods of `State` that `Numbers`
    needs."""

    def __init__(self, trace: Any) -> None:
        self.recording, self.scalars = trace.recording, trace.scalars
        self.values = trace.size_trace.values
        self._hyperparameters = [
            (dict(numbers), step) for numbers, step in trace.state.hyperparameters()
        ]
        self.quantities: list[int] = []
        self.symbols: list[int] = []
        self.integers: list[int] = trace.recording.integers

    def hyperparameters(self, ahead: int = 0) -> list[tuple[dict[str, float], float]]:
        return [(numbers, step + ahead) for numbers, step in self._hyperparameters]

    def use(self, general: Any) -> None:
        """Reads the quantities and symbols of the program for all sizes."""
        self.quantities = general.quantities(self.recording)
        self.symbols = general.symbols(self.recording)

    def candidates(self) -> dict[str, float]:
        return _candidates(self.values, self.quantities)


class VaryingSizes:
    """The recorded calls that executed the same ops and the same computations with
    sizes."""

    def __init__(self) -> None:
        self.sizes: set[Sizes] = set()
        self.numbers: Numbers | None = None
        #: By sizes of the arguments, for calls that may be replayed: the values that may
        #: explain a number of the program.
        self.candidates: dict[Sizes, dict[str, float]] = {}
        self._entries: list[Entry] = []
        self._has_varied: list[bool] = []
        self._calls: list[_Call] = []
        self._general: Any = None

    def learn(self, trace: Any, general: Any) -> None:
        """Adds a recorded call. Forgets earlier calls with other computations. `general`:
        the program for all sizes, or None. Raises ValueError if a number of the program
        can't be explained."""
        if kind := trace.size_trace.untraced:
            raise ValueError(f"it reads the sizes of a tensor of class {kind.__name__}")
        call = _Call(trace)
        if not self._calls or not self._agrees(trace.size_trace):
            self._calls.clear()
            self.sizes.clear()
            self._general = None
            self._has_varied = [False] * len(call.values)
        else:
            for place, (old, new) in enumerate(
                zip(self._calls[-1].values, call.values)
            ):
                self._has_varied[place] |= old != new
        self._entries = trace.size_trace.entries
        self._calls = [*self._calls[1 - _MOST_CALLS :], call]
        if len(self.sizes) > _MOST_SIZES:
            self.sizes.clear()
        self.sizes.add(trace.sizes)
        if general is None:
            self._general = None
            return
        is_new = self._general is None or general.name != self._general.name
        if is_new:
            self._general, self.numbers = general, None
            self.candidates.clear()
        for other in self._calls if is_new else [call]:
            other.use(general)
        self._find_equal_columns()
        self._learn_numbers(call)
        self._store_candidates(trace.sizes, call.candidates())

    def _agrees(self, trace: SizeTrace) -> bool:
        values = self._calls[-1].values
        return self._entries == trace.entries and all(
            old == new or not entry.is_pinned
            for entry, old, new in zip(trace.entries, values, trace.values)
        )

    def _find_equal_columns(self) -> None:
        """Finds which values of the code equal the integers and symbols of the program in
        all calls."""
        columns: dict[tuple[Any, ...], list[int]] = {}
        for place, column in enumerate(zip(*(call.values for call in self._calls))):
            columns.setdefault(column, []).append(place)

        def places_of(rows: Iterable[list[int]]) -> list[list[int]]:
            return [
                columns.get(column, []) if any(x != column[0] for x in column) else []
                for column in zip(*rows)
            ]

        self._integers = places_of(call.integers for call in self._calls)
        self._symbols = places_of(call.symbols for call in self._calls)
        self._differences = [
            () if places else _differences(column, columns)
            for places, column in zip(
                self._symbols, zip(*(call.symbols for call in self._calls))
            )
        ]

    def _learn_numbers(self, call: _Call) -> None:
        if self.numbers is not None and self.numbers.fits(self._general.name, call):
            self.numbers.learn(call.scalars, call, call.candidates())
            return
        numbers = Numbers(self._general.name, call.scalars, call)
        for other in self._calls:
            numbers.learn(other.scalars, other, other.candidates())
        self.numbers = numbers

    def _store_candidates(self, sizes: Sizes, candidates: dict[str, float]) -> None:
        if len(self.candidates) >= _MOST_SIZES:
            self.candidates.clear()
        self.candidates[sizes] = {
            name: candidates[name] for name in self.numbers.size_names()
        }

    def symbols(self, tensors: list[torch.Tensor]) -> list[int | None]:
        """Returns, for each symbol of the program, its value if the code computes it from
        sizes of the arguments, or computes both ends of a slice of that length."""
        values = self._values(lambda entry, _: _size_of_argument(entry, tensors))
        return [
            _common([values[k] for k in places])
            if places
            else _common([_difference(values[i], values[j]) for i, j in differences])
            for places, differences in zip(self._symbols, self._differences)
        ]

    def check(self, tensors: list[torch.Tensor], step: Any) -> None:
        """Raises Changed unless the function's code would do the same at these sizes, for
        which `step` has just selected its program. Then adds the candidates for them."""
        quantities, integers = step.quantities, step.integers
        values = self._values(
            lambda entry, recorded: self._size(entry, recorded, tensors, quantities),
            check=True,
        )
        for integer, places in zip(integers, self._integers):
            if any(values[k] != integer for k in places):
                raise Changed("its code computes a number that the program doesn't")
        self._store_candidates(sizes_of(tensors), _candidates(values, quantities))

    def _values(
        self, size: Callable[[Entry, int], Any], check: bool = False
    ) -> list[Any]:
        """Repeats the code's computations with sizes; a value is None if a size isn't
        known. `size` returns a size that was read, given its recorded value. With `check`,
        raises Changed if a value differs on which the code may depend in any way."""
        values: list[Any] = []
        for place, entry in enumerate(self._entries):
            recorded = self._calls[-1].values[place]
            value = _result(entry, values) if entry.function else size(entry, recorded)
            if value is None and entry.is_pinned:
                value = recorded
            is_fixed = entry.is_pinned or (
                entry.function is not None and not self._has_varied[place]
            )
            if check and is_fixed and value != recorded:
                raise Changed(
                    "its code computes another number or condition from sizes"
                )
            values.append(value)
        return values

    def _size(
        self,
        entry: Entry,
        recorded: int,
        tensors: list[torch.Tensor],
        quantities: list[int],
    ) -> int | None:
        (kind, *place), dim = entry.operands
        if kind != "value":
            return _size_of_argument(entry, tensors)
        quantity = self._general.quantity(*place, dim)
        return recorded if quantity is None else quantities[quantity]


class SizeHistory:
    """The sizes of the recorded calls with equal non-tensor arguments, by the skeleton of
    their programs."""

    def __init__(self) -> None:
        self._by_skeleton: dict[str, VaryingSizes] = {}
        self._noted: dict[str, set[Sizes]] = {}
        self._last: Sizes | None = None
        #: Whether the sizes of the calls differ.
        self.varies = False

    def note_call(self, sizes: Sizes) -> None:
        """To be called before each recorded call."""
        self.varies |= self._last not in (None, sizes)
        self._last = sizes

    def note_skeleton(self, trace: Any) -> None:
        """To be called after each recorded call."""
        noted = self._noted.setdefault(trace.skeleton, set())
        if len(noted) >= _MOST_SIZES:
            noted.clear()
        noted.add(trace.sizes)

    def of(self, trace: Any) -> VaryingSizes:
        found = self._by_skeleton.pop(trace.skeleton, None) or VaryingSizes()
        self._by_skeleton[trace.skeleton] = found  # most recently used last
        if len(self._by_skeleton) > _MOST_SKELETONS:
            del self._by_skeleton[next(iter(self._by_skeleton))]
        return found

    def check_range(self, skeleton: str, sizes: Sizes) -> None:
        """Raises Changed if a size isn't in the range of the recorded sizes of the
        skeleton."""
        known = self._by_skeleton[skeleton].sizes
        if sizes in known:
            return
        known = {other for other in known if len(other) == len(sizes)}
        if len(known) < _LEAST_SIZES:
            raise Changed("calls with too few different sizes have been recorded")
        columns = list(zip(*known))
        ranges = [(min(column), max(column)) for column in columns]
        for size, (least, most) in zip(sizes, ranges):
            if not least <= size <= most:
                raise Changed(
                    f"a size of the arguments, {size}, isn't between those of recorded "
                    f"calls, {least} and {most}"
                )
        self._check_other_skeletons(skeleton, ranges)
        _check_equal_sizes(sizes, columns)

    def _check_other_skeletons(
        self, skeleton: str, ranges: list[tuple[int, int]]
    ) -> None:
        for other, noted in self._noted.items():
            if other != skeleton and any(
                len(sizes) == len(ranges)
                and all(least <= x <= most for x, (least, most) in zip(sizes, ranges))
                for sizes in noted
            ):
                raise Changed("calls with such sizes have executed other ops")


def _check_equal_sizes(sizes: Sizes, columns: list[tuple[int, ...]]) -> None:
    varying = [k for k, column in enumerate(columns) if min(column) != max(column)]
    for number, i in enumerate(varying):
        for j in varying[:number]:
            were_equal = {a == b for a, b in zip(columns[i], columns[j])}
            if (sizes[i] == sizes[j]) not in were_equal:
                raise Changed("sizes of the arguments are equal for the first time")


def _size_of_argument(entry: Entry, tensors: list[torch.Tensor]) -> int | None:
    (kind, number, *_), dim = entry.operands
    return tensors[number].shape[dim] if kind == "argument" else None


def _result(entry: Entry, values: list[Any]) -> Any:
    """Returns the result of an operation; None if an operand isn't known."""
    operands = [values[x] if kind == "entry" else x[1] for kind, x in entry.operands]
    if any(operand is None for operand in operands):
        return None
    try:
        return entry.function(*operands)
    except (ArithmeticError, ValueError) as error:
        raise Changed(f"its code would raise an error: {error}") from None


def _differences(
    column: tuple[int, ...], columns: dict[tuple[Any, ...], list[int]]
) -> list[tuple[int, int]]:
    """Returns the pairs of values that have differed by the numbers of `column`."""
    return [
        (places[0], columns[start][0])
        for end, places in columns.items()
        if all(type(x) is int for x in end)
        and (start := tuple(a - b for a, b in zip(end, column))) in columns
    ]


def _difference(end: int | None, start: int | None) -> int | None:
    return None if end is None or start is None else end - start


def _common(values: list[Any]) -> int | None:
    """Returns the known value that all values have; None if there is none."""
    known = {value for value in values if value is not None}
    if len(known) > 1:
        raise Changed("numbers of its code that were equal differ at these sizes")
    return known.pop() if known else None


def _candidates(values: list[Any], quantities: list[int]) -> dict[str, float]:
    """Returns the numbers by name; names are the same in all calls."""
    result: dict[str, float] = {
        f"{text} of {i}": form(q)
        for i, q in enumerate(quantities)
        for text, form in _FORMS.items()
        if q > 1
    }
    result.update(
        (f"entry {i}", v) for i, v in enumerate(values) if type(v) is not bool
    )
    return result
