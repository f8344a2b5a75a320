"""Arguments of views and of ops that move elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from fuzz.arguments import Drawn, is_float, operand
from fuzz.choices import F32, any_dim, scalar, some
from fuzz.exactness import overlaps_itself

if TYPE_CHECKING:
    from fuzz.drawing import Drawing


def _factors(d: Drawing, count: int) -> list[int]:
    """Returns random sizes whose product is `count`."""
    sizes, rest = [], count
    for prime in (2, 3, 5, 7):
        while rest and rest % prime == 0 and rest > 1:
            sizes.append(prime)
            rest //= prime
    if rest != 1:
        sizes.append(rest)
    d.random.shuffle(sizes)
    while len(sizes) > 1 and d.random.random() < 0.6:
        sizes[:2] = [sizes[0] * sizes[1]]
    while len(sizes) < 4 and d.random.random() < 0.25:
        sizes.insert(d.random.randint(0, len(sizes)), 1)
    return sizes


def view(d: Drawing) -> Drawn:
    a = Drawn()
    a.tensor(some(d))
    sizes = _factors(d, d.values[a.names[0]].numel())
    if sizes and d.random.random() < 0.3:
        sizes[d.random.randrange(len(sizes))] = -1
    a.add(sizes)
    return a


def expand(d: Drawing) -> Drawn:
    a = Drawn()
    a.tensor(some(d))
    sizes = [
        d.random.choice([1, 2, 3]) if size == 1 else d.random.choice([size, -1])
        for size in d.values[a.names[0]].shape
    ]
    a.add([2] * d.random.randint(0, 1) + sizes)
    return a


def select(d: Drawing) -> Drawn:
    a = Drawn()
    a.tensor(some(d, 1))
    tensor = d.values[a.names[0]]
    dim = any_dim(d, tensor)
    a.add(dim, d.random.randrange(-tensor.shape[dim], tensor.shape[dim]))
    return a


def _slice(d: Drawing, tensor: torch.Tensor, dim: int) -> list:
    size = tensor.shape[dim]
    start = d.random.choice([None, d.random.randint(-size, size)])
    end = d.random.choice([None, d.random.randint(-size, size + 1), 2**63 - 1])
    return [start, end, d.random.choice([1, 1, 2, 3])]


def slice_(d: Drawing) -> Drawn:
    a = Drawn()
    a.tensor(some(d, 1))
    tensor = d.values[a.names[0]]
    dim = any_dim(d, tensor)
    a.add(dim, *_slice(d, tensor, dim))
    return a


def diagonal(d: Drawing) -> Drawn:
    a = Drawn()
    a.tensor(some(d, 2))
    first, second = d.random.sample(range(d.values[a.names[0]].dim()), 2)
    a.add(d.random.randint(-2, 2), first, second)
    return a


def unfold(d: Drawing) -> Drawn:
    a = Drawn()
    a.tensor(some(d, 1))
    tensor = d.values[a.names[0]]
    dim = any_dim(d, tensor)
    a.add(dim, d.random.randint(1, tensor.shape[dim]), d.random.randint(1, 2))
    return a


def as_strided(d: Drawing) -> Drawn:
    a = Drawn()
    a.tensor(some(d, wanted=lambda t: t.is_contiguous()))
    count = d.values[a.names[0]].numel()
    sizes, strides = [], []
    for _ in range(d.random.randint(0, 3)):
        sizes.append(d.random.randint(1, 3))
        strides.append(d.random.randint(0, max(count // 3, 1)))
    reach = sum((size - 1) * stride for size, stride in zip(sizes, strides))
    if reach >= count:
        raise ValueError("beyond the storage")
    a.add(sizes, strides)
    return a


def split(d: Drawing) -> Drawn:
    a = Drawn()
    a.tensor(some(d, 1))
    tensor = d.values[a.names[0]]
    dim = any_dim(d, tensor)
    a.add(d.random.randint(1, max(tensor.shape[dim], 1)), dim)
    return a


def split_with_sizes(d: Drawing) -> Drawn:
    a = Drawn()
    a.tensor(some(d, 1))
    tensor = d.values[a.names[0]]
    dim = any_dim(d, tensor)
    first = d.random.randint(0, tensor.shape[dim])
    a.add([first, tensor.shape[dim] - first], dim)
    return a


def scatter_of(viewed: Callable[[Drawing], Drawn], op) -> Callable[[Drawing], Drawn]:
    """Draws the arguments of `slice_scatter` and similar ops, in which the arguments of the
    view follow the source."""

    def rule(d: Drawing) -> Drawn:
        inner = viewed(d)
        arguments = [eval(text) for text in inner.texts[1:]]
        tensor = d.values[inner.names[0]]
        view = op(tensor, *arguments)
        if overlaps_itself(tensor) or overlaps_itself(view):
            raise ValueError("writes an element twice")
        source = operand(d, view, tensor.dtype, exact_shape=True)
        a = Drawn()
        a.tensor(inner.names[0])
        a.tensor(source)
        a.add(*arguments)
        return a

    return rule


def cat(d: Drawing) -> Drawn:
    first = some(d, 1)
    tensor = d.values[first]
    dim = any_dim(d, tensor)
    names = [first]
    for _ in range(d.random.randint(0, 2)):
        shape = list(tensor.shape)
        shape[dim] = d.random.randint(0, 3)
        names.append(d.leaf(shape, d.random.choice([tensor.dtype, d.dtype()])))
    d.random.shuffle(names)
    return Drawn([f"[{', '.join(names)}]", repr(dim)], names)


def roll(d: Drawing) -> Drawn:
    a = Drawn()
    a.tensor(some(d))
    rank = d.values[a.names[0]].dim()
    dims = d.random.sample(range(rank), d.random.randint(0, rank))
    a.add([d.random.randint(-4, 4) for _ in dims or [0]], dims)
    return a


def pad(number: int) -> Callable[[Drawing], Drawn]:
    def rule(d: Drawing) -> Drawn:
        a = Drawn()
        a.tensor(some(d, number + 1, number + 2, is_float))
        a.add([d.random.randint(-1, 2) for _ in range(2 * number)])
        return a

    return rule


def pixel_shuffle(d: Drawing) -> Drawn:
    a = Drawn()
    a.tensor(d.leaf([d.random.randint(1, 2), 4, 2, d.random.randint(1, 3)], F32))
    a.add(2)
    return a


def pixel_unshuffle(d: Drawing) -> Drawn:
    a = Drawn()
    a.tensor(d.leaf([d.random.randint(1, 2), 2, 4], F32))
    a.add(2)
    return a


def full(d: Drawing) -> Drawn:
    a = Drawn()
    a.add(d.shape(), scalar(d))
    if d.random.random() < 0.5:
        a.keyword("dtype", str(d.dtype()))
    a.keyword("device", "device")
    return a


def arange(d: Drawing) -> Drawn:
    a = Drawn()
    a.add(d.random.choice([1, 3, 5, 2.5]))
    return _ranged(d, a)


def arange_start(d: Drawing) -> Drawn:
    a = Drawn()
    a.add(d.random.choice([-2, 0, 1.5]), d.random.choice([2, 4, 5.5]))
    return _ranged(d, a)


def arange_step(d: Drawing) -> Drawn:
    a = arange_start(d)
    a.texts.insert(2, repr(d.random.choice([1, 2, 0.5])))
    return a


def _ranged(d: Drawing, a: Drawn) -> Drawn:
    if d.random.random() < 0.3:
        a.keyword("dtype", d.random.choice(["torch.float32", "torch.int32"]))
    a.keyword("device", "device")
    return a
