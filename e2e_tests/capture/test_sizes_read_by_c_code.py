"""Python's C code reads the value of a traced size without calling the number: a captured
step must not be replayed for sizes at which such code would yield something else."""

from __future__ import annotations

import bisect
import collections
import itertools
import json
import math
import operator
import struct
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import torch_ltc
from comparison import assert_close

RARE = 37
FACTORS = [1.0] * 100
FACTORS[RARE] = 2.0
ARRAY = np.array(FACTORS)
ONE, TWO = "%d", "%d %d"
TEXT = "".join("b" if f == 2 else "a" for f in FACTORS)

#: Functions of a length whose value differs at one length only.
LOOKUPS: dict[str, Callable[[int], Any]] = {
    "list": lambda n: FACTORS[n],
    "tuple": lambda n: tuple(FACTORS)[n],
    "array": lambda n: float(ARRAY[n]),
    "text": lambda n: 1 + (TEXT[n] == "b"),
    "slice": lambda n: FACTORS[n:][0],
    "pop": lambda n: list(FACTORS).pop(n),
    "item": lambda n: operator.getitem(FACTORS, n),
    "islice": lambda n: next(itertools.islice(FACTORS, n, None)),
    "deque": lambda n: 1 + (len(collections.deque(FACTORS, n)) == RARE),
    "float product": lambda n: 1 + (1.0 * n == RARE),
    "float sum": lambda n: 1 + (0.5 + n == RARE + 0.5),
    "equal float": lambda n: 1 + (float(RARE) == n),
    "bool product": lambda n: 1 + (True * n == RARE),
    "complex": lambda n: 1 + (1j * n == RARE * 1j),
    "range": lambda n: 1 + (range(n)[-1] == RARE - 1),
    "loop": lambda n: FACTORS[sum(1 for _ in range(n))],
    "in range": lambda n: 1 + (n in range(RARE, 100, 50)),
    "bytes": lambda n: 1 + (len(bytes(n)) == RARE),
    "gcd": lambda n: 1 + (math.gcd(n, RARE) != 1),
    "bisect": lambda n: 1 + (bisect.bisect([RARE - 1, RARE], n) == 2 and n == RARE),
    "power": lambda n: 1 + (pow(n, 2, RARE) == 0),
    "bits": lambda n: 1 + (n.bit_count() == 3 and n & 63 == RARE),
    "real": lambda n: 1 + (n.real == RARE),
    "bytes of a number": lambda n: 1 + (n.to_bytes(2, "big") == b"\0\x25"),
    "character": lambda n: 1 + (chr(n) == chr(RARE)),
    "binary": lambda n: 1 + (bin(n) == bin(RARE)),
    "format": lambda n: 1 + (ONE % n == str(RARE)),
    "format of two": lambda n: 1 + (TWO % (1, n) == f"1 {RARE}"),
    "json": lambda n: 1 + (json.dumps([n]) == f"[{RARE}]"),
    "struct": lambda n: 1 + (struct.pack("i", n) == struct.pack("i", RARE)),
    "zeros": lambda n: 1 + (np.zeros(n).size == RARE),
    "type": lambda n: 1 + (type(n) is int and n == RARE),
    "CPU length": lambda n: FACTORS[torch.zeros(n).shape[0]],
    "CPU tensor": lambda n: torch.tensor(FACTORS)[n].to("lazy"),
}
#: The same for functions of a tensor.
READS: dict[str, Callable[[torch.Tensor], Any]] = {
    "text of the shape": lambda x: 1 + (f", {RARE}]" in str(x.shape)),
    "numel of the shape": lambda x: 1 + (x.shape.numel() == 4 * RARE),
    "parts": lambda x: 1 + (len(x.unbind(1)) == RARE),
    "rows": lambda x: 1 + (len(list(x.t())) == RARE),
    "pieces": lambda x: 1 + (len(x.split(1, dim=1)) == RARE),
}


def check(factor: Callable[[torch.Tensor], Any]) -> None:
    """Calls a step with many lengths, and then with the rare one."""
    step = torch_ltc.capture(lambda x: x * factor(x))
    for n in (20, 60, 25, 50, 30, 41, 22, 55, 43, 26, 35, 31, 49, 57, RARE, 44):
        x = torch.ones(4, n, device="lazy")
        assert_close(step(x), torch.full((4, n), 2.0 if n == RARE else 1.0))


@pytest.mark.parametrize("name", LOOKUPS)
def test_numbers_read_by_c_code(name: str) -> None:
    check(lambda x: LOOKUPS[name](x.shape[1]))


@pytest.mark.parametrize("name", READS)
def test_sizes_read_by_c_code(name: str) -> None:
    check(READS[name])


class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.length = x.shape[1]
        return x * 1

    @staticmethod
    def backward(ctx, gradient):
        return gradient * (2.0 if ctx.length == RARE else 1.0)


def gradient(x: torch.Tensor) -> torch.Tensor:
    leaf = x.detach().requires_grad_()
    Scaled.apply(leaf).sum().backward()
    return leaf.grad


def test_sizes_of_a_leaf_in_a_custom_gradient() -> None:
    check(gradient)


def test_sizes_are_read_below_a_transform() -> None:
    check(lambda x: torch.vmap(lambda row: row * 0 + FACTORS[row.shape[0]])(x))
    check(lambda x: torch.func.grad(lambda t: t.sum() * FACTORS[t.shape[1]])(x))


def test_products_with_a_float_first_are_traced() -> None:
    """`0.5 * n` is as good as `n * 0.5`."""
    step = torch_ltc.capture(lambda x: x * (0.5 * x.shape[0]))
    for n in (20, 60, 25, 50, 30, 41, 22, 55, 23, 54):
        assert_close(step(torch.ones(n, device="lazy")), torch.full((n,), 0.5 * n))
    assert step.replays >= 4, step.fallbacks


def test_an_error_in_a_call_restores_python() -> None:
    functions = vars(math).copy()

    @torch_ltc.capture
    def step(x):
        if x.shape[0] == 7:
            raise KeyError(7)
        return x * FACTORS[x.shape[0]]

    for n in (4, 5, 6, 7):
        try:
            step(torch.ones(n, device="lazy"))
        except KeyError:
            assert n == 7
    assert vars(math) == functions
    assert "shape" not in vars(torch.Tensor)
    assert type(torch.ones(3, device="lazy").shape[0]) is int


def uses_of_numbers(n: int) -> bool:
    """Whether Python's types compute with plain numbers as usual."""
    values = list(range(n))
    x = torch.ones(n, 3)
    return (
        sum(i * 0.5 for i in values) == sum(values) / 2
        and values[n - 1] == n - 1
        and ONE % n == str(n)
        and json.loads(json.dumps(values)) == values
        and list(itertools.islice(values, 1)) == [0]
        and np.zeros(n).shape == (n,)
        and math.sqrt(n * n) == n
        and x.shape == (n, 3)
        and type(x.shape[0]) is int
        and len(x) == n
        and [1.5] * n == [1.5 for _ in values]
    )


def test_other_threads_see_plain_numbers() -> None:
    """The replaced functions of built-in types are those of the whole process."""
    is_done = threading.Event()
    results: list[bool] = []

    def work() -> None:
        while not is_done.is_set():
            results.extend(uses_of_numbers(n) for n in (2, 9, 30))

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(8):
            check(lambda x: FACTORS[x.shape[1]])
    finally:
        is_done.set()
        for thread in threads:
            thread.join()
    assert len(results) > 100 and all(results)
