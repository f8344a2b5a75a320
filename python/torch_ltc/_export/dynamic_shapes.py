"""Reads `dynamic_shapes` of `export`: a specification of the sizes that vary, in the form
that torch.export accepts."""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import Any

import torch
from torch.export.dynamic_shapes import Dim, _DerivedDim, _DimHint

#: The largest size of a dim without `max`.
UNBOUNDED = 2**63 - 1
#: A multiple of all small numbers: derived sizes there aren't rounded.
_MULTIPLE = 720720


@dataclass
class Variable:
    """A size that varies independently: a `Dim`, or a dim with a hint."""

    name: str
    base: int  # the size in the example
    least: int | None  # None: determined by the program
    most: int
    is_required: bool  # False for Dim.AUTO
    places: list[Place] = field(default_factory=list)

    def become(self, place: Place) -> None:
        """Replaces the variable by the size at `place`, which is derived from it."""
        self.name = ""
        self.base = place.size(self.base)
        self.least = None if self.least is None else place.size(self.least)
        self.most = UNBOUNDED if self.most == UNBOUNDED else place.size(self.most)
        self.places = [
            Place(one.argument, one.dim, self, partial(_at_root, one, place))
            for one in self.places
        ]

    def others(self, count: int, seed: int) -> list[int]:
        """Returns up to `count` sizes that are in the range and differ from `base`. With
        different seeds, the sizes of two variables aren't functions of each other."""
        low = max(2, self.least or 2, self.base // 2)
        high = min(self.most, self.base + max(24, self.base // 2))
        room = [size for size in range(low, high + 1) if size != self.base]
        drawn = random.Random(seed).sample(room, len(room))
        return [drawn[i % len(drawn)] for i in range(count) if drawn]


@dataclass
class Place:
    """A varying dim of a tensor argument."""

    argument: str
    dim: int
    variable: Variable
    #: Computes the size of a derived dim such as `2*batch` from the size of `batch`.
    function: Callable[[int], int] | None = None

    def size(self, value: int) -> int:
        return value if self.function is None else int(self.function(value))

    def root(self, size: int) -> int:
        """Returns the value of the variable at which the size, rounded down, is `size`."""
        factor = Fraction(self.size(_MULTIPLE) - self.size(0), _MULTIPLE)
        return int((size - self.size(0)) // factor)

    def __str__(self) -> str:
        return f"size {self.dim} of '{self.argument}'"

    def start_of_sentence(self) -> str:
        return f"S{str(self)[1:]}"


def _at_root(place: Place, other: Place, size: int) -> int:
    """Returns the size at `place` if that at `other` is `size`."""
    return place.size(other.root(size))


def find_variables(
    function: Callable[..., Any],
    args: Sequence[Any],
    kwargs: dict[str, Any],
    dynamic_shapes: Any,
    names: Callable[[Sequence[Any], dict[str, Any]], Iterator[tuple[str, Any]]],
) -> list[Variable]:
    """Returns the sizes that vary. `names` yields the name and the value of each tensor in
    the arguments. Raises ValueError for a specification that doesn't match the
    arguments."""
    found: dict[Any, Variable] = {}
    for key, value, spec in _by_argument(function, args, kwargs, dynamic_shapes):
        one = {key: value} if isinstance(key, str) else {}
        tensors = [value] if isinstance(key, int) else []
        labels = [name for name, _ in names(tensors, one)]
        if isinstance(key, int):
            labels = [label.replace("arg0", f"arg{key}", 1) for label in labels]
        specs = list(_leaves(value, spec, labels[0] if labels else str(key)))
        for label, (tensor, dims) in zip(labels, specs):
            for dim, wanted in _dims(tensor, dims, label):
                _add(found, label, dim, tensor.shape[dim], wanted)
    return list(found.values())


def _by_argument(
    function: Callable[..., Any],
    args: Sequence[Any],
    kwargs: dict[str, Any],
    dynamic_shapes: Any,
) -> Iterator[tuple[int | str, Any, Any]]:
    """Yields position or keyword, value and specification of each argument."""
    if isinstance(dynamic_shapes, dict):
        call = function.forward if isinstance(function, torch.nn.Module) else function
        bound = inspect.signature(call).bind(*args, **kwargs)
        names = list(bound.arguments)
        parameters = bound.signature.parameters
        positions: list[str] = []
        for name in names:
            if parameters[name].kind is inspect.Parameter.VAR_POSITIONAL:
                positions += [name] * len(bound.arguments[name])
            elif name not in kwargs:
                positions.append(name)
        unknown = set(dynamic_shapes) - set(names) - set(kwargs)
        if unknown:
            raise ValueError(
                f"dynamic_shapes names '{sorted(unknown)[0]}', but the arguments are "
                f"{', '.join(names)}."
            )
        for number, value in enumerate(args):
            name = positions[number]
            spec = dynamic_shapes.get(name)
            if isinstance(spec, (tuple, list)) and positions.count(name) > 1:
                spec = spec[number - positions.index(name)]
            yield number, value, spec
        for key, value in kwargs.items():
            yield key, value, dynamic_shapes.get(key)
        return
    if not isinstance(dynamic_shapes, (tuple, list)):
        raise ValueError(
            "dynamic_shapes must be a dict by argument names or a tuple with one entry "
            f"for each argument, but is a {type(dynamic_shapes).__name__}."
        )
    values = [*enumerate(args), *kwargs.items()]
    if len(dynamic_shapes) != len(values):
        raise ValueError(
            f"dynamic_shapes has {len(dynamic_shapes)} entries for {len(values)} "
            "arguments."
        )
    for (key, value), spec in zip(values, dynamic_shapes):
        yield key, value, spec


def _leaves(value: Any, spec: Any, where: str) -> Iterator[tuple[torch.Tensor, Any]]:
    """Yields the tensors in pytree order, each with the specification of its dims."""
    if isinstance(value, torch.Tensor):
        yield value, spec
    elif isinstance(value, dict):
        for key in value:
            yield from _leaves(value[key], (spec or {}).get(key), where)
    elif isinstance(value, (tuple, list)):
        if spec is not None and len(spec) != len(value):
            raise ValueError(
                f"dynamic_shapes has {len(spec)} entries for the {len(value)} values "
                f"of '{where}'."
            )
        for number, item in enumerate(value):
            yield from _leaves(item, None if spec is None else spec[number], where)


def _dims(tensor: torch.Tensor, spec: Any, label: str) -> Iterator[tuple[int, Any]]:
    if spec is None:
        return
    if isinstance(spec, (tuple, list)):
        if len(spec) != tensor.dim():
            raise ValueError(
                f"dynamic_shapes has {len(spec)} dims for '{label}', which has "
                f"{tensor.dim()}."
            )
        spec = dict(enumerate(spec))
    if not isinstance(spec, dict):
        raise ValueError(
            f"dynamic_shapes of '{label}' must be a dict of dims or a tuple with one "
            f"entry for each dim, but is a {type(spec).__name__}."
        )
    for dim, wanted in spec.items():
        if not isinstance(dim, int) or not -tensor.dim() <= dim < tensor.dim():
            raise ValueError(
                f"dynamic_shapes names dim {dim} of '{label}', which has "
                f"{tensor.dim()} dims."
            )
        yield dim % tensor.dim(), wanted


def _add(
    found: dict[Any, Variable], label: str, dim: int, size: int, wanted: Any
) -> None:
    if wanted is None or isinstance(wanted, int):
        if isinstance(wanted, int) and wanted != size:
            raise ValueError(
                f"dynamic_shapes says that size {dim} of '{label}' is {wanted}, but it "
                f"is {size}."
            )
        return
    if isinstance(wanted, _DimHint):
        if wanted.type.name == "STATIC":
            return
        hint = Variable(
            "",
            size,
            wanted.min or None,
            wanted.max or UNBOUNDED,
            wanted.type.name != "AUTO",
        )
        hint.places.append(Place(label, dim, hint))
        found[label, dim] = hint
        _check_range(hint, hint.places[0])
        return
    if not isinstance(wanted, Dim):
        raise ValueError(
            f"dynamic_shapes says '{wanted}' for size {dim} of '{label}': it must be a "
            "Dim, Dim.AUTO, Dim.DYNAMIC, Dim.STATIC, an int or None."
        )
    derived = isinstance(wanted, _DerivedDim)
    root = wanted.root if derived else wanted
    value = _root_value(wanted, size) if derived else size
    if value is None:
        raise ValueError(
            f"Size {dim} of '{label}' is {size}, which isn't {wanted.__name__}."
        )
    if root.__name__ not in found:
        most = root.max if isinstance(root.max, int) else UNBOUNDED
        least = root.min if isinstance(root.min, int) and root.min > 2 else None
        found[root.__name__] = Variable(root.__name__, value, least, most, True)
    variable = found[root.__name__]
    place = Place(label, dim, variable, wanted.fn if derived else None)
    if variable.base != value:
        raise ValueError(
            f"dynamic_shapes says that {place} is {wanted.__name__}, as "
            f"{variable.places[0]} is, but they are {size} and "
            f"{variable.places[0].size(variable.base)}."
        )
    variable.places.append(place)
    _check_range(variable, place)


def _root_value(derived: Any, size: int) -> int | None:
    """Returns the value of the root at which a derived dim has this size, or None. A
    derived dim is its root times a small factor, plus a constant."""
    return next((n for n in range(size * 8 + 1024) if derived.fn(n) == size), None)


def _check_range(variable: Variable, place: Place) -> None:
    if not (variable.least or 0) <= variable.base <= variable.most:
        most = "" if variable.most == UNBOUNDED else f" to {variable.most}"
        raise ValueError(
            f"{place.start_of_sentence()} is {place.size(variable.base)}, but "
            f"{variable.name or 'its Dim'} is from {variable.least or 0}{most}."
        )
    if variable.base < 2:
        raise ValueError(
            f"{place.start_of_sentence()} is {place.size(variable.base)} in the example: "
            "a size that varies must be 2 or more, because 0 and 1 have a special meaning "
            "in PyTorch (nothing, broadcasting); export with a larger example."
        )
