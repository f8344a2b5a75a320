"""For calls of each recorded op at random sizes, the general graph of two traces yields
exactly the trace at a third size, or rejects that size.
"""

from __future__ import annotations

import contextlib
from typing import Any

import general_graphs
import pytest
import torch
from fuzz.recorded_calls import Call, recorded_calls, tensors
from torch.utils._pytree import tree_map

DRAWS = 5
#: How many of the 583 recorded ops, including decomposed ones, must be traced at more than
#: two sizes of one skeleton.
LEAST_OPS = 450
#: Arguments of windows, which may vary independently of sizes.
WINDOWS = {"kernel_size", "stride", "padding", "dilation", "divisor_override"}


def _grown(call: Call, seed: int) -> Call:
    """Returns the call at different sizes."""
    growth = general_graphs.Growth(seed)

    def other(value: Any) -> Any:
        return growth.tensor(value) if isinstance(value, torch.Tensor) else value

    args, kwargs = tree_map(other, (call.args, call.kwargs))
    given = call.op._schema.arguments
    args = tuple(_argument(growth, spec, value) for spec, value in zip(given, args))
    return Call(call.op, args, kwargs)


def _argument(growth: general_graphs.Growth, spec: Any, value: Any) -> Any:
    if spec.name in WINDOWS:
        return _windows(growth, value)
    return _numbers(growth, value) if "SymInt" in str(spec.real_type) else value


def _numbers(growth: general_graphs.Growth, value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [growth.number(number) for number in value]
    return growth.number(value) if isinstance(value, int) else value


def _windows(growth: general_graphs.Growth, value: Any) -> Any:
    """Numbers below 2 may be lowered differently, so they stay as they are."""
    if isinstance(value, (list, tuple)):
        return [_windows(growth, number) for number in value]
    if type(value) is not int or value < 2:
        return value
    return value + growth.random.randint(0, 2)


def _traced(call: Call) -> Any:
    def run() -> Any:
        args, kwargs = tree_map(
            lambda v: v.to("lazy") if isinstance(v, torch.Tensor) else v,
            (call.args, call.kwargs),
        )
        # Constructors have no operand that determines the device.
        if not tensors((args, kwargs)) and "device" in _names(call):
            kwargs["device"] = "lazy"
        return call.op(*args, **kwargs)

    with contextlib.suppress(RuntimeError, IndexError, ValueError, TypeError):
        return general_graphs.trace(run)
    return None  # the sizes don't match each other


def _names(call: Call) -> set[str]:
    return {argument.name for argument in call.op._schema.arguments}


def _check(call: Call) -> general_graphs.Outcome:
    programs = [_traced(_grown(call, seed)) for seed in range(DRAWS)]
    return general_graphs.check([p for p in programs if p is not None], stages=False)


def test_each_op(request: pytest.FixtureRequest) -> None:
    most = None if request.config.getoption("--full") else 2
    general = set()
    for name, calls in recorded_calls().items():
        for call in calls[:most]:
            try:
                outcome = _check(call)
            except AssertionError as error:
                raise AssertionError(f"{name}: {call.args} {call.kwargs}") from error
            if outcome.bound:
                general.add(name)
    assert len(general) >= LEAST_OPS, len(general)
