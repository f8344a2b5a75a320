"""Draws an op's arguments: by a rule for its name, otherwise from its schema."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from fuzz.drawing import Drawing
    from fuzz.table import Op


@dataclass
class Drawn:
    """Arguments as text, and the values that they name. The first value is the one that
    an in-place op writes."""

    texts: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)

    def tensor(self, name: str) -> None:
        self.texts.append(name)
        self.names.append(name)

    def add(self, *values) -> None:
        self.texts += [repr(value) for value in values]

    def keyword(self, name: str, value: str) -> None:
        self.texts.append(f"{name}={value}")


def draw(op: Op, d: Drawing) -> Drawn:
    from fuzz.rules import RULES

    rule = RULES.get(op.name) or RULES.get(op.base) or RULES.get(op.base.rstrip("_"))
    if rule:
        return rule(d)
    return _BySchema(op, d).draw()


SCALARS = [-2, -1, 0, 1, 2, 3, -1.5, -0.25, 0.5, 0.75, 2.0]
POSITIVE = [0.5, 1.0, 2.0, 0.25]
#: Names of scalar arguments that must be positive.
_POSITIVE_SCALARS = {"beta", "lambd", "delta", "std", "sigma", "eps", "alpha"}
_NOT_DRAWN = {
    "layout", "pin_memory", "memory_format", "non_blocking", "implicit", "sparse_grad",
    "storage_offset", "scales_h", "scales_w", "sorted",
}  # fmt: skip


def is_float(tensor: torch.Tensor) -> bool:
    return tensor.is_floating_point()


def broadcasts_to(shape: torch.Size):
    def fits(tensor: torch.Tensor) -> bool:
        sizes = zip(reversed(tensor.shape), reversed(shape))
        return tensor.dim() <= len(shape) and all(a in (1, b) for a, b in sizes)

    return fits


def operand(d: Drawing, like: torch.Tensor, dtype=None, exact_shape=False) -> str:
    """Draws a value that broadcasts to `like` or, if `exact_shape`, has its shape. The
    value has dtype `dtype` if one is given."""
    wanted = dtype or (like.dtype if d.random.random() < 0.7 else d.dtype())

    def fits(tensor: torch.Tensor) -> bool:
        if dtype is not None and tensor.dtype != dtype:
            return False
        if exact_shape:
            return tensor.shape == like.shape
        return broadcasts_to(like.shape)(tensor)

    if d.random.random() < 0.6:
        name = d.pick(fits)
        if name:
            return name
    shape = list(like.shape)
    if not exact_shape and shape and d.random.random() < 0.5:
        shape = shape[d.random.randrange(len(shape) + 1) :]
        shape = [1 if d.random.random() < 0.25 else size for size in shape]
    return d.leaf(shape, wanted)


class _BySchema:
    def __init__(self, op: Op, d: Drawing) -> None:
        self.op, self.d = op, d
        self.drawn = Drawn()
        self.first: torch.Tensor | None = None

    def draw(self) -> Drawn:
        for argument in self.op.schema.arguments:
            if argument.name in _NOT_DRAWN:
                continue
            value = self._value(argument)
            if value is None:
                continue
            if argument.kwarg_only:
                self.drawn.keyword(argument.name, value)
            else:
                self.drawn.texts.append(value)
        return self.drawn

    def _value(self, argument) -> str | None:
        kind, name, d = str(argument.type), argument.name, self.d
        if name == "device":
            return "device" if self.first is None else None
        if name == "generator":
            return None if argument.has_default_value() else "None"
        if name == "dtype":
            return self._dtype(argument)
        if argument.has_default_value() and d.random.random() < 0.4:
            # Later arguments are positional, so the default is written out.
            return repr(argument.default_value)
        if kind.startswith("Optional["):
            if d.random.random() < 0.3:
                return "None"
            kind = kind.removeprefix("Optional[").removesuffix("]")
        if kind == "Tensor":
            return self._tensor(name)
        if kind == "List[Tensor]":
            return self._tensors()
        if kind == "bool":
            return repr(d.random.random() < 0.5)
        if kind == "number":
            choices = POSITIVE if name in _POSITIVE_SCALARS else SCALARS
            return repr(d.random.choice(choices))
        if kind == "float":
            return repr(d.random.choice(POSITIVE))
        if kind == "int":
            return repr(self._integer(name))
        if kind == "List[int]":
            return repr(self._integers(name))
        if kind == "str":
            return repr(d.random.choice(self._words(name)))
        raise ValueError(f"no rule for {name}: {argument.type}")

    def _words(self, name: str) -> list[str]:
        return {
            "rounding_mode": ["floor", "trunc"],
            "approximate": ["none", "tanh"],
            "side": ["left", "right"],
            "reduce": ["add", "multiply"],
        }[name]

    def _dtype(self, argument) -> str | None:
        d = self.d
        if d.random.random() < 0.5 and self.op.base != "_to_copy":
            return None
        return str(d.dtype())

    def _tensor(self, name: str) -> str:
        d = self.d
        if self.first is None:
            chosen = self._first()
            self.first = d.values[chosen]
        elif name in ("mask", "condition"):
            chosen = operand(d, self.first, torch.bool)
        elif name in ("index", "indices"):
            chosen = d.indices(max(self.first.shape or [1]), d.shape(1, 1))
        elif (
            self.op.family == "loss"
            or name in ("self", "output", "grad_output")
            or "backward" in self.op.base
        ):
            chosen = operand(d, self.first, self.first.dtype, exact_shape=True)
        else:
            chosen = operand(d, self.first)
        self.drawn.names.append(chosen)
        return chosen

    def _first(self) -> str:
        d = self.d
        if self.op.name in ("where.self",):
            return d.pick(lambda t: t.dtype == torch.bool) or d.leaf(
                d.shape(), torch.bool
            )
        if d.random.random() < 0.1 or not d.values:
            return d.leaf(d.shape(), d.dtype())
        if self.op.family in ("normalization", "loss", "pooling"):
            return d.pick(is_float) or d.leaf(d.shape(), torch.float32)
        return d.pick()

    def _tensors(self) -> str:
        d = self.d
        first = d.pick()
        if first is None:
            raise ValueError("nothing to take")
        self.first = d.values[first]
        names = [first]
        for _ in range(d.random.randint(0, 2)):
            names.append(operand(d, self.first, exact_shape=True))
        self.drawn.names += names
        return f"[{', '.join(names)}]"

    def _rank(self) -> int:
        return 0 if self.first is None else self.first.dim()

    def _integer(self, name: str) -> int:
        d, rank = self.d, self._rank()
        if name.startswith("dim") and name != "dims":
            if self.op.base in ("unsqueeze", "stack"):
                return d.random.randint(-rank - 1, rank)
            return d.random.randint(-rank, rank - 1) if rank else 0
        if name in ("offset", "diagonal"):
            return d.random.randint(-2, 2)
        if name in ("row", "col", "n", "m", "steps"):
            return d.random.randint(1, 7)
        if name in ("high",):
            return d.random.randint(2, 9)
        if name in ("low", "decimals"):
            return d.random.randint(-1, 1)
        if name == "reduction":
            return d.random.randint(0, 2)
        if name.endswith("factor"):
            return 2
        return d.random.randint(0, 3)

    def _integers(self, name: str) -> list[int]:
        d, rank = self.d, self._rank()
        if name in ("dim", "dims"):
            chosen = d.random.sample(range(rank), d.random.randint(0, rank))
            if self.op.base == "permute":
                chosen = d.random.sample(range(rank), rank)
            return [c - rank if d.random.random() < 0.3 else c for c in chosen]
        if name == "repeats":
            return [
                d.random.randint(1, 3) for _ in range(rank + d.random.randint(0, 1))
            ]
        if name == "pad":
            pairs = d.random.randint(0, rank)
            return [d.random.randint(-1, 2) for _ in range(2 * pairs)]
        if name == "size":
            return d.shape()
        raise ValueError(f"no rule for {name}")
