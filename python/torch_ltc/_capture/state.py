"""Snapshots of what a captured step depends on besides its arguments (Python objects,
optimizers, gradients, modes of PyTorch), to find out whether it has changed."""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Iterator
from contextvars import Context, copy_context
from typing import Any

import torch
from torch.nn.modules import module as _modules
from torch.optim import optimizer as _optimizers

from torch_ltc._backend import bindings
from torch_ltc._capture.differences import difference, of_gradients
from torch_ltc._capture.names import Names
from torch_ltc._capture.objects import HELD, TENSOR, Node, Objects, Unknown
from torch_ltc.step import observing_optimizers

# Global hooks, which every module's call and every optimizer's step reads.
_HOOKS = [
    (name, value)
    for module in (_modules, _optimizers)
    for name, value in vars(module).items()
    if name.startswith("_global_") and isinstance(value, dict)
]


class _Group:
    """A parameter group of an optimizer, with its step count."""

    def __init__(self, optimizer: torch.optim.Optimizer, group: dict) -> None:
        self.optimizer, self.group = optimizer, group
        self.numbers: dict[str, float] = {}
        self.read()
        self.step = 0.0
        self.counts: list[torch.Tensor] = []

    def read(self) -> None:
        """Records the current hyperparameters."""
        self.numbers = {}
        for key, value in self.group.items():
            if isinstance(value, float) or type(value) is int:
                self.numbers[key] = value
        betas = self.group.get("betas")
        if betas is not None and all(isinstance(beta, float) for beta in betas):
            self.numbers["beta1"], self.numbers["beta2"] = betas

    def read_counts(self) -> None:
        """Reads the step count after a traced step. Raises ValueError unless the parameters
        with gradients have equal counts, stored in CPU float32 tensors of rank 0."""
        stepped = [p for p in self.group["params"] if p.grad is not None]
        states = [self.optimizer.state.get(p, {}) for p in stepped]
        counts = [state["step"] for state in states if "step" in state]
        self.counts = [
            c for c in counts if isinstance(c, torch.Tensor) and c.device.type == "cpu"
        ]
        if len(self.counts) != len(counts) or any(
            c.dtype != torch.float32 or c.dim() for c in self.counts
        ):
            raise ValueError(
                "an optimizer stores its step count in an unsupported form"
            )
        values = {count.item() for count in self.counts}
        if len(values) > 1:
            raise ValueError("parameters of one group have different step counts")
        self.step = values.pop() if values else 0.0


class State:
    """A snapshot around one traced call, to be compared with later calls. `names`: the
    names in the code that earlier calls ran; None for a first call, which can't be
    captured."""

    def __init__(self, roots: list[tuple[str, Any]], names: Names | None) -> None:
        self._roots = [*roots, *_HOOKS]
        self._names = names
        self._surroundings = bindings().surroundings()
        self._stepped: list[torch.optim.Optimizer] = []
        self._before: dict[int, list[dict[str, float]]] = {}
        #: The reason why the call can't be replayed, although its program could be; "" if
        #: there is none.
        self.problem = ""
        self._generator = torch.default_generator.get_state()
        self.objects = Objects(self._roots, names) if names else None
        # Values of context variables, if the call uses any.
        self._context: Context | None = copy_context()

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Tracks which optimizers step while the function runs."""
        for _, optimizer in self.objects.optimizers if self.objects else ():
            self._before[id(optimizer)] = self._numbers(optimizer)
        with observing_optimizers(self._stepped.append):
            yield

    @property
    def stepped(self) -> list[torch.optim.Optimizer]:
        return self._stepped

    @staticmethod
    def _numbers(optimizer: torch.optim.Optimizer) -> list[dict[str, float]]:
        return [dict(_Group(optimizer, g).numbers) for g in optimizer.param_groups]

    def finish(self, draws: bool, seeds: str, uses_context: bool) -> None:
        """Completes the snapshot after the call. Raises ValueError or Unknown if the call
        can't be replayed."""
        if uses_context and self._has_other_context():
            raise ValueError("the function changes a context variable")
        if not uses_context:
            self._context = None
        if len(set(map(id, self._stepped))) != len(self._stepped):
            raise ValueError("an optimizer steps more than once in the function")
        for optimizer in self._stepped:
            before = self._before.get(id(optimizer))
            if before is not None and before != self._numbers(optimizer):
                raise ValueError(
                    "a hyperparameter changes inside the function: move "
                    "scheduler.step() after the captured step"
                )
        if bindings().surroundings() != self._surroundings:
            raise ValueError("the function changes a mode of PyTorch")
        is_seeded = not torch.equal(
            self._generator, torch.default_generator.get_state()
        )
        if seeds and (draws or is_seeded):
            raise ValueError(
                f"the function sets a random generator's state at {seeds}, which a "
                "replay wouldn't"
            )
        self._groups = [
            _Group(optimizer, group)
            for optimizer in self._stepped
            for group in optimizer.param_groups
        ]
        for group in self._groups:
            group.read_counts()
        if self.objects is not None:
            self._compare_with_now()

    def _has_other_context(self) -> bool:
        now = copy_context()
        return len(now) != len(self._context) or any(
            now.get(variable, self) is not value
            for variable, value in self._context.items()
        )

    def _compare_with_now(self) -> None:
        now = Objects(self._roots, self._names)
        if found := difference(self.objects, now):
            word = re.split(r"[^\w]", found.name.split("[")[0])[-1]
            self.problem = (
                f"the function changes {found.name} (at {self._names.where(word)}), "
                "which a replay wouldn't change"
            )

    def freeze(self) -> None:
        """Records, when the call is captured, the state that must stay the same."""
        leaves = {
            id(tensor): tensor
            for tensor in (
                *(tensor for _, tensor in self.objects.tensors),
                *(p for group in self._groups for p in group.group["params"]),
            )
            if tensor.is_leaf and tensor.requires_grad
        }
        self._gradients = {
            key: (p, p.grad) for key, p in leaves.items() if p.grad is not None
        }
        nodes = self._expected(self.objects)
        earlier = {
            id(node.owner): node.values[2]
            for node in self.objects.nodes
            if node.kind == TENSOR
        }
        self.objects.forget_gradients()
        self._nodes = nodes + tuple(self._held(earlier))

    def _expected(self, objects: Objects) -> tuple[Node, ...]:
        """Returns the nodes as the next call must find them: with the gradients that this
        step left, if there were gradients before it."""
        nodes = []
        for node in objects.nodes:
            if node.kind == TENSOR and node.values[2] is not None:
                _, gradient = self._gradients.get(id(node.owner), (None, None))
                marks = (*node.values[:2], gradient, node.values[3])
                node = node._replace(values=marks)
            nodes.append(node)
        return tuple(nodes)

    def _held(self, earlier: dict[int, torch.Tensor | None]) -> Iterator[Node]:
        """Yields, for each gradient that the step created, a node with the gradient's
        reference count. If the function sets gradients to None, each step creates new
        tensors. A replay assigns new values to the same tensors, which requires that
        nothing else holds them."""
        for key, (_, gradient) in self._gradients.items():
            if earlier.pop(key, None) is not gradient:
                # Excludes the references of this variable and of getrefcount's argument,
                # and includes that of the new node.
                holders = sys.getrefcount(gradient) - 1
                yield Node(HELD, gradient, None, (holders,), "")

    def changed(self) -> str:
        """Describes the first change; "" if there is none. Hyperparameters may change: they
        are read again."""
        backend = bindings()
        if backend.surroundings() != self._surroundings:
            return "gradient mode, default dtype, autocast or an option changed"
        if self._context is not None and self._has_other_context():
            return "a context variable changed"
        number = backend.first_changed(self._nodes)
        if number >= 0 and (text := self._explain(number)):
            return text
        for group in self._groups:
            group.read()
        return ""

    def _explain(self, number: int) -> str:
        """Describes the change of a node; "" if an equal object replaced the node's owner.
        Takes a new snapshot if nothing but gradients has changed."""
        try:
            now = Objects(self._roots, self._names)
        except Unknown as problem:
            return str(problem)
        if found := difference(self.objects, now):
            return str(found)
        # The recorded marks of tensors are kept: if there was no gradient before the
        # captured call, there must be none now.
        expected = [
            new if new.kind != TENSOR else new._replace(values=old.values)
            for new, old in zip(now.nodes, self._nodes)
        ]
        self._nodes = (*expected, *self._nodes[len(expected) :])
        now.forget_gradients()
        self.objects = now
        number = bindings().first_changed(self._nodes)
        return of_gradients(self._nodes[number]) if number >= 0 else ""

    def hyperparameters(self, ahead: int = 0) -> list[tuple[dict[str, float], float]]:
        """Returns the hyperparameters of each group, with the group's step count plus
        `ahead`."""
        return [(group.numbers, group.step + ahead) for group in self._groups]

    def known_tensors(self) -> list[tuple[torch.Tensor, str]]:
        """Returns the lazy tensors that the step may read or write, with names."""
        named: dict[int, tuple[torch.Tensor, str]] = {}

        def add(tensor: Any, name: str) -> None:
            if isinstance(tensor, torch.Tensor) and tensor.device.type == "lazy":
                named.setdefault(id(tensor), (tensor, name))

        for name, tensor in self.objects.tensors:
            add(tensor, name)
        names = {id(tensor): name for name, tensor in self.objects.tensors}
        for number, parameter in enumerate(
            p for group in self._groups for p in group.group["params"]
        ):
            add(parameter, f"parameter {number} of the optimizer")
        for parameter, gradient in self._gradients.values():
            add(gradient, f"the gradient of {names.get(id(parameter), 'a parameter')}")
        for optimizer in self._stepped:
            for number, values in enumerate(optimizer.state.values()):
                for key, tensor in values.items():
                    add(tensor, f"optimizer state {key!r} of parameter {number}")
        return list(named.values())

    def step_counts(self) -> list[torch.Tensor]:
        """Returns the optimizers' CPU tensors that count steps."""
        return [count for group in self._groups for count in group.counts]

    def after_replay(self) -> None:
        """Increments the step count of each group, and restores gradients that were set to
        None."""
        for group in self._groups:
            group.step += 1
        for parameter, gradient in self._gradients.values():
            if parameter.grad is not gradient:
                parameter.grad = gradient
