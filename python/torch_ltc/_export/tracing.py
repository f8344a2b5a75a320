"""Traces calls of functions and steps for export, and names their tensors."""

from __future__ import annotations

import contextlib
import copy
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._pytree import tree_flatten, tree_map

from torch_ltc._backend import bindings
from torch_ltc._diagnostics.messages import what_was_forbidden
from torch_ltc._export.numbers import Hyperparameters, counting_on_the_device
from torch_ltc._export.symbolic import Sizes, TooLarge
from torch_ltc.config import config
from torch_ltc.step import mark_step, wait_device_ops

#: The most elements of an argument of other sizes than the example's.
_MOST_ELEMENTS = 1 << 26
#: A tensor and its name.
Named = tuple[str, torch.Tensor]


@dataclass
class Traced:
    """A traced call."""

    #: Role and tensor by name.
    named: dict[str, tuple[str, torch.Tensor]]
    results: Any
    #: The `data_key` of each tensor in `named` before the function ran.
    before: dict[str, int]
    recording: Any
    numbers: Hyperparameters

    def tensors(self) -> tuple[list[Named], list[Named]]:
        """Returns the tensors that the call returned, and the tensors that it wrote. Raises
        ValueError if there are neither."""
        leaves = (t for t in tree_flatten(self.results)[0] if _is_lazy(t))
        returned = [
            (f"result{i}" if i else "result", tensor) for i, tensor in enumerate(leaves)
        ]
        written = [
            (name, tensor)
            for name, (_, tensor) in self.named.items()
            if bindings().data_key(tensor) != self.before[name]
        ]
        if not returned and not written:
            raise ValueError(
                "Nothing to export: the function returns no tensor on device lazy and "
                "writes none of the module's."
            )
        return returned, written

    def program(self) -> Any:
        returned, written = self.tensors()
        return bindings().pending_program([t for _, t in returned + written])


@contextlib.contextmanager
def tracing_call(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    numbers_vary: bool,
) -> Iterator[Traced]:
    """Traces a call of the function, or of a copy of the module. With `numbers_vary`,
    numbers that have differed between traces are arguments of the program. Raises
    ValueError if the call can't be one program."""
    named: dict[str, tuple[str, torch.Tensor]] = {}
    if isinstance(function, torch.nn.Module):
        function = _lazy_copy(function)
        named.update(_tensors_of(function))
    lazy_args, lazy_kwargs = tree_map(to_lazy, (args, kwargs))
    for name, tensor in _argument_names(lazy_args, lazy_kwargs):
        named[name] = ("argument", tensor)
    with (
        _only_tracing("export"),
        config(source_info=True),
        torch.no_grad(),
        _recording(numbers_vary) as recording,
        Hyperparameters(None) as numbers,
    ):
        before = _data_keys(named)
        results = function(*lazy_args, **lazy_kwargs)
        yield Traced(named, results, before, recording, numbers)


@contextlib.contextmanager
def tracing_step(
    step: Callable[..., Any],
    args: tuple[Any, ...],
    module: torch.nn.Module,
    optimizer: torch.optim.Optimizer | None,
    numbers_vary: bool,
) -> Iterator[Traced]:
    with (
        counting_on_the_device(optimizer),
        _only_tracing("export_step"),
        config(auto_step=False, source_info=True),
        _recording(numbers_vary) as recording,
        Hyperparameters(optimizer) as numbers,
    ):
        named = {**_tensors_of(module), **_states_of(module, optimizer)}
        for name, tensor in _argument_names(args, {}):
            named[name] = ("argument", tensor)
        before = _data_keys(named)
        results = step(*args)
        yield Traced(named, results, before, recording, numbers)


@contextlib.contextmanager
def restoring(
    module: torch.nn.Module, optimizer: torch.optim.Optimizer | None
) -> Iterator[None]:
    """Restores at the end of a `with` block what a step writes: parameters, buffers,
    gradients, optimizer states, the random state."""
    tensors = [*module.parameters(), *module.buffers()]
    gradients = [(p, p.grad) for p in module.parameters()]
    tensors += [p.grad for p in module.parameters() if p.grad is not None]
    for state in optimizer.state.values() if optimizer else ():
        tensors += [v for v in state.values() if isinstance(v, torch.Tensor)]
    with torch.no_grad():
        saved = [(tensor, tensor.clone()) for tensor in tensors]
    mark_step()
    random = torch.get_rng_state()
    try:
        yield
    finally:
        torch.set_rng_state(random)
        with torch.no_grad():
            for tensor, value in saved:
                tensor.copy_(value)
        for parameter, gradient in gradients:
            parameter.grad = gradient
        mark_step()


class _only_tracing:  # noqa: N801 (used in `with` only)
    """Raises ValueError for events in a `with` block that would cut the program. Ops that
    have a formula are traced as the formula."""

    def __init__(self, what: str) -> None:
        self._what = what

    def __enter__(self) -> None:
        mark_step()
        wait_device_ops()
        self._before = bindings().counters()["executions"]
        bindings().enter_guard("sync")
        bindings().enter_guard("fallback")
        bindings().enter_portable_trace()

    def __exit__(self, kind: type | None, error: Any, trace: Any) -> None:
        bindings().leave_portable_trace()
        bindings().leave_guard("fallback")
        bindings().leave_guard("sync")
        if text := what_was_forbidden(error):
            raise ValueError(
                f"torch_ltc.{self._what} can't express this in one program: {text}."
            ) from error
        if kind is None and bindings().counters()["executions"] != self._before:
            raise ValueError(
                f"torch_ltc.{self._what} found the end of a step inside the function; call mark_step outside."
            )


@contextlib.contextmanager
def _recording(numbers_vary: bool) -> Iterator[Any]:
    recording = bindings().Recording([], numbers_vary)
    try:
        yield recording
    finally:
        recording.close()


def resized(call: Any, sizes: Sizes) -> Any:
    """Returns the arguments of a call, with tensors of zeros in place of the tensors whose
    sizes differ from `sizes`. Raises TooLarge for tensors with too many elements."""
    named = tensor_names(*call)

    def other(value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        name, _ = next(named)
        shape = [sizes.get((name, d), size) for d, size in enumerate(value.shape)]
        if shape == list(value.shape):
            return value
        if math.prod(shape) > _MOST_ELEMENTS:
            raise TooLarge
        zeros = torch.zeros(shape, dtype=value.dtype).to(value.device)
        return zeros.requires_grad_(value.requires_grad)

    return tree_map(other, call)


def _lazy_copy(module: torch.nn.Module) -> torch.nn.Module:
    copied = copy.deepcopy(module)
    if not isinstance(copied, torch.jit.ScriptModule):
        return copied.to("lazy")
    # torch 2.13's ScriptModule.to can't move parameters between device types.
    for part in copied.modules():
        tensors = [*part.named_parameters(recurse=False)]
        for name, tensor in tensors + [*part.named_buffers(recurse=False)]:
            part._c.setattr(name, tensor.detach().to("lazy"))
    return copied


def _data_keys(named: dict[str, tuple[str, torch.Tensor]]) -> dict[str, int]:
    return {name: bindings().data_key(tensor) for name, (_, tensor) in named.items()}


# -- names ---------------------------------------------------------------------


def _tensors_of(module: torch.nn.Module) -> dict[str, tuple[str, torch.Tensor]]:
    result = {n: ("parameter", p) for n, p in module.named_parameters()}
    result.update((n, ("buffer", b)) for n, b in module.named_buffers())
    return {n: pair for n, pair in result.items() if _is_lazy(pair[1])}


def _states_of(
    module: torch.nn.Module, optimizer: torch.optim.Optimizer | None
) -> dict[str, tuple[str, torch.Tensor]]:
    """Returns the optimizer's lazy tensors by parameter and key: "weight.exp_avg"."""
    if optimizer is None:
        return {}
    names = {id(p): name for name, p in module.named_parameters()}
    return {
        f"{names.get(id(parameter), 'parameter')}.{key}": ("state", value)
        for parameter, state in optimizer.state.items()
        for key, value in state.items()
        if _is_lazy(value)
    }


def _argument_names(
    args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Iterator[tuple[str, torch.Tensor]]:
    return (pair for pair in tensor_names(args, kwargs) if _is_lazy(pair[1]))


def tensor_names(
    args: Sequence[Any], kwargs: dict[str, Any]
) -> Iterator[tuple[str, torch.Tensor]]:
    labeled = [(f"arg{number}", value) for number, value in enumerate(args)]
    for label, value in labeled + list(kwargs.items()):
        leaves = tree_flatten(value)[0]
        tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
        for i, tensor in enumerate(tensors):
            yield label + (f".{i}" if len(tensors) > 1 else ""), tensor


def _is_lazy(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.device.type == "lazy"


def to_lazy(value: Any) -> Any:
    return value.to("lazy") if isinstance(value, torch.Tensor) else value
