"""Ends steps, explicitly or at `optimizer.step()`, and runs step closures."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import torch
from torch.utils._pytree import tree_flatten, tree_unflatten

from torch_ltc._backend import bindings


class _OfThread(threading.local):
    #: Whether optimizers leave it to the caller to end the step.
    ends_later = False
    #: Functions that are called with each optimizer that has stepped.
    observers: tuple[Callable[[Any], None], ...] = ()


_of_thread = _OfThread()

#: Functions that are called after each end of a step and each wait for the device.
after_steps: list[Callable[[], None]] = []


def _call_after_steps() -> None:
    for function in after_steps:
        function()


@contextlib.contextmanager
def _after_failed_checks() -> Iterator[None]:
    """Raises the error of a deferred check, if one has failed, instead of the error of an
    op: in eager, the check comes first."""
    try:
        yield
    except RuntimeError:
        _call_after_steps()
        raise


def run_step_closures() -> None:
    """Runs this step's closures, including those added by torch._lazy's function."""
    # If the module isn't loaded, there are no closures. Importing the module takes longer
    # than importing most of this package.
    if closures := sys.modules.get("torch._lazy.closure"):
        closures.run_step_closures()


def mark_step(device: str = "", wait: bool = False) -> None:
    """Ends the step: schedules the program that computes this thread's live tensors, then
    runs the step closures. A new program is compiled, or first runs op by op (option
    `tier`).

    A call is only needed where no optimizer takes a step, as in an evaluation loop. With
    `wait=True`, returns when the results are computed, and raises the error of a step that
    failed.
    """
    _check_device("mark_step", device)
    _check_bool("mark_step", "wait", wait)
    if _of_thread.ends_later:
        return
    with _after_failed_checks():
        bindings().mark_step(str(device), wait)
    run_step_closures()
    _call_after_steps()


def wait_device_ops(devices: Any = None) -> None:
    """Waits until all scheduled steps have run; raises the error of a step that failed.
    `devices` exists for compatibility with `torch._lazy`: there is one queue."""
    for device in devices if isinstance(devices, (list, tuple)) else [devices]:
        _check_device("wait_device_ops", device)
    with _after_failed_checks():
        bindings().wait_device_ops()
    _call_after_steps()


def wait_for_compilations() -> None:
    """Compiles all programs that still run op by op (option `tier`) and waits for the
    compilations, so that the next steps run compiled programs."""
    bindings().wait_for_compilations()


def sync(tensors: Any, devices: Any = None, wait: bool = True) -> None:
    """Computes exactly these tensors, in any nesting of lists, tuples and dicts, by one
    program. With `wait=False`, returns when the program is scheduled. Ignores None. Raises
    TypeError for other values that aren't tensors."""
    _check_bool("sync", "wait", wait)
    flat = tree_flatten(tensors)[0]
    for value in flat:
        if value is not None and not isinstance(value, torch.Tensor):
            raise TypeError(
                "torch_ltc.sync needs tensors, in any nesting of lists, tuples and "
                f"dicts, but got {value!r:.60}."
            )
    flat = [tensor for tensor in flat if _is_lazy(tensor)]
    if flat:
        bindings().sync_tensors(flat, wait)


def to_cpu(tensors: Any, devices: Any = None) -> Any:
    """Returns `tensors`, in any nesting of lists, tuples and dicts, with CPU copies of the
    lazy tensors, which are computed by one program."""
    flat, spec = tree_flatten(tensors)
    sync([value for value in flat if _is_lazy(value)])
    return tree_unflatten([t.cpu() if _is_lazy(t) else t for t in flat], spec)


def add_step_closure(
    closure: Callable[..., None], args: tuple = (), run_async: bool = False
) -> None:
    """Runs `closure(*args)` after the next end of a step, when the tensors among `args`
    can be read without cutting the graph. `run_async`: runs closures in a separate thread,
    in the order in which they were added. Raises TypeError for invalid arguments."""
    _check_callable("add_step_closure", "closure", closure)
    if not isinstance(args, (tuple, list)):
        raise TypeError(
            "torch_ltc.add_step_closure: args must be a tuple of the closure's arguments, "
            f"but got {args!r:.60}."
        )
    _check_bool("add_step_closure", "run_async", run_async)
    from torch._lazy.closure import add_step_closure

    add_step_closure(closure, args, run_async)


def _is_lazy(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.device.type == "lazy"


def _check_bool(function: str, name: str, value: Any) -> None:
    if not isinstance(value, bool):
        raise TypeError(
            f"torch_ltc.{function}: {name} must be True or False, but got {value!r:.60}."
        )


def _check_callable(function: str, name: str, value: Any) -> None:
    if not callable(value):
        raise TypeError(
            f"torch_ltc.{function}: {name} must be a function, but got {value!r:.60}."
        )


def _check_device(function: str, device: Any) -> None:
    """Raises ValueError for a device that doesn't exist, TypeError for objects other than
    devices. "" and None denote the only device."""
    if device is None or (isinstance(device, str) and device == ""):
        return
    if not isinstance(device, (str, torch.device)):
        raise TypeError(
            f"torch_ltc.{function}: a device must be 'lazy' or torch.device('lazy'), but "
            f"got {device!r:.60}."
        )
    # Compared as text, because torch's parser raises an error with several lines.
    if str(device) not in ("lazy", "lazy:0"):
        raise ValueError(
            f"torch_ltc.{function}: there is one device, 'lazy:0', but got "
            f"'{device!s:.60}'."
        )


@contextlib.contextmanager
def steps_end_later() -> Iterator[None]:
    """Prevents `mark_step` and optimizers from ending a step of this thread in the `with`
    block, so that a call that `capture` records is one step."""
    _of_thread.ends_later = True
    try:
        yield
    finally:
        _of_thread.ends_later = False


def _is_in_other_step() -> bool:
    """Whether another optimizer's `step` called the `step` that calls this hook. The outer
    `step` may continue with the parameters (ZeroRedundancyOptimizer sends them)."""
    frame: FrameType | None = sys._getframe(2)  # torch's wrapper of all steps
    code = frame.f_code
    while frame := frame.f_back:
        if frame.f_code is code:
            return True
    return False


def _lazy_device(optimizer: Any) -> str | None:
    for group in optimizer.param_groups:
        # Parameters of one group are on one device, so the first one is checked.
        for parameter in group["params"][:1]:
            if parameter.device.type == "lazy":
                return str(parameter.device)
    return None


@contextlib.contextmanager
def observing_optimizers(function: Callable[[Any], None]) -> Iterator[None]:
    """Calls `function` with each optimizer of the calling thread that has stepped. A hook of
    torch would also see other threads' optimizers, and adding it would fail their steps."""
    before = _of_thread.observers
    _of_thread.observers = (*before, function)
    try:
        yield
    finally:
        _of_thread.observers = before


def after_optimizer_step(optimizer: Any, args: Any, kwargs: Any) -> None:
    """Calls the observers. Ends the step if the parameters are lazy and option auto_step is
    on."""
    for function in _of_thread.observers:
        function(optimizer)
    # The device is checked first: TorchDynamo, which traces hooks, warns about the calls of
    # C++ functions below.
    device = _lazy_device(optimizer)
    if (
        device is None
        or _of_thread.ends_later
        or not bindings().config_get("auto_step")
    ):
        return
    if not _is_in_other_step():
        mark_step(device)
