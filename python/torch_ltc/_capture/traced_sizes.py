"""Traces what a recorded call computes from the sizes of its tensors.

While a call is recorded, `tensor.shape` and the like consist of numbers that record each
operation on them. The trace shows for which other sizes the function's code would do the
same (sizes.py).
"""

from __future__ import annotations

import contextlib
import math
import operator
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
from torch.utils._pytree import tree_leaves, tree_map

_NUMBERS = (int, float, bool)


class Entry(NamedTuple):
    """A size that was read, or the result of an operation on earlier entries."""

    #: None for a size.
    function: Callable[..., Any] | None
    #: The operands: ("entry", number) or ("constant", value). For a size, its tensor's
    #: origin (`Recording.size_source`) and its dimension.
    operands: tuple[Any, ...]
    #: Whether the value left the trace, so that the code may depend on it in any way.
    is_pinned: bool


class SizeTrace:
    """The sizes that one recorded call reads, and what it computes from them."""

    def __init__(self, recording: Any, tensors: list[torch.Tensor]) -> None:
        self._recording = recording
        self._arguments = {id(tensor) for tensor in tensors}
        self._is_open = True
        #: The class of a tensor whose sizes were read without being traced; None if there
        #: is none.
        self.untraced: type | None = None
        self.entries: list[Entry] = []
        self.values: list[int | float | bool] = []

    def follows(self, tensor: torch.Tensor) -> bool:
        """Whether the tensor's sizes may differ between calls."""
        if id(tensor) in self._arguments:
            return True
        return tensor.device.type == "lazy" and type(tensor) is not torch.nn.Parameter

    def sizes(self, tensor: torch.Tensor, sizes: Any) -> list[Any]:
        """Returns the sizes of a tensor as traced numbers."""
        source = self._recording.note_sizes_read(tensor)
        return [
            self._add(Entry(None, (source, dim), False), size)
            for dim, size in enumerate(sizes)
        ]

    def apply(self, function: Callable[..., Any], *operands: Any) -> Any:
        """Returns the function's result as a traced number; a comparison's result is
        pinned."""
        value = function(*map(plain, operands))
        if not self._is_open:
            return value
        if type(value) not in _NUMBERS:  # for example, a number of NumPy
            for operand in operands:
                if plain(operand) is not operand:
                    self.pin(operand)
            return value
        is_pinned = type(value) is bool
        return self._add(Entry(function, _references(operands), is_pinned), value)

    def pin(self, number: Any) -> Any:
        """Returns the number's value, on which the code may then depend in any way."""
        value = plain(number)
        if self._is_open:
            self._add(Entry(operator.pos, _references([number]), True), value)
        return value

    def _add(self, entry: Entry, value: Any) -> Any:
        self.entries.append(entry)
        self.values.append(value)
        if entry.is_pinned:
            return value
        kind = TracedFloat if type(value) is float else TracedInt
        number = kind.__new__(kind, value)
        number.trace, number.entry = self, len(self.entries) - 1
        return number

    def close(self) -> None:
        """Ends the trace: from now on, its numbers are like others."""
        self._is_open = False

    def finish(self) -> None:
        """Replaces the tensors of sizes by their origins, and merges equal entries."""
        places: dict[Entry, int] = {}
        numbers, values = [], []
        for entry, value in zip(self.entries, self.values):
            if entry.function is None:
                source, dim = entry.operands
                origin = self._recording.size_source(source)
                # The sizes of a tensor that isn't part of the program are unknown later.
                operands = (origin, dim) if origin else (("unknown", value), dim)
                entry = Entry(None, operands, origin is None)
            else:
                operands = tuple(
                    (kind, numbers[x]) if kind == "entry" else (kind, x)
                    for kind, x in entry.operands
                )
                entry = Entry(entry.function, operands, entry.is_pinned)
            if entry not in places:
                places[entry] = len(places)
                values.append(value)
            numbers.append(places[entry])
        self.entries, self.values = list(places), values


def plain(number: Any) -> Any:
    """Returns the value of a traced number, and anything else unchanged."""
    if type(number) is TracedInt:
        return int.__pos__(number)
    if type(number) is TracedFloat:
        return float.__pos__(number)
    return number


def _references(operands: Any) -> tuple[tuple[str, Any], ...]:
    return tuple(
        ("entry", x.entry)
        if type(x) in (TracedInt, TracedFloat)
        else ("constant", (type(x), x))
        for x in operands
    )


def _binary(name: str, function: Callable[..., Any], is_reflected: bool) -> Callable:
    def method(self: Any, other: Any) -> Any:
        if not isinstance(other, _NUMBERS):
            kind = type(plain(self))
            attribute = getattr(kind, name, None)
            self.trace.pin(self)
            return attribute(plain(self), other) if attribute else NotImplemented
        left, right = (other, self) if is_reflected else (self, other)
        return self.trace.apply(function, left, right)

    return method


def _unary(function: Callable[..., Any]) -> Callable:
    return lambda self, *rest: self.trace.apply(function, self, *rest)


def _pinned(function: Callable[..., Any]) -> Callable:
    return lambda self, *rest: function(self.trace.pin(self), *rest)


def _power(base: Any, exponent: Any) -> Any:
    return base**exponent


_ARITHMETIC = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "floordiv": operator.floordiv,
    "truediv": operator.truediv,
    "mod": operator.mod,
    "pow": _power,
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
    "lshift": operator.lshift,
    "rshift": operator.rshift,
}
_COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")


def _methods() -> dict[str, Any]:
    methods: dict[str, Any] = {}
    for name, function in _ARITHMETIC.items():
        methods[f"__{name}__"] = _binary(f"__{name}__", function, False)
        methods[f"__r{name}__"] = _binary(f"__r{name}__", function, True)
    for name in _COMPARISONS:
        function = getattr(operator, name)
        methods[f"__{name}__"] = _binary(f"__{name}__", function, False)
    for name, function in (
        ("neg", operator.neg),
        ("pos", operator.pos),
        ("abs", abs),
        ("invert", operator.invert),
        ("round", round),
        ("trunc", math.trunc),
        ("floor", math.floor),
        ("ceil", math.ceil),
    ):
        methods[f"__{name}__"] = _unary(function)
    for name, function in (
        ("__bool__", bool),
        ("__hash__", hash),
        ("__int__", int),
        ("__float__", float),
        ("__str__", str),
        ("__repr__", repr),
        ("__format__", format),
        ("__reduce_ex__", lambda value, _: (type(value), (value,))),
        ("is_integer", lambda value: value.is_integer()),
        ("bit_length", lambda value: value.bit_length()),
    ):
        methods[name] = _pinned(function)
    # `divmod` returns a pair.
    methods["__divmod__"] = lambda self, other: (self // other, self % other)
    methods["__rdivmod__"] = lambda self, other: (other // self, other % self)
    return methods


#: Subclasses, so that code that requires an int or a float accepts them.
TracedInt = type("TracedInt", (int,), _methods())
TracedFloat = type("TracedFloat", (float,), _methods())


class _OfThread(threading.local):
    trace: SizeTrace | None = None


_of_thread = _OfThread()
_TENSORS = (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer)
# Modules with formulas of ops: a formula runs only in some calls of its op.
_FORMULAS = ("torch._decomp", "torch._refs", "torch._prims", "torch_ltc.")


def _trace_of(tensor: torch.Tensor) -> SizeTrace | None:
    """Returns this thread's open trace if the recorded function reads the tensor's
    sizes."""
    trace = _of_thread.trace
    if trace is None or not trace.follows(tensor):
        return None
    if type(tensor) not in _TENSORS:
        trace.untraced = type(tensor)
        return None
    reader = sys._getframe(2).f_globals.get("__name__", "")
    return None if reader.startswith(_FORMULAS) else trace


def _read(tensor: torch.Tensor, trace: SizeTrace) -> list[Any]:
    return trace.sizes(tensor, torch._C.TensorBase.shape.__get__(tensor))


def _shape(self: torch.Tensor) -> torch.Size:
    if trace := _trace_of(self):
        return torch.Size(_read(self, trace))
    return torch._C.TensorBase.shape.__get__(self)


def _size(self: torch.Tensor, *dim: Any, **named: Any) -> Any:
    sizes = torch._C.TensorBase.size(self, *dim, **named)
    if not (trace := _trace_of(self)):
        return sizes
    traced = _read(self, trace)
    if isinstance(sizes, torch.Size):
        return torch.Size(traced)
    (place,) = (*dim, *named.values())
    return traced[place]


def _numel(self: torch.Tensor) -> int:
    if trace := _trace_of(self):
        return math.prod(_read(self, trace))
    return torch._C.TensorBase.numel(self)


def _pinning(original: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a method whose result may depend on all sizes of the tensor."""

    def method(self: torch.Tensor, *arguments: Any, **named: Any) -> Any:
        if trace := _trace_of(self):
            for size in _read(self, trace):
                trace.pin(size)
        return original(self, *arguments, **named)

    return method


_READERS: dict[str, Any] = {
    "shape": property(_shape),
    "size": _size,
    "numel": _numel,
    "nelement": _numel,
    "__len__": _pinning(torch.Tensor.__len__),
    "stride": _pinning(torch._C.TensorBase.stride),
}
_OWN = {name: torch.Tensor.__dict__.get(name) for name in _READERS}


class _Replacement:
    """Replaces methods of `torch.Tensor` while a thread traces sizes. PyTorch has no hook
    for all reads of sizes in Python: a `TorchFunctionMode` is off inside the functions of
    `torch.nn.functional` (torch 2.13)."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0

    def add_user(self) -> None:
        with self._lock:
            self._users += 1
            if self._users == 1:
                for name, reader in _READERS.items():
                    setattr(torch.Tensor, name, reader)

    def remove_user(self) -> None:
        with self._lock:
            self._users -= 1
            if self._users:
                return
            for name, own in _OWN.items():
                if own is None:
                    delattr(torch.Tensor, name)
                else:
                    setattr(torch.Tensor, name, own)


_replacement = _Replacement()


@contextlib.contextmanager
def tracing_sizes(trace: SizeTrace | None) -> Iterator[None]:
    """Traces the sizes that this thread reads in the `with` block."""
    if trace is None:
        yield
        return
    _replacement.add_user()
    _of_thread.trace = trace
    try:
        yield
    finally:
        trace.close()
        _of_thread.trace = None
        _replacement.remove_user()


def without_traces(value: Any) -> Any:
    """Replaces traced numbers in a call's result by pinned numbers."""
    if all(plain(leaf) is leaf for leaf in tree_leaves(value)):
        return value
    return tree_map(lambda x: x if plain(x) is x else x.trace.pin(x), value)
