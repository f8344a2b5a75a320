"""The optimizers with which tests and benchmarks train each model."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import torch
from torch import optim

Parameters = Iterable[torch.nn.Parameter]

FORMS: dict[str, Callable[[Parameters], optim.Optimizer]] = {
    "sgd": lambda p: optim.SGD(p, lr=0.05),
    "sgd-momentum": lambda p: optim.SGD(p, lr=0.02, momentum=0.9, weight_decay=1e-3),
    "sgd-nesterov": lambda p: optim.SGD(p, lr=0.02, momentum=0.9, nesterov=True),
    "adam": lambda p: optim.Adam(p, lr=1e-3),
    "adamw": lambda p: optim.AdamW(p, lr=1e-3, weight_decay=0.01),
    "rmsprop": lambda p: optim.RMSprop(p, lr=2e-4),
    "adagrad": lambda p: optim.Adagrad(p, lr=3e-3),
}

FOREACH: dict[str, Callable[[Parameters], optim.Optimizer]] = {
    "sgd-foreach": lambda p: optim.SGD(
        p, lr=0.02, momentum=0.9, nesterov=True, weight_decay=1e-3, foreach=True
    ),
    "adam-foreach": lambda p: optim.Adam(p, lr=1e-3, foreach=True),
    "adamw-foreach": lambda p: optim.AdamW(p, lr=1e-3, foreach=True),
    "rmsprop-foreach": lambda p: optim.RMSprop(p, lr=2e-4, foreach=True),
    "adagrad-foreach": lambda p: optim.Adagrad(p, lr=3e-3, foreach=True),
}

ALL = FORMS | FOREACH
