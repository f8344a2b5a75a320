"""Device `lazy` raises eager's errors for the error inputs in PyTorch's databases of ops,
modules and optimizers."""

from __future__ import annotations

import pytest
from sweeps import errors


def _ids(entries) -> list:
    return [pytest.param(info, id=name) for name, info in entries]


def _check(calls) -> None:
    found = [text for call in calls if (text := errors.difference(call))]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("op", _ids(errors.ops()))
def test_op(op) -> None:
    _check(errors.of_op(op))


@pytest.mark.parametrize("info", _ids(errors.modules()))
def test_module(info) -> None:
    _check(errors.of_module(info))


@pytest.mark.parametrize("info", _ids(errors.optimizers()))
def test_optimizer(info) -> None:
    _check(errors.of_optimizer(info))
