"""Removes the implicit syncs of torch.distributions' argument checks.

`Distribution` checks for each parameter and sample whether all its elements satisfy a
constraint. The resulting bools are assumed to be true, traced with the step, and read after
the step has run: at the thread's next check, when it reads a value, at the end of a step,
or when the program waits for the device. A check that failed is then repeated with the
computed values, which raises PyTorch's error.
"""

from __future__ import annotations

import collections
import functools
import threading
from collections.abc import Callable
from typing import Any

import torch
from torch.distributions import Distribution

from torch_ltc import step
from torch_ltc._backend import bindings

Check = Callable[[], Any]


class _Deferred(threading.local):
    def __init__(self) -> None:
        # Bools that were assumed to be true, each with the check that computes it.
        self.checks: collections.deque[tuple[Any, Check]] = collections.deque()
        self.is_checking = False


_deferred = _Deferred()


def settle() -> None:
    """Raises the error of the first check that is known to have failed."""
    checks = _deferred.checks
    while checks and (holds := checks[0][0].value()) is not None:
        _, check = checks.popleft()
        if not holds:
            checks.clear()  # later failures are usually consequences of this one
            _raise(check)


def _raise(check: Check) -> None:
    _deferred.is_checking = True
    try:
        check()
    finally:
        _deferred.is_checking = False
    raise ValueError(
        "Arguments of a torch.distributions distribution didn't satisfy their "
        "constraints in an earlier step, and have been overwritten since; set "
        "torch_ltc.config.defer_checks = False to raise the error where it happens."
    )


def _defer(check: Check) -> None:
    if torch.compiler.is_compiling() or _deferred.is_checking:
        return check()
    backend = bindings()
    if not backend.config_get("defer_checks"):
        return check()
    settle()
    backend.begin_assuming()
    _deferred.is_checking = True
    try:
        check()
    finally:
        _deferred.is_checking = False
        assumed = backend.end_assuming()
    _deferred.checks.extend((truth, check) for truth in assumed)
    return None


def install() -> None:
    init, validate_sample = Distribution.__init__, Distribution._validate_sample

    @functools.wraps(init)
    def checked_init(self: Distribution, *args: Any, **kwargs: Any) -> None:
        _defer(lambda: init(self, *args, **kwargs))

    @functools.wraps(validate_sample)
    def checked_validate_sample(self: Distribution, value: torch.Tensor) -> None:
        _defer(lambda: validate_sample(self, value))

    step.after_steps.append(settle)
    bindings().set_failed_check_hook(settle)
    Distribution.__init__ = checked_init
    Distribution._validate_sample = checked_validate_sample
