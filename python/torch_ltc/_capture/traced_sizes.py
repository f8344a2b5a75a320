"""Traces what a recorded call computes from the sizes of its tensors.

While a call is recorded, `tensor.shape` and the like consist of numbers that record each
operation on them. The trace shows for which other sizes the function's code would do the
same (sizes.py).
"""

from __future__ import annotations

import collections
import contextlib
import decimal
import itertools
import math
import operator
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
from torch.utils._pytree import tree_leaves, tree_map

from torch_ltc._backend import bindings

try:
    import numpy
except ImportError:  # it is optional, as for torch
    numpy = None

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

    def _is_of_program(self, tensor: torch.Tensor) -> bool:
        """Whether the tensor is a value of the recorded program, or an argument."""
        if torch._C._functorch.is_functorch_wrapped_tensor(tensor):
            return False
        return tensor.device.type == "lazy" or id(tensor) in self._arguments

    def sizes(self, tensor: torch.Tensor, sizes: Any) -> list[Any]:
        """Returns the sizes of a tensor as traced numbers."""
        source = None
        if self._is_of_program(tensor):
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

    def pin_within(self, values: Any) -> None:
        """Pins the traced numbers in the values and in containers among them."""
        for leaf in tree_leaves(values):
            if plain(leaf) is not leaf:
                self.pin(leaf)

    def pin_all(self) -> None:
        """Pins all numbers: code that isn't traced may have read them."""
        for place, entry in enumerate(self.entries):
            self.entries[place] = entry._replace(is_pinned=True)

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
                origin = None if source is None else self._recording.size_source(source)
                # The sizes of a tensor that isn't part of the program are unknown later.
                operands = (origin, dim) if origin else (("unknown", value), dim)
                entry = Entry(None, operands, entry.is_pinned or origin is None)
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


def _binary(function: Callable[..., Any], is_reflected: bool) -> Callable:
    def method(self: Any, other: Any) -> Any:
        if not isinstance(other, _NUMBERS):
            if isinstance(other, torch.Tensor):  # its reflected method reads the number
                return NotImplemented
            value = self.trace.pin(self)
            return function(other, value) if is_reflected else function(value, other)
        left, right = (other, self) if is_reflected else (self, other)
        return self.trace.apply(function, left, right)

    return method


def _unary(function: Callable[..., Any]) -> Callable:
    return lambda self, *rest: self.trace.apply(function, self, *rest)


def _pinned(function: Callable[..., Any]) -> Callable:
    return lambda self, *rest, **named: function(self.trace.pin(self), *rest, **named)


def _power(base: Any, exponent: Any) -> Any:
    return base**exponent


def _power_method(self: Any, exponent: Any, modulus: Any = None) -> Any:
    if modulus is None:
        return _binary(_power, False)(self, exponent)
    return pow(self.trace.pin(self), *map(_pinned_value, (exponent, modulus)))


def _pinned_value(value: Any) -> Any:
    return value if plain(value) is value else value.trace.pin(value)


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
        methods[f"__{name}__"] = _binary(function, False)
        methods[f"__r{name}__"] = _binary(function, True)
    for name in _COMPARISONS:
        function = getattr(operator, name)
        methods[f"__{name}__"] = _binary(function, False)
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
    ):
        methods[name] = _pinned(function)
    methods["__pow__"] = _power_method
    # `divmod` returns a pair.
    methods["__divmod__"] = lambda self, other: (self // other, self % other)
    methods["__rdivmod__"] = lambda self, other: (other // self, other % self)
    return methods


# Python itself calls these.
_OF_CLASSES = frozenset(
    ["__class__", "__new__", "__init__", "__init_subclass__", "__subclasshook__"]
    + ["__getattribute__", "__setattr__", "__delattr__", "__dir__", "__doc__"]
    + ["__sizeof__", "__reduce__", "__getstate__", "__getnewargs__", "__getformat__"]
)


def _class(name: str, base: type) -> type:
    """Returns a class whose attributes all trace or pin the number."""
    methods = _methods()
    for attribute in dir(base):
        value = getattr(base, attribute)
        if attribute in methods or attribute in _OF_CLASSES:
            continue
        if isinstance(vars(base).get(attribute), (classmethod, staticmethod)):
            continue
        if callable(value):
            methods[attribute] = _pinned(value)
        else:
            methods[attribute] = property(_pinned(operator.attrgetter(attribute)))
    return type(name, (base,), methods)


#: Subclasses, so that code that requires an int or a float accepts them.
TracedInt = _class("TracedInt", int)
TracedFloat = _class("TracedFloat", float)


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
    if trace is None:
        return None
    if type(tensor) not in _TENSORS:
        if tensor.device.type == "lazy":
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


def _dividing(original: Callable[..., Any], least: int) -> Callable[..., Any]:
    """Returns a method whose number of results depends on the size of a dimension, which
    is argument number `least`."""

    def method(self: torch.Tensor, *arguments: Any, **named: Any) -> Any:
        if trace := _trace_of(self):
            dim = named.get("dim", arguments[least] if len(arguments) > least else 0)
            sizes = _read(self, trace)
            if isinstance(dim, int) and -len(sizes) <= dim < len(sizes):
                trace.pin(sizes[dim])
        return original(self, *arguments, **named)

    return method


def _indexing(original: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a method that reads numbers in an index of a tensor that isn't part of the
    program."""

    def method(self: torch.Tensor, index: Any, *value: Any) -> Any:
        if (trace := _of_thread.trace) and self.device.type != "lazy":
            for part in index if type(index) is tuple else (index,):
                if type(part) is slice:
                    part = (part.start, part.stop, part.step)
                trace.pin_within(part)
        return original(self, index, *value)

    return method


_READERS: dict[str, Any] = {
    "__getitem__": _indexing(torch.Tensor.__getitem__),
    "__setitem__": _indexing(torch.Tensor.__setitem__),
    "unbind": _dividing(torch.Tensor.unbind, 0),
    "split": _dividing(torch.Tensor.split, 1),
    "chunk": _dividing(torch.Tensor.chunk, 1),
    "__iter__": _dividing(torch.Tensor.__iter__, 0),
    "shape": property(_shape),
    "size": _size,
    "numel": _numel,
    "nelement": _numel,
    "__len__": _pinning(torch.Tensor.__len__),
    "stride": _pinning(torch._C.TensorBase.stride),
}
_OWN = {name: torch.Tensor.__dict__.get(name) for name in _READERS}


# Types whose C code reads numbers as operands or indices, and types whose constructors do.
_OPERANDS = [float, bool, complex, list, tuple, str, torch.Size, memoryview]
_CREATED = [range, bytes, bytearray, enumerate, collections.deque, decimal.Decimal]
_CREATED += [
    itertools.islice,
    itertools.repeat,
    itertools.count,
    itertools.combinations,
]
if numpy is not None:
    _OPERANDS += [numpy.ndarray, numpy.float64, numpy.float32]
    _CREATED += [numpy.int64, numpy.int32, numpy.bool_]
#: Functions of module math that call methods of the number.
TRACED_MATH = ("floor", "ceil", "trunc", "prod")


def _pinning_arguments(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a function of a module of C functions, which read numbers directly."""

    def wrapper(*arguments: Any, **named: Any) -> Any:
        return function(*tree_map(_pinned_value, arguments), **named)

    return wrapper


_MATH = {
    name: value
    for name, value in vars(math).items()
    if callable(value) and name[0] != "_" and name not in TRACED_MATH
}


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
                for name, function in _MATH.items():
                    setattr(math, name, _pinning_arguments(function))
                bindings().set_traced_types(TracedInt, TracedFloat)
                bindings().watch_operands(_OPERANDS, _CREATED, True)

    def remove_user(self) -> None:
        with self._lock:
            self._users -= 1
            if self._users:
                return
            bindings().watch_operands(_OPERANDS, _CREATED, False)
            for name, function in _MATH.items():
                setattr(math, name, function)
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
    return tree_map(_pinned_value, value)
