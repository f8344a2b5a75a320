"""Arguments of ops that read and write by index, and of sorts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from fuzz.arguments import Drawn, operand
from fuzz.choices import F32, any_dim, floats, size_at, some

if TYPE_CHECKING:
    from fuzz.drawing import Drawing


def _index_of(d: Drawing, least: int = 1) -> tuple[Drawn, torch.Tensor, int]:
    a = Drawn()
    a.tensor(some(d, least))
    tensor = d.values[a.names[0]]
    dim = any_dim(d, tensor)
    a.add(dim)
    return a, tensor, dim


def _index_vector(d: Drawing, a: Drawn, tensor, dim: int, unique=False) -> int:
    """Adds a vector of indices along `dim` to the arguments; returns its length."""
    size = size_at(tensor, dim)
    if unique:
        a.tensor(d.leaf([size], torch.int64, "order"))
        # `order` returns integers around 0, which the addition makes nonnegative.
        a.texts[-1] = f"{a.texts[-1]} + {size // 2}"
        return size
    count = d.random.randint(1, 4)
    a.tensor(d.indices(size, [count]))
    return count


def index_select(d: Drawing) -> Drawn:
    a, tensor, dim = _index_of(d)
    _index_vector(d, a, tensor, dim)
    return a


def _source(d: Drawing, tensor: torch.Tensor, dim: int, count: int) -> str:
    shape = list(tensor.shape)
    shape[dim] = count
    return d.leaf(shape, tensor.dtype)


def index_add(d: Drawing) -> Drawn:
    a, tensor, dim = _index_of(d)
    count = _index_vector(d, a, tensor, dim)
    a.tensor(_source(d, tensor, dim, count))
    if d.random.random() < 0.5:
        a.keyword("alpha", repr(d.random.choice([2, -1])))
    return a


def index_copy(d: Drawing) -> Drawn:
    a, tensor, dim = _index_of(d)
    count = _index_vector(d, a, tensor, dim, unique=True)
    a.tensor(_source(d, tensor, dim, count))
    return a


def index_reduce(d: Drawing) -> Drawn:
    a, tensor, dim = _index_of(d)
    count = _index_vector(d, a, tensor, dim)
    a.tensor(_source(d, tensor, dim, count))
    a.add(d.random.choice(["prod", "mean", "amax", "amin"]))
    a.keyword("include_self", repr(d.random.random() < 0.5))
    return a


def index_fill(d: Drawing) -> Drawn:
    a, tensor, dim = _index_of(d)
    _index_vector(d, a, tensor, dim)
    a.add(d.random.choice([0, 1, 2]))
    return a


def index_fill_tensor(d: Drawing) -> Drawn:
    a, tensor, dim = _index_of(d)
    _index_vector(d, a, tensor, dim)
    a.tensor(d.leaf([], tensor.dtype))
    return a


def _index_like(d: Drawing, tensor: torch.Tensor, dim: int) -> tuple[str, list[int]]:
    shape = [d.random.randint(1, size) for size in tensor.shape]
    if shape:
        shape[dim] = d.random.randint(1, 4)
    return d.indices(size_at(tensor, dim), shape), shape


def gather(d: Drawing) -> Drawn:
    a, tensor, dim = _index_of(d, 0)
    a.tensor(_index_like(d, tensor, dim)[0])
    return a


def _positions_once(d: Drawing, tensor, dim: int) -> tuple[str, list[int]]:
    """Returns an index that writes no element twice, and the index's shape. It isn't
    specified which of several writes to an element wins."""
    shape = list(tensor.shape)
    name = d.new_name()
    from fuzz.program import Line

    size = size_at(tensor, dim)
    text = f"{name} = order({d.random.randrange(1000)}, {[size]}, torch.int64)"
    spread = [1] * max(len(shape), 1)
    spread[dim] = size
    target = shape or [1]
    text += f".add({size // 2}).reshape({spread if shape else []}).expand({target if shape else []}).clone()"
    d.add(Line(text, set(), [name]))
    return name, shape


def scatter(d: Drawing) -> Drawn:
    a, tensor, dim = _index_of(d, 0)
    index, shape = _positions_once(d, tensor, dim)
    a.tensor(index)
    a.tensor(d.leaf(shape, tensor.dtype))
    return a


def scatter_add(d: Drawing) -> Drawn:
    a, tensor, dim = _index_of(d, 0)
    index, shape = _index_like(d, tensor, dim)
    a.tensor(index)
    a.tensor(d.leaf(shape, tensor.dtype))
    return a


def scatter_value(d: Drawing) -> Drawn:
    a, tensor, dim = _index_of(d, 0)
    a.tensor(_index_like(d, tensor, dim)[0])
    a.add(d.random.choice([0, 1, 2]))
    return a


def scatter_reduce(d: Drawing) -> Drawn:
    a = scatter_add(d)
    a.add(d.random.choice(["sum", "prod", "mean", "amax", "amin"]))
    a.keyword("include_self", repr(d.random.random() < 0.5))
    return a


def scatter_with(d: Drawing) -> Drawn:
    a = scatter_add(d)
    a.keyword("reduce", repr(d.random.choice(["add", "multiply"])))
    return a


def scatter_value_with(d: Drawing) -> Drawn:
    a = scatter_value(d)
    a.keyword("reduce", repr(d.random.choice(["add", "multiply"])))
    return a


def _index_list(d: Drawing, tensor: torch.Tensor) -> tuple[str, list[str]]:
    texts, names, shape = [], [], d.shape(0, 2)
    for size in tensor.shape[: d.random.randint(1, tensor.dim())]:
        if d.random.random() < 0.3:
            texts.append("None")
            continue
        short = [s if d.random.random() < 0.8 else 1 for s in shape]
        names.append(d.indices(size, short))
        texts.append(names[-1])
    if not names:
        raise ValueError("no index")
    return f"[{', '.join(texts)}]", names


def _mask(d: Drawing, tensor: torch.Tensor) -> tuple[str, list[str]]:
    """Returns a list of indices with one mask over consecutive dims of `tensor`."""
    begin = d.random.randrange(tensor.dim())
    end = d.random.randint(begin + 1, tensor.dim())
    name = d.leaf(tensor.shape[begin:end], torch.bool)
    return f"[{'None, ' * begin}{name}]", [name]


def index(d: Drawing) -> Drawn:
    a = Drawn()
    a.tensor(some(d, 1))
    choose = _mask if d.random.random() < 0.3 else _index_list
    text, names = choose(d, d.values[a.names[0]])
    a.texts.append(text)
    a.names += names
    return a


def index_put(d: Drawing) -> Drawn:
    """Draws calls that accumulate unless the index is a mask, because otherwise it isn't
    specified which of several writes to an element wins."""
    a = index(d)
    has_mask = d.values[a.names[-1]].dtype == torch.bool
    tensor = d.values[a.names[0]]
    picked = eval(f"torch.ops.aten.index({', '.join(a.texts)})", {"torch": torch, **d.values})  # fmt: skip
    a.tensor(operand(d, picked, tensor.dtype))
    a.add(not has_mask or d.random.random() < 0.3)
    return a


def put(d: Drawing) -> Drawn:
    a = Drawn()
    a.tensor(some(d))
    tensor = d.values[a.names[0]]
    shape = d.shape(0, 2)
    a.tensor(d.indices(tensor.numel(), shape))
    a.tensor(d.leaf(shape, tensor.dtype))
    a.add(True)
    return a


def masked_scatter(d: Drawing) -> Drawn:
    a = Drawn()
    a.tensor(some(d))
    tensor = d.values[a.names[0]]
    a.tensor(operand(d, tensor, torch.bool))
    a.tensor(d.leaf([tensor.numel()], tensor.dtype))
    return a


def searchsorted(d: Drawing) -> Drawn:
    a = Drawn()
    edges = d.leaf([d.random.randint(1, 6)], F32, "grid")
    a.texts = [f"aten.sort.stable({edges}, stable=True)[0]"]
    a.names = [edges]
    a.tensor(some(d, wanted=lambda t: t.dtype == F32))
    a.keyword("right", repr(d.random.random() < 0.5))
    return a


def searchsorted_scalar(d: Drawing) -> Drawn:
    a = searchsorted(d)
    a.texts[1] = repr(d.random.choice([-1, 0.5, 2]))
    a.names = a.names[:1]
    return a


def bucketize(d: Drawing) -> Drawn:
    a = searchsorted(d)
    a.texts[:2] = [a.texts[1], a.texts[0]]
    a.names.reverse()
    return a


def embedding(d: Drawing) -> Drawn:
    a = Drawn()
    a.tensor(floats(d, 2))
    a.tensor(d.indices(d.values[a.names[0]].shape[0], d.shape(0, 2)))
    return a


def _distinct(d: Drawing) -> tuple[Drawn, torch.Tensor]:
    a = Drawn()
    dtype = d.random.choice([F32, torch.int64, torch.float64, torch.int32])
    a.tensor(d.leaf(d.shape(1, 3), dtype, "order"))
    return a, d.values[a.names[0]]


def topk(d: Drawing) -> Drawn:
    a, tensor = _distinct(d)
    dim = any_dim(d, tensor)
    a.add(d.random.randint(1, tensor.shape[dim]), dim, d.random.random() < 0.5)
    return a


def sort_stable(d: Drawing) -> Drawn:
    a = Drawn()
    a.tensor(some(d))
    a.keyword("stable", "True")
    a.keyword("dim", repr(any_dim(d, d.values[a.names[0]])))
    a.keyword("descending", repr(d.random.random() < 0.5))
    return a
