"""Random ops: for each seed, their results are exactly eager's."""

from __future__ import annotations

import torch
from ops.program import F32, F64, FLOATS, I64, NUMBERS, WIDE, Row, any_of, positive
from torch.nn import functional as F

x = any_of(40, 5)


def _on(function):
    return lambda a: function(dict(dtype=a.dtype, device=a.device))


ROWS = [
    Row("rand", _on(lambda o: torch.rand(40, 5, **o)), (x,), FLOATS, grad=False),
    Row("randn", _on(lambda o: torch.randn(40, 5, **o)), (x,), FLOATS, grad=False),
    Row("randn-small", _on(lambda o: torch.randn(3, **o)), (x,), WIDE, grad=False),
    Row("randint", _on(lambda o: torch.randint(10, (40,), **o)), (x,), NUMBERS, grad=False),
    Row("randint-low", _on(lambda o: torch.randint(-5, 5, (40,), **o)), (x,), (I64, F32), grad=False),
    Row("randperm", _on(lambda o: torch.randperm(50, **o)), (x,), (I64,), grad=False),
    Row("rand_like", torch.rand_like, (x,), FLOATS, grad=False),
    Row("randn_like", torch.randn_like, (x,), FLOATS, grad=False),
    Row("randint_like", lambda a: torch.randint_like(a, 9), (x,), NUMBERS, grad=False),
    Row("bernoulli", torch.bernoulli, (any_of(40, 5, low=0, high=1),), FLOATS, grad=False),
    Row("bernoulli-p", lambda a: torch.bernoulli(a, 0.3), (x,), FLOATS, grad=False),
    Row("randint_like-low", lambda a: torch.randint_like(a, -4, 9), (x,), NUMBERS, grad=False),
    Row("normal-around", lambda a: torch.normal(a, 0.5), (x,), WIDE),
    Row("cauchy_", lambda a: torch.empty_like(a).cauchy_(), (x,), WIDE, grad=False),
    Row("bernoulli_", lambda a: torch.empty_like(a).bernoulli_(0.3), (x,), FLOATS, grad=False),
    Row("uniform_", lambda a: torch.empty_like(a).uniform_(-2, 3), (x,), FLOATS, grad=False),
    Row("normal_", lambda a: torch.empty_like(a).normal_(1, 0.5), (x,), FLOATS, grad=False),
    Row("exponential_", lambda a: torch.empty_like(a).exponential_(2), (x,), WIDE, grad=False),
    Row("random_", lambda a: torch.empty_like(a).random_(), (x,), NUMBERS, grad=False),
    Row("random_-to", lambda a: torch.empty_like(a).random_(9), (x,), NUMBERS, grad=False),
    Row("random_-from", lambda a: torch.empty_like(a.t()).random_(-3, 9), (x,), (I64, F32), grad=False),
    Row("dropout", lambda a: F.dropout(a, 0.4, True), (x,), FLOATS),
    Row("dropout-twice", lambda a: F.dropout(F.dropout(a, 0.2, True) * 2, 0.5, True), (x,), FLOATS),
    Row("dropout-all", lambda a: F.dropout(a, 1.0, True), (x,), FLOATS),
    Row("dropout-none", lambda a: F.dropout(a, 0.0, True), (x,), FLOATS),
    Row("dropout-eval", lambda a: F.dropout(a, 0.4, False) * 1, (x,), FLOATS),
    Row("alpha_dropout", lambda a: F.alpha_dropout(a, 0.3, True), (x,), WIDE),
    Row("feature_dropout", lambda a: F.dropout2d(a, 0.4, True), (any_of(4, 6, 3, 3),), WIDE),
    Row("rrelu-eval", lambda a: F.rrelu(a, training=False), (positive(4, 5),), WIDE, reason="rrelu_with_noise"),
    Row("multinomial", lambda a: torch.multinomial(a, 3), (positive(4, 9),), WIDE, grad=False),
    Row("multinomial-one", lambda a: torch.multinomial(a, 1), (positive(9),), WIDE, grad=False),
    Row("multinomial-replacement", lambda a: torch.multinomial(a, 20, True), (positive(4, 9),), WIDE, grad=False),
    Row("multinomial-halves", lambda a: torch.multinomial(a, 50, True), (positive(6, 5),), (torch.bfloat16, torch.float16), grad=False),
    Row("multinomial-transposed", lambda a: torch.multinomial(a.t(), 2), (positive(4, 9),), WIDE, grad=False),
    Row("normal-transposed", lambda a, b: torch.normal(a.t(), b.t()), (x, positive(40, 5)), WIDE, grad=False),
    Row("normal-around-transposed", lambda a: torch.normal(a.t(), 0.5), (x,), WIDE, grad=False),
    Row("normal-broadcast", lambda a, b: torch.normal(a, b), (x, positive(5)), WIDE, grad=False),
    Row("normal-tensors", lambda a, b: torch.normal(a, b), (x, positive(40, 5)), WIDE, grad=False),
    Row("normal-scaled", lambda b: torch.normal(2.0, b), (positive(4, 5),), WIDE, grad=False),
    Row("normal-numbers", lambda a: torch.normal(2.0, 0.5, (3, 4), dtype=a.dtype, device=a.device), (x,), WIDE, grad=False),
    Row("order-with-cpu", lambda a: torch.rand(3).to(a) + torch.rand(3, dtype=a.dtype, device=a.device), (x,), (F32, F64), grad=False),
]  # fmt: skip
