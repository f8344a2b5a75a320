"""Compares the errors (class and message) of device `lazy` with eager's, in the error cases
of PyTorch's databases of ops, modules and optimizers."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch_ltc
from fuzz.odd_calls import settle, words
from sweeps.opinfo import Mover, entry_name
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.common_modules import module_db
from torch.testing._internal.common_optimizers import optim_db
from torch.utils._pytree import tree_map

#: A function of a device that makes a call which raises an error there.
Failing = Callable[[str], Any]


def ops() -> Iterator[tuple[str, Any]]:
    for op in op_db:
        if op.error_inputs_func is not None:
            yield entry_name(op), op


def of_op(op: Any) -> Iterator[Failing]:
    """Yields a case for each of the entry's errors, or none if their number depends on the
    device."""
    inputs = {device: _inputs(op, device) for device in ("cpu", "lazy")}
    if len(inputs["cpu"]) != len(inputs["lazy"]):
        return  # some are for devices other than the CPU, in no fixed order
    for place in range(len(inputs["cpu"])):

        def call(device: str, place: int = place) -> Any:
            sample = inputs[device][place].sample_input
            return op(sample.input, *sample.args, **sample.kwargs)

        yield call


def _inputs(op: Any, device: str) -> list[Any]:
    torch.manual_seed(0)
    with contextlib.suppress(Exception):
        return list(op.error_inputs(device))
    return []


def modules() -> Iterator[tuple[str, Any]]:
    for info in module_db:
        if info.module_error_inputs_func is not None:
            yield info.name, info


def of_module(info: Any) -> Iterator[Failing]:
    # Which errors exist depends on the device, so the CPU's cases are moved.
    def inputs() -> list[Any]:
        torch.manual_seed(0)
        return list(
            info.module_error_inputs_func(
                info, device="cpu", dtype=torch.float32, requires_grad=False, training=True
            )
        )  # fmt: skip

    for place in range(len(inputs())):

        def call(device: str, place: int = place) -> Any:
            given = inputs()[place].module_error_input
            made = given.constructor_input
            module = info.module_cls(*made.args, **made.kwargs).to(device)
            if given.forward_input is None:
                return module
            args, kwargs = given.forward_input.args, given.forward_input.kwargs
            args, kwargs = tree_map(Mover(device), (args, kwargs))
            return module(*args, **kwargs)

        yield call


def optimizers() -> Iterator[tuple[str, Any]]:
    for info in optim_db:
        if info.optim_error_inputs_func is not None:
            yield info.optim_cls.__name__, info


def of_optimizer(info: Any) -> Iterator[Failing]:
    # Some cases can be built for the CPU only, so all are built there and moved.
    def inputs() -> list[Any]:
        return info.optim_error_inputs_func("cpu", torch.float32)

    for place in range(len(inputs())):

        def call(device: str, place: int = place) -> Any:
            given = inputs()[place].optimizer_error_input
            parameters = tree_map(Mover(device), given.params)
            info.optim_cls(parameters, **given.kwargs).step()

        yield call


def error_of(call: Failing, device: str) -> Exception | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            # The result is held, because a result that nothing holds isn't computed.
            result = call(device)
            torch_ltc.mark_step(wait=True)
            del result
    except Exception as error:
        return error
    return None


def difference(call: Failing) -> str:
    eager, lazy = error_of(call, "cpu"), error_of(call, "lazy")
    settle()
    if eager is None or "same device" in str(eager):
        return ""  # whether the call raises depends on the other tensor's device
    if lazy is None:
        return f"nothing is raised; eager: {type(eager).__name__}: {words(eager)}"
    if type(lazy) is not type(eager) or _first(eager) not in _first(lazy):
        return (
            f"{type(lazy).__name__}: {_first(lazy)} | "
            f"eager: {type(eager).__name__}: {_first(eager)}"
        )
    return ""


def _first(error: Exception) -> str:
    # Adds the device, which the names of lazy tensor types contain.
    text = words(error).split("\n")[0]
    return text.replace("torch.FloatTensor", "torch.lazy.FloatTensor")  # fmt: skip
