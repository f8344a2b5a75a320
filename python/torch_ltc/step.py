"""Ends of steps: automatic at `optimizer.step()`, explicit, and closures."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch._lazy
import torch._lazy.ts_backend
from torch._lazy.closure import add_step_closure as _torch_add_step_closure
from torch._lazy.closure import run_step_closures
from torch.optim.optimizer import register_optimizer_step_post_hook
from torch.utils._pytree import tree_flatten, tree_unflatten

from torch_ltc import optimizers
from torch_ltc._backend import bindings


class _Ends(threading.local):
    later = False


_ends = _Ends()


def mark_step(device: str = "", wait: bool = False) -> None:
    """Ends the step: everything traced so far by this thread is compiled (if
    it is new) and scheduled, then the step closures run.

    Needed only where no optimizer steps, such as an evaluation loop.
    `wait=True` returns when the results are there.
    """
    if _ends.later:
        return
    bindings().mark_step(str(device), wait)
    run_step_closures()


def wait_device_ops(devices: Any = None) -> None:
    """Waits until everything scheduled has run; raises a step's error.
    `devices` is accepted for `torch._lazy`'s sake: there is one queue."""
    bindings().wait_device_ops()


def wait_for_compilations() -> None:
    """Compiles every program that still runs op by op (option `tier`) and waits
    for it: the next steps run compiled programs."""
    bindings().wait_for_compilations()


def sync(tensors: Any, devices: Any = None, wait: bool = True) -> None:
    """Computes exactly these tensors (any nesting) in one program."""
    flat = [t for t in tree_flatten(tensors)[0] if _is_lazy(t)]
    if flat:
        bindings().sync_tensors(flat, wait)


def to_cpu(tensors: Any, devices: Any = None) -> Any:
    """CPU copies of lazy tensors (any nesting) with a single sync."""
    sync(tensors)
    flat, spec = tree_flatten(tensors)
    return tree_unflatten([t.cpu() if _is_lazy(t) else t for t in flat], spec)


def add_step_closure(
    closure: Callable[..., None], args: tuple = (), run_async: bool = False
) -> None:
    """Runs `closure(*args)` after the next end of step, when the tensors among
    `args` can be read without cutting the graph; `run_async` does it in a
    thread of its own, in order."""
    _torch_add_step_closure(closure, args, run_async)


def _is_lazy(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.device.type == "lazy"


@contextlib.contextmanager
def steps_end_later() -> Iterator[None]:
    """Inside, steps of this thread don't end: a captured function is one."""
    _ends.later = True
    try:
        yield
    finally:
        _ends.later = False


def _after_optimizer_step(optimizer, args, kwargs) -> None:
    backend = bindings()
    if _ends.later or not backend.config_get("auto_step"):
        return
    for group in optimizer.param_groups:
        # Parameters of one group live on one device: the first one tells.
        for parameter in group["params"][:1]:
            if parameter.device.type == "lazy":
                mark_step(str(parameter.device))
                return


def _refuse_torchscript_backend() -> None:
    # torch 2.13 lets a second backend overwrite the first one's kernels and
    # then throws from the dispatcher.
    raise RuntimeError(
        "torch._lazy.ts_backend.init() can't be called: torch_ltc is this "
        "process's lazy backend already; start Python with "
        "TORCH_DEVICE_BACKEND_AUTOLOAD=0 to use the TorchScript backend."
    )


def install() -> None:
    """Hooks the optimizers, and gives `torch._lazy`'s names our functions: the
    ones of torch 2.13 wait on locks that our step queue doesn't use."""
    register_optimizer_step_post_hook(_after_optimizer_step)
    optimizers.install()
    torch._lazy.mark_step = mark_step
    torch._lazy.wait_device_ops = wait_device_ops
    torch._lazy.sync_multi = sync
    torch._lazy.to_cpu = to_cpu
    torch._lazy.ts_backend.init = _refuse_torchscript_backend
