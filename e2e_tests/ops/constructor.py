"""Tensors created from sizes and numbers only."""

from __future__ import annotations

import torch
from ops.program import ALL, BOOL, F32, F64, FLOATS, I32, I64, NUMBERS, Row, any_of

x = any_of(3, 4)


def _on(function):
    """Returns a row's function: its tensor only provides the constructor's dtype and
    device."""
    return lambda a: function(dict(dtype=a.dtype, device=a.device))


ROWS = [
    Row("zeros", _on(lambda o: torch.zeros(2, 3, **o)), (x,), ALL, grad=False),
    Row("ones", _on(lambda o: torch.ones(2, 3, **o)), (x,), ALL, grad=False),
    Row("full", _on(lambda o: torch.full((2, 3), 7, **o)), (x,), ALL, grad=False),
    Row("full-inf", _on(lambda o: torch.full((2,), float("-inf"), **o)), (x,), FLOATS, grad=False),
    Row("scalar", _on(lambda o: torch.tensor(3, **o) + 1), (x,), NUMBERS, grad=False),
    Row("from-list", _on(lambda o: torch.tensor([[1, 0], [3, 4]], **o)), (x,), ALL, grad=False),
    Row("arange", _on(lambda o: torch.arange(7, **o)), (x,), NUMBERS, grad=False),
    Row("arange-start", _on(lambda o: torch.arange(2, 9, **o)), (x,), NUMBERS, grad=False),
    Row("arange-step", _on(lambda o: torch.arange(1, 10, 3, **o)), (x,), NUMBERS, grad=False),
    Row("arange-float", _on(lambda o: torch.arange(0, 1, 0.125, **o)), (x,), FLOATS, grad=False),
    Row("linspace", _on(lambda o: torch.linspace(-1, 1, 9, **o)), (x,), (F32, F64), grad=False),
    Row("eye", _on(lambda o: torch.eye(3, **o)), (x,), ALL, grad=False),
    Row("eye-wide", _on(lambda o: torch.eye(3, 5, **o)), (x,), NUMBERS, grad=False),
    Row("zeros_like", torch.zeros_like, (x,), ALL, grad=False),
    Row("ones_like", lambda a: torch.ones_like(a) + a, (x,), NUMBERS),
    Row("full_like", lambda a: torch.full_like(a, 3), (x,), ALL, grad=False),
    Row("zeros_like-dtype", lambda a: torch.zeros_like(a, dtype=I32), (x,), ALL, grad=False),
    Row("new_zeros", lambda a: a.new_zeros(2, 2), (x,), ALL, grad=False),
    Row("new_ones", lambda a: a.new_ones(2, 2), (x,), ALL, grad=False),
    Row("new_full", lambda a: a.new_full((2, 2), 5), (x,), ALL, grad=False),
    Row("empty-then-fill", lambda a: torch.empty_like(a).fill_(2), (x,), ALL, grad=False),
    Row("empty-then-copy", lambda a: torch.empty(3, 4, dtype=a.dtype, device=a.device).copy_(a), (x,), ALL, grad=False),
    Row("tril_indices", _on(lambda o: torch.tril_indices(3, 4, device=o["device"])), (x,), (I64,), grad=False),
    Row("triu_indices", _on(lambda o: torch.triu_indices(3, 4, 1, device=o["device"])), (x,), (I64,), grad=False),
    Row("causal-mask", _on(lambda o: torch.ones(5, 5, **o).triu(1)), (x,), (BOOL, F32), grad=False),
]  # fmt: skip
