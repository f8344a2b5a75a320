"""Arguments of matrix products, network layers and losses."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from fuzz.arguments import Drawn, is_float, operand
from fuzz.choices import F32, any_dim, floats, some

if TYPE_CHECKING:
    from fuzz.drawing import Drawing


def product(*letters: str, added: str | None = None, scaled: bool = False):
    """Draws operands whose dimensions are named by letters; the operand `added` broadcasts
    to the result."""

    def rule(d: Drawing) -> Drawn:
        sizes = {letter: d.length(1, 5) for letter in "bnkm"}
        first = letters[0]
        name = d.pick(lambda t: t.dim() == len(first) and t.dtype != torch.bool)
        dtype = F32
        if name and d.random.random() < 0.7:
            dtype = d.values[name].dtype
            sizes.update(zip(first, d.values[name].shape))
        else:
            name = d.leaf([sizes[letter] for letter in first], dtype)
        a = Drawn()
        if added is not None:
            shape = [sizes[letter] for letter in added]
            if d.random.random() < 0.5 and shape:
                shape = shape[1:]
            a.tensor(d.leaf(shape, dtype))
        a.tensor(name)
        for operand_letters in letters[1:]:
            shape = [sizes[letter] for letter in operand_letters]
            chosen = d.pick(lambda t, s=shape: list(t.shape) == s and t.dtype == dtype)
            a.tensor(chosen or d.leaf(shape, dtype))
        if scaled and d.random.random() < 0.5:
            a.keyword("beta", repr(d.random.choice([0, 1, 2])))
            a.keyword("alpha", repr(d.random.choice([1, 2, -1])))
        return a

    return rule


def convolution(d: Drawing) -> Drawn:
    number = d.random.choice([1, 2, 2, 2, 3])
    groups = d.random.choice([1, 1, 2])
    transposed = d.random.random() < 0.3
    channels, outputs = 2 * d.length(1, 2), 2 * d.length(1, 2)
    kernel = [d.random.randint(1, 3) for _ in range(number)]
    image = [d.length(3, 5) for _ in range(number)]
    dtype = d.random.choice([F32, F32, torch.float64, torch.bfloat16])
    a = Drawn()
    a.tensor(d.leaf([d.length(1, 2), channels, *image], dtype))
    weight = [channels, outputs // groups] if transposed else [outputs, channels // groups]  # fmt: skip
    a.tensor(d.leaf([*weight, *kernel], dtype))
    if d.random.random() < 0.5:
        a.tensor(d.leaf([outputs], dtype))
    else:
        a.add(None)
    ones = [1] * number
    stride = [d.random.randint(1, 2) for _ in ones]
    a.add(stride, [d.random.randint(0, 1) for _ in ones])
    a.add([d.random.choice([1, 1, 2]) for _ in ones], transposed, [0] * number, groups)
    return a


def max_pool2d(d: Drawing) -> Drawn:
    a = _image(d)
    a.add([2, d.random.randint(1, 3)], [d.random.randint(1, 2), 1])
    a.add([d.random.randint(0, 1), 0], [1, 1], d.random.random() < 0.5)
    return a


def avg_pool2d(d: Drawing) -> Drawn:
    a = _image(d)
    a.add([2, d.random.randint(1, 3)], [d.random.randint(1, 2), 1])
    a.add([d.random.randint(0, 1), 0], d.random.random() < 0.5)
    a.add(d.random.random() < 0.5, d.random.choice([None, 3]))
    return a


def _image(d: Drawing) -> Drawn:
    a = Drawn()
    found = d.pick(
        lambda t: t.dim() in (3, 4) and is_float(t) and min(t.shape[-2:]) > 2
    )
    shape = [2, d.length(1, 3), d.length(3, 6), 4]
    a.tensor(found or d.leaf(shape[d.random.randint(0, 1) :], F32))
    return a


def adaptive_pool2d(d: Drawing) -> Drawn:
    a = _image(d)
    a.add([d.random.randint(1, 4), d.random.randint(1, 4)])
    return a


def upsample(d: Drawing) -> Drawn:
    a = Drawn()
    a.tensor(floats(d, 4))
    a.add([d.random.randint(1, 6), d.random.randint(1, 6)])
    return a


def _optional(d: Drawing, a: Drawn, shape, dtype) -> None:
    if d.random.random() < 0.6:
        a.tensor(d.leaf(shape, dtype))
    else:
        a.add(None)


def layer_norm(d: Drawing) -> Drawn:
    a = Drawn()
    a.tensor(some(d, 1, wanted=is_float))
    tensor = d.values[a.names[0]]
    shape = list(tensor.shape[d.random.randrange(tensor.dim()) :])
    a.add(shape)
    _optional(d, a, shape, tensor.dtype)
    _optional(d, a, shape, tensor.dtype)
    a.add(0.125)
    return a


def batch_norm(d: Drawing) -> Drawn:
    a = Drawn()
    a.tensor(some(d, 2, wanted=lambda t: t.dtype in (F32, torch.float64)))
    tensor = d.values[a.names[0]]
    channels = [tensor.shape[1]]
    _optional(d, a, channels, tensor.dtype)
    _optional(d, a, channels, tensor.dtype)
    # The op writes running statistics in place, against its schema; they are None here.
    a.add(None, None, True, 0.5, 0.125)
    return a


def group_norm(d: Drawing) -> Drawn:
    a = Drawn()
    a.tensor(some(d, 3, wanted=lambda t: t.dtype in (F32, torch.float64)))
    tensor = d.values[a.names[0]]
    channels = tensor.shape[1]
    _optional(d, a, [channels], tensor.dtype)
    _optional(d, a, [channels], tensor.dtype)
    rest = tensor.numel() // max(tensor.shape[0] * channels, 1)
    groups = d.random.choice([g for g in (1, 2, 3, channels) if channels % g == 0])
    a.add(tensor.shape[0], channels, rest, groups, 0.125)
    return a


def nll_loss(dims: int) -> Callable[[Drawing], Drawn]:
    def rule(d: Drawing) -> Drawn:
        a = Drawn()
        a.tensor(floats(d, dims))
        tensor = d.values[a.names[0]]
        classes, dtype = tensor.shape[1], tensor.dtype
        a.tensor(d.indices(classes, [tensor.shape[0], *tensor.shape[2:]]))
        _optional(d, a, [classes], dtype)
        a.add(d.random.randint(0, 2), d.random.choice([-100, 0]))
        return a

    return rule


def binary_cross_entropy(d: Drawing) -> Drawn:
    a = Drawn()
    name = some(d, wanted=is_float)
    tensor = d.values[name]
    a.texts, a.names = [f"aten.sigmoid.default({name})"], [name]
    target = operand(d, tensor, tensor.dtype, exact_shape=True)
    a.texts.append(f"aten.sigmoid.default({target})")
    a.names.append(target)
    a.add(None, d.random.randint(0, 2))
    return a


def softmax(d: Drawing) -> Drawn:
    a = Drawn()
    a.tensor(some(d, wanted=is_float))
    a.add(any_dim(d, d.values[a.names[0]]), False)
    return a


def dropout(d: Drawing) -> Drawn:
    a = Drawn()
    a.tensor(some(d, wanted=is_float))
    a.add(d.random.choice([0.0, 0.25, 0.5, 1.0]), True)
    return a


def bernoulli(d: Drawing) -> Drawn:
    a = Drawn()
    name = some(d, wanted=is_float)
    a.texts, a.names = [f"aten.clamp.default({name}, 0, 1)"], [name]
    return a


def bernoulli_p(d: Drawing) -> Drawn:
    a = Drawn()
    a.tensor(some(d, wanted=is_float))
    a.add(d.random.choice([0.0, 0.25, 0.5, 1.0]))
    return a


def norm(d: Drawing) -> Drawn:
    a = Drawn()
    a.tensor(some(d, wanted=is_float))
    tensor = d.values[a.names[0]]
    order = d.random.choice([1, 2, 2, float("inf"), 0])
    if order == 0 and d.exactness.rounded(tensor):
        raise ValueError("counts zeros of rounded numbers")
    a.add(order)
    a.add([any_dim(d, tensor)] if tensor.dim() else [], d.random.random() < 0.5)
    a.texts = [text.replace("inf", "float('inf')") for text in a.texts]
    return a


def norm_all(d: Drawing) -> Drawn:
    a = norm(d)
    del a.texts[2:]
    return a


def shift(by_scalar: bool) -> Callable[[Drawing], Drawn]:
    """Draws shifts by 0 to 3 bits, because shifts by the width or more are undefined in
    C++."""

    def rule(d: Drawing) -> Drawn:
        a = Drawn()
        a.tensor(some(d, wanted=lambda t: not is_float(t) and t.dtype != torch.bool))
        tensor = d.values[a.names[0]]
        if by_scalar:
            a.add(d.random.randint(0, 3))
        else:
            a.tensor(d.indices(4, tensor.shape))
        return a

    return rule
