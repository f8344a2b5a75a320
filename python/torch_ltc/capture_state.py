"""What a step function refers to: modules, optimizers, tensors; and whether
they are still what they were."""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Iterator
from itertools import chain
from operator import is_
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook

from torch_ltc._backend import bindings

_DEPTH = 4
# Options that decide which program a step becomes.
_OPTIONS = ("detect_nan", "lockstep", "tier", "donation")


def _referred(function: Any) -> Iterator[tuple[str, Any]]:
    """Objects that a function can reach by name: closure, defaults, globals
    that its code mentions, what it is bound to."""
    if isinstance(function, functools.partial):
        yield "function", function.func
        yield from ((f"argument {i}", v) for i, v in enumerate(function.args))
        yield from function.keywords.items()
        return
    if inspect.ismethod(function):
        yield "self", function.__self__
        function = function.__func__
    if not inspect.isfunction(function):
        yield from getattr(function, "__dict__", {}).items()
        call = getattr(type(function), "__call__", None)  # noqa: B004
        if inspect.isfunction(call):
            yield "__call__", call
        return
    closure = function.__closure__ or ()
    for name, cell in zip(function.__code__.co_freevars, closure):
        with contextlib.suppress(ValueError):  # an empty cell
            yield name, cell.cell_contents
    yield from (function.__kwdefaults__ or {}).items()
    yield from ((f"default {i}", v) for i, v in enumerate(function.__defaults__ or ()))
    for name in function.__code__.co_names:
        if name in function.__globals__:
            yield name, function.__globals__[name]


class _Finder:
    def __init__(self) -> None:
        self.modules: dict[int, tuple[str, torch.nn.Module]] = {}
        self.optimizers: dict[int, tuple[str, torch.optim.Optimizer]] = {}
        self.tensors: dict[int, tuple[str, torch.Tensor]] = {}
        self._seen: set[int] = set()

    def visit(self, name: str, value: Any, depth: int = 0) -> None:
        if id(value) in self._seen or depth > _DEPTH:
            return
        self._seen.add(id(value))
        if isinstance(value, torch.Tensor):
            self.tensors[id(value)] = name, value
        elif isinstance(value, torch.nn.Module):
            self._visit_module(name, value)
        elif isinstance(value, torch.optim.Optimizer):
            self.optimizers[id(value)] = name, value
        elif isinstance(value, (list, tuple)) and len(value) < 1000:
            for number, item in enumerate(value):
                self.visit(f"{name}[{number}]", item, depth + 1)
        elif isinstance(value, dict) and len(value) < 1000:
            for key, item in value.items():
                self.visit(f"{name}[{key!r}]", item, depth + 1)
        elif inspect.isroutine(value) or isinstance(value, functools.partial):
            # Library functions lead to all of the library.
            if not (getattr(value, "__module__", "") or "").startswith("torch"):
                for inner, item in _referred(value):
                    self.visit(inner, item, depth + 1)
        elif not isinstance(value, type) and not inspect.ismodule(value):
            package = type(value).__module__.split(".")[0]
            if package in ("torch", "torch_ltc", "builtins"):
                return
            for inner, item in getattr(value, "__dict__", {}).items():
                self.visit(f"{name}.{inner}", item, depth + 1)

    def _visit_module(self, name: str, module: torch.nn.Module) -> None:
        for path, inner in module.named_modules():
            where = f"{name}.{path}" if path else name
            self.modules[id(inner)] = where, inner
            for attribute, value in inner.__dict__.items():
                if isinstance(value, torch.Tensor):
                    self.tensors[id(value)] = f"{where}.{attribute}", value


class _Group:
    """One parameter group with its step count."""

    def __init__(self, optimizer: torch.optim.Optimizer, group: dict) -> None:
        self.optimizer, self.group = optimizer, group
        self.numbers: dict[str, float] = {}
        self.read()
        self.step = 0.0
        self.counts: list[torch.Tensor] = []

    def read(self) -> None:
        """Takes the hyperparameters as they are now."""
        self.numbers = {}
        for key, value in self.group.items():
            if isinstance(value, float) or type(value) is int:
                self.numbers[key] = value
        betas = self.group.get("betas")
        if betas is not None and all(isinstance(beta, float) for beta in betas):
            self.numbers["beta1"], self.numbers["beta2"] = betas

    def read_counts(self) -> None:
        """Step counts after a traced step: one number for all parameters."""
        stepped = [p for p in self.group["params"] if p.grad is not None]
        states = [self.optimizer.state.get(p, {}) for p in stepped]
        counts = [state["step"] for state in states if "step" in state]
        self.counts = [
            c for c in counts if isinstance(c, torch.Tensor) and c.device.type == "cpu"
        ]
        if len(self.counts) != len(counts) or any(
            c.dtype != torch.float32 or c.dim() for c in self.counts
        ):
            raise ValueError("an optimizer counts its steps in a way of its own")
        values = {count.item() for count in self.counts}
        if len(values) > 1:
            raise ValueError("parameters of one group have made different steps")
        self.step = values.pop() if values else 0.0

    def flags(self) -> list[Any]:
        """What isn't a number: changes of it change the program."""
        return [
            value
            for key, value in self.group.items()
            if key != "params"
            and (isinstance(value, bool) or not isinstance(value, (int, float, tuple)))
        ]


class State:
    """The objects of one traced call, to be compared with later."""

    def __init__(self, function: Any) -> None:
        finder = _Finder()
        finder.visit("function", function)
        for name, value in _referred(function):
            finder.visit(name, value)
        self._finder = finder
        self._stepped: list[torch.optim.Optimizer] = []
        self._before: dict[int, list[dict[str, float]]] = {}

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """While the function runs: which optimizers step."""

        def note(optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
            self._stepped.append(optimizer)
            self._finder.optimizers.setdefault(id(optimizer), ("optimizer", optimizer))

        for _, optimizer in self._finder.optimizers.values():
            self._before[id(optimizer)] = self._numbers(optimizer)
        handle = register_optimizer_step_post_hook(note)
        try:
            yield
        finally:
            handle.remove()

    @staticmethod
    def _numbers(optimizer: torch.optim.Optimizer) -> list[dict[str, float]]:
        return [dict(_Group(optimizer, g).numbers) for g in optimizer.param_groups]

    def finish(self) -> None:
        """After the call. Raises ValueError if it can't be repeated."""
        if len(set(map(id, self._stepped))) != len(self._stepped):
            raise ValueError("an optimizer steps more than once in the function")
        for optimizer in self._stepped:
            before = self._before.get(id(optimizer))
            if before is not None and before != self._numbers(optimizer):
                raise ValueError(
                    "a hyperparameter changes inside the function: move "
                    "scheduler.step() behind the captured step"
                )
        self._groups = [
            _Group(optimizer, group)
            for optimizer in self._stepped
            for group in optimizer.param_groups
        ]
        for group in self._groups:
            group.read_counts()
        self._parameters = [p for group in self._groups for p in group.group["params"]]
        self._gradients = [(p, p.grad) for p in self._parameters if p.grad is not None]
        self._remember()

    def _remember(self) -> None:
        modules = [module for _, module in self._finder.modules.values()]
        self._modules = modules
        self._training = [module.training for module in modules]
        self._tables = [
            table
            for module in modules
            for table in (module._parameters, module._buffers, module._modules)
            if table
        ]
        self._contents = list(chain.from_iterable(map(dict.values, self._tables)))
        self._requires = [p.requires_grad for p in self._parameters]
        self._optimizer_parts = [
            part
            for optimizer in self._stepped
            for part in (optimizer.state, optimizer.param_groups)
        ]
        self._group_sizes = [len(group.group["params"]) for group in self._groups]
        self._flags = [group.flags() for group in self._groups]
        self._modes = self._current_modes()

    @staticmethod
    def _current_modes() -> tuple[Any, ...]:
        return (
            torch.is_grad_enabled(),
            torch.get_default_dtype(),
            torch.is_autocast_enabled("cpu"),
            torch.is_autocast_enabled("lazy"),
            torch.get_autocast_dtype("lazy"),
            *(bindings().config_get(name) for name in _OPTIONS),
        )

    def changed(self) -> str:
        """What isn't as it was, in words; "" if all is. Reads the
        hyperparameters, which may change."""
        if [module.training for module in self._modules] != self._training:
            return "a module's training mode changed"
        contents = list(chain.from_iterable(map(dict.values, self._tables)))
        if len(contents) != len(self._contents) or not all(
            map(is_, contents, self._contents)
        ):
            return "a module has another parameter, buffer or child"
        if [p.requires_grad for p in self._parameters] != self._requires:
            return "a parameter's requires_grad changed"
        parts = [
            part
            for optimizer in self._stepped
            for part in (optimizer.state, optimizer.param_groups)
        ]
        if not all(map(is_, parts, self._optimizer_parts)):
            return "an optimizer's state was replaced"
        sizes = [len(group.group["params"]) for group in self._groups]
        groups = sum(len(optimizer.param_groups) for optimizer in self._stepped)
        if sizes != self._group_sizes or groups != len(sizes):
            return "an optimizer's parameter groups changed"
        if self._current_modes() != self._modes:
            return "gradient mode, default dtype, autocast or an option changed"
        for group in self._groups:
            group.read()
        if [group.flags() for group in self._groups] != self._flags:
            return "an option of an optimizer changed"
        return ""

    def hyperparameters(self, ahead: int = 0) -> list[tuple[dict[str, float], float]]:
        """Of each group, with the number of its last step plus `ahead`."""
        return [(group.numbers, group.step + ahead) for group in self._groups]

    def known_tensors(
        self, returned: list[torch.Tensor]
    ) -> list[tuple[torch.Tensor, str]]:
        """Lazy tensors that the step may read or write, with names; not those
        that it returned, which are the caller's."""
        named: dict[int, tuple[torch.Tensor, str]] = {}

        def add(tensor: Any, name: str) -> None:
            if isinstance(tensor, torch.Tensor) and tensor.device.type == "lazy":
                named.setdefault(id(tensor), (tensor, name))

        for where, module in self._finder.modules.values():
            for kind in (module._parameters, module._buffers):
                for key, tensor in kind.items():
                    add(tensor, f"{where}.{key}")
        for number, parameter in enumerate(self._parameters):
            add(parameter, f"parameter {number} of the optimizer")
        for number, (_, gradient) in enumerate(self._gradients):
            add(gradient, f"gradient {number}")
        for optimizer in self._stepped:
            for number, values in enumerate(optimizer.state.values()):
                for key, tensor in values.items():
                    add(tensor, f"optimizer state {key!r} of parameter {number}")
        for name, tensor in self._finder.tensors.values():
            if all(tensor is not result for result in returned):
                add(tensor, name)
        return list(named.values())

    def step_counts(self) -> list[torch.Tensor]:
        """The optimizers' CPU tensors that count steps."""
        return [count for group in self._groups for count in group.counts]

    def after_replay(self) -> None:
        """Steps are counted; gradients that were dropped are there again."""
        for group in self._groups:
            group.step += 1
        for parameter, gradient in self._gradients:
            if parameter.grad is not gradient:
                parameter.grad = gradient
