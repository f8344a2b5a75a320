"""Makes optimizers on device lazy update all parameters at once, without implicit syncs.

torch 2.13 has no hooks for this, so functions in its modules are replaced. Options
that a user sets (`foreach=False`, `capturable=True`, ...) have the same effect as on
other devices.
"""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable
from typing import Any

import torch
from torch.optim import Optimizer
from torch.utils import _foreach_utils

from torch_ltc import step as _step
from torch_ltc._backend import bindings


def _list_device() -> None:
    """Makes optimizers and gradient clipping use their `foreach` form by default, as on
    devices other than the CPU: a step is then a dozen calls from Python, not a dozen for
    each parameter. Makes `fused=True` available, as on the CPU."""
    # torch.optim deletes its attribute `optimizer`, so the module is only in sys.modules.
    modules = (_foreach_utils, sys.modules["torch.optim.optimizer"])
    for kind in ("foreach", "fused"):
        name = f"_get_{kind}_kernels_supported_devices"
        listed = getattr(_foreach_utils, name)

        def supported(listed: Callable[[], list[str]] = listed) -> list[str]:
            return [*listed(), "lazy"]

        for module in modules:
            setattr(module, name, supported)


def _update_mixed_classes_one_by_one() -> None:
    """Makes optimizers update one parameter at a time by default if some parameters are
    DTensors and others tensors, because the `_foreach_` ops of DTensors (torch 2.13) reject
    tensors. Tensor parallelism for some layers has such parameters. It works on the CPU,
    where `foreach` isn't the default."""
    names = [name for name in sys.modules if name.startswith("torch.optim.")]
    for module in map(sys.modules.get, names):
        choose = getattr(module, "_default_to_fused_or_foreach", None)
        if choose is not None:
            module._default_to_fused_or_foreach = _without_mixed_classes(choose)


def _without_mixed_classes(original: Callable) -> Callable:
    plain = {torch.Tensor, torch.nn.Parameter}

    @functools.wraps(original)
    def choose(params: Any, *args: Any, **kwargs: Any) -> tuple[bool, bool]:
        fused, foreach = original(params, *args, **kwargs)
        if foreach and "torch.distributed.tensor" in sys.modules:
            kinds = {type(p) for p in params}
            foreach = kinds <= plain or plain.isdisjoint(kinds)
        return fused, foreach

    return choose


def _make_state(optimizer: torch.optim.Adam) -> None:
    """Creates the optimizer's state, with step counts on the CPU even for `fused=True`."""
    with torch.no_grad():
        for group in optimizer.param_groups:
            fused, group["fused"] = group.get("fused"), None
            try:
                if fused:
                    _check_fused(optimizer, group)
                optimizer._init_group(group, [], [], [], [], [], [])
            finally:
                group["fused"] = fused


def _check_fused(optimizer: torch.optim.Adam, group: dict[str, Any]) -> None:
    """Makes the checks that torch makes where it creates the state for `fused=True`."""
    check = sys.modules["torch.optim.optimizer"]._device_dtype_check_for_fused
    for parameter in group["params"]:
        if parameter.grad is not None and not optimizer.state.get(parameter):
            check(parameter)


def _move_counts(optimizer: torch.optim.Adam, device: str) -> bool:
    """Moves the step counts of parameters with `fused=True`, which torch creates on the
    parameters' device, to `device`. Returns whether any was on a different device."""
    moved = False
    for group in optimizer.param_groups:
        for parameter in group["params"] if group.get("fused") else ():
            state = optimizer.state.get(parameter, {})
            count = state.get("step")
            if parameter.device.type == "lazy" and isinstance(count, torch.Tensor):
                moved |= count.device.type != device
                state["step"] = count.to(device)
    return moved


#: The optimizers in `_READERS` read these states in Python, so torch creates the states on
#: the CPU.
_READ_IN_PYTHON = ("step", "mu_product")
_READERS = (
    torch.optim.Adadelta,
    torch.optim.Adafactor,
    torch.optim.Adagrad,
    torch.optim.Adam,
    torch.optim.Adamax,
    torch.optim.NAdam,
    torch.optim.RAdam,
    torch.optim.RMSprop,
    torch.optim.Rprop,
)


def _return_to_the_cpu(optimizer: Optimizer, args: Any, kwargs: Any) -> None:
    """Moves the states that the optimizer reads in Python back to the CPU, before a step.
    `torch.load(map_location=device)` and loops that move all states of an optimizer move
    these as well. Each update would then read lazy tensors, which cuts the step between
    backward and update."""
    if not isinstance(optimizer, _READERS):
        return
    for group in optimizer.param_groups:
        if group.get("capturable") or group.get("fused"):
            continue
        for parameter in group["params"]:
            state = optimizer.state.get(parameter)
            if not state:
                continue
            moved = False
            for name in _READ_IN_PYTHON:
                value = state.get(name)
                if not isinstance(value, torch.Tensor) or value.device.type != "lazy":
                    continue
                # The `foreach` form accepts only these dtypes on the CPU.
                if value.dtype in (torch.float32, torch.float64):
                    state[name] = value.cpu()
                    moved = True
            if not moved:
                break  # states are moved together, or not at all


def _allow_counts_on_the_device() -> None:
    """Allows option `capturable`, with which step counts are tensors on the parameters'
    device."""
    # Skips modules outside of torch.optim, which may import more modules when one of their
    # attributes is read.
    names = [name for name in sys.modules if name.startswith("torch.optim.")]
    for module in map(sys.modules.get, names):
        listed = getattr(module, "_get_capturable_supported_devices", None)
        if listed is not None:
            module._get_capturable_supported_devices = _with_lazy(listed)


def _with_lazy(listed: Callable[..., list[str]]) -> Callable[..., list[str]]:
    # TorchScript compiles this function as part of torch.distributed.optim's functional
    # optimizers, so it must use TorchScript's subset of Python.
    def devices(supports_xla: bool = True) -> list[str]:
        return listed(supports_xla) + ["lazy"]

    return devices


def _is_traced(optimizer: torch.optim.Adam) -> bool:
    """Traces the step as one node for each parameter. Returns False, and traces nothing, if
    the step needs torch's implementation."""
    # GradScaler sets these attributes for one step.
    for name in ("grad_scale", "found_inf"):
        if getattr(optimizer, name, None) is not None:
            _move_counts(optimizer, "lazy")  # whether counts grow depends on found_inf
            return False
    adam_step = bindings().adam_step
    traced = adam_step(optimizer.param_groups, optimizer.state)
    if traced is None:
        _make_state(optimizer)
        traced = adam_step(optimizer.param_groups, optimizer.state)
    if traced is False and _move_counts(optimizer, "cpu"):  # after loading a state
        traced = adam_step(optimizer.param_groups, optimizer.state)
    return bool(traced)


def _unhooked(optimizer: type[Optimizer]) -> Callable[..., Any]:
    """Returns the optimizer's `step` without the hooks that torch puts around it when the
    first instance is created."""
    step = optimizer.step
    return step.__wrapped__ if hasattr(step, "hooked") else step


def _replace_step(optimizer: type[Optimizer], step: Callable[..., Any]) -> None:
    if hasattr(optimizer.step, "hooked"):
        step = optimizer.profile_hook_step(step)
        step.hooked = True  # type: ignore[attr-defined]
    optimizer.step = step  # type: ignore[method-assign]


def _trace_adam_as_nodes() -> None:
    """Makes Adam and AdamW trace a step without special options in one call, as one node
    for each parameter. The results equal those of torch's `foreach` form."""
    by_torch = _unhooked(torch.optim.Adam)

    @functools.wraps(by_torch)
    def step(
        self: torch.optim.Adam, closure: Callable[[], Any] | None = None
    ) -> torch.Tensor | float | None:
        if closure is None and not torch.compiler.is_compiling() and _is_traced(self):
            return None
        return by_torch(self, closure)

    _replace_step(torch.optim.Adam, step)


class _TracedAlphas:
    """Makes `q.add_(d, alpha=a)` accept a lazy tensor `a` without reading it; PyTorch would
    convert it to a Python number.

    `torch.Tensor.add_` is replaced while a thread has entered this state. A
    `TorchFunctionMode` would be called for every op of the step."""

    _lock = threading.Lock()
    _entered = 0
    _replaced: Any = None  # another package's replacement of add_, if not None

    @classmethod
    def enter(cls) -> None:
        with cls._lock:
            cls._entered += 1
            if cls._entered == 1:
                cls._replaced = vars(torch.Tensor).get("add_")
                torch.Tensor.add_ = cls._function(cls._replaced)  # type: ignore[method-assign]

    @classmethod
    def leave(cls) -> None:
        with cls._lock:
            cls._entered -= 1
            if cls._entered:
                return
            if cls._replaced is None:
                del torch.Tensor.add_
            else:
                torch.Tensor.add_ = cls._replaced

    @staticmethod
    def _function(replaced: Any) -> Callable[..., torch.Tensor]:
        add_ = replaced or torch._C.TensorBase.add_

        @functools.wraps(add_)
        def function(self: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
            alpha = kwargs.get("alpha")
            if isinstance(alpha, torch.Tensor) and alpha.device.type == "lazy":
                (other,) = args
                return add_(self, other * alpha)
            return add_(self, *args, **kwargs)

        return function


def _trace_numbers_of_lbfgs() -> None:
    """Makes LBFGS use lazy tensors of rank 0 as factors without reading them: its two-loop
    recursion has two such factors for each stored direction."""
    by_torch = _unhooked(torch.optim.LBFGS)

    @functools.wraps(by_torch)
    def step(self: torch.optim.LBFGS, closure: Callable[[], Any]) -> Any:
        parameters = self.param_groups[0]["params"]
        if not parameters or parameters[0].device.type != "lazy":
            return by_torch(self, closure)

        def with_own_alphas() -> Any:
            _TracedAlphas.leave()
            try:
                return closure()
            finally:
                _TracedAlphas.enter()

        _TracedAlphas.enter()
        try:
            return by_torch(self, with_own_alphas)
        finally:
            _TracedAlphas.leave()

    _replace_step(torch.optim.LBFGS, step)


def install() -> None:
    hooks = sys.modules["torch.optim.optimizer"]
    hooks.register_optimizer_step_pre_hook(_return_to_the_cpu)
    hooks.register_optimizer_step_post_hook(_step.after_optimizer_step)
    _list_device()
    _update_mixed_classes_one_by_one()
    _allow_counts_on_the_device()
    _trace_adam_as_nodes()
    _trace_numbers_of_lbfgs()
