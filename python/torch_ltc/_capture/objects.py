"""The Python objects that a recorded call depends on, in comparable form: everything that
the call's code can reach by the names that it contains.

Every container or namespace that may change is a node with its owner and its contents.
C++ compares the nodes before each replay (`bindings().first_changed`). Only if it finds a
difference does Python compare the objects again, to name the difference.
"""

from __future__ import annotations

import array
import builtins
import ctypes
import functools
import gc
import logging
import operator
import os
import sys
import weakref
from collections import deque
from collections.abc import Iterable, Iterator
from types import (
    CodeType,
    FunctionType,
    GetSetDescriptorType,
    MappingProxyType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
)
from typing import Any, NamedTuple

import torch

from torch_ltc._backend import bindings
from torch_ltc._capture.code import Reads, is_standard, is_torch, reads
from torch_ltc._capture.names import Names
from torch_ltc._capture.watch import is_c_function, origin

PLAIN = (
    type(None), bool, int, float, complex, str, bytes, range, slice, type(Ellipsis),
    type(NotImplemented), torch.dtype, torch.device, torch.layout,
    torch.memory_format, torch.Size,
)  # fmt: skip
_PLAIN = frozenset(PLAIN)
_MAX_NODES = 200_000
_MAX_BYTES = 1 << 16
# Kinds of nodes; guard_bindings.cpp has the same values.
DICT, ITEMS, LIST, CELL, ATTRIBUTE, PROBE, TENSOR, HELD = range(8)
# Attributes of torch.nn modules: the dicts of parameters, buffers and children.
_TABLES = ("_parameters", "_buffers", "_modules")
_HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE: an instance's class may be replaced
# Placeholders for a value that isn't compared and for a missing value.
IGNORED, ABSENT = bindings().capture_marks()


class Node(NamedTuple):
    kind: int
    owner: Any
    keys: Any
    values: tuple[Any, ...]
    path: str
    #: Whether the owner is the dict of a module's parameters, buffers or children.
    is_table: bool = False


class Unknown(Exception):
    """Raised if an object can't be compared; the message is the reason."""


def same(a: Any, b: Any) -> bool:
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if type(a) is float or type(a) is complex:
        return repr(a) == repr(b)  # NaN equals NaN, but 0.0 doesn't equal -0.0
    if type(a) in _PLAIN or type(a) is frozenset:
        return bool(a == b)
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(same, a, b))
    return False


class Objects:
    """A snapshot of everything that can be reached from `roots` and globals. Raises Unknown
    for objects that can't be compared."""

    def __init__(self, roots: Iterable[tuple[str, Any]], names: Names) -> None:
        self.names = names
        self.nodes: list[Node] = []
        self.tensors: list[tuple[str, torch.Tensor]] = []
        self.modules: list[tuple[str, torch.nn.Module]] = []
        self.optimizers: list[tuple[str, torch.optim.Optimizer]] = []
        self._seen: set[int] = set()
        self._functions: set[CodeType] = set()
        self._todo: deque[tuple[str, Any]] = deque(roots)
        self._visit_globals()
        self._drain()
        self._visit_unreached_functions()

    def forget_gradients(self) -> None:
        """Removes the gradients from the nodes, which must not keep them alive: each call
        creates new ones."""
        self.nodes = [
            node._replace(values=(*node.values[:2], None, node.values[3]))
            if node.kind == TENSOR
            else node
            for node in self.nodes
        ]

    def _drain(self) -> None:
        while self._todo:
            if len(self.nodes) > _MAX_NODES:
                raise Unknown(
                    "it refers to more objects than can be compared"
                    + (
                        f" (attributes are read by name at {self.names.by_name})"
                        if self.names.by_name
                        else ""
                    )
                )
            path, value = self._todo.popleft()
            if type(value) in _PLAIN or id(value) in self._seen:
                continue
            self._seen.add(id(value))
            self._visit(path, value)

    def _node(self, kind: int, owner: Any, keys: Any, values: Any, path: str) -> None:
        self.nodes.append(Node(kind, owner, keys, tuple(values), path))

    def _visit_globals(self) -> None:
        """Adds the globals that user code reads, and the attributes of modules that it
        reads through these globals."""
        wanted: dict[int, tuple[dict, dict[str, str]]] = {}

        def note(namespace: dict, name: str, path: str) -> Any:
            wanted.setdefault(id(namespace), (namespace, {}))[1].setdefault(name, path)
            return namespace.get(name, ABSENT)

        for code, (space, _) in self.names.codes.items():
            if is_torch(code.co_filename) or is_standard(code.co_filename):
                continue
            found = reads(code)
            for module in self._imported(found, space):
                for name in self.names.own & vars(module).keys():
                    note(vars(module), name, f"{module.__name__}.{name}")
            if ("globals",) in found.chains:
                for name in found.attributes.keys() & space.keys():
                    note(space, name, name)
            for chain in found.chains:
                value: Any = note(space, chain[0], chain[0])
                if value is ABSENT:
                    note(vars(builtins), chain[0], chain[0])
                for end, name in enumerate(chain[1:], 2):
                    if not isinstance(value, ModuleType):
                        break
                    value = note(vars(value), name, ".".join(chain[:end]))
        for space, paths in wanted.values():
            values = [space.get(name, ABSENT) for name in paths]
            self._node(ITEMS, space, tuple(paths), values, "")
            for path, value in zip(paths.values(), values):
                if not isinstance(value, ModuleType) and value is not ABSENT:
                    self._todo.append((path, value))

    def _imported(self, found: Reads, space: dict[str, Any]) -> Iterator[ModuleType]:
        """The user's modules that a function imports itself."""
        package = space.get("__package__") or ""
        for name in found.imports:
            for full in (name, f"{package}.{name}".strip(".")):
                module = sys.modules.get(full)
                if module is None or full in sys.builtin_module_names:
                    continue
                file = getattr(module, "__file__", None) or ""
                if not is_torch(file) and not is_standard(file):
                    yield module

    def _visit_unreached_functions(self) -> None:
        """Visits the closures whose code ran but that no name led to."""
        codes = [
            code
            for code in self.names.codes
            if code.co_freevars
            and code not in self._functions
            and not is_torch(code.co_filename)
            and not is_standard(code.co_filename)
        ]
        if not codes:
            return
        for function in gc.get_referrers(*codes):
            if isinstance(function, FunctionType):
                self._todo.append((function.__qualname__, function))
        self._drain()

    # -- by kind ---------------------------------------------------------------

    def _visit(self, path: str, value: Any) -> None:
        if isinstance(value, torch.Tensor):
            self._visit_tensor(path, value)
        elif isinstance(value, type):
            self._visit_class(path, value)
        elif isinstance(value, FunctionType):
            self._visit_function(path, value)
        elif isinstance(value, MethodType):
            self._todo.append(("self" if path == "function" else path, value.__self__))
            self._todo.append((path, value.__func__))
        elif isinstance(value, functools.partial):
            self._todo.append((path, value.func))
            self._todo += [(f"{path}.args[{i}]", v) for i, v in enumerate(value.args)]
            self._visit_dict(f"{path}.keywords", value.keywords)
        elif isinstance(value, (list, tuple, set, frozenset, deque)):
            self._visit_sequence(path, value)
        elif isinstance(value, dict):
            self._visit_dict(path, value)
            self._visit_attributes(path, value)
        elif isinstance(value, (property, staticmethod, classmethod)):
            inner = value.fget if isinstance(value, property) else value.__func__
            self._todo.append((path, inner))
        elif isinstance(value, weakref.ref):
            self._todo.append((path, value()))
        elif isinstance(value, torch.optim.Optimizer):
            self._visit_optimizer(path, value)
        elif isinstance(value, ModuleType):
            space = vars(value)
            keys = [k for k in space if k in self.names.own]
            values = [space[key] for key in keys]
            self._node(ITEMS, space, tuple(keys), values, f"{path}.")
        else:
            self._visit_object(path, value)

    def _visit_tensor(self, path: str, tensor: torch.Tensor) -> None:
        self.tensors.append((path, tensor))
        self._node(TENSOR, tensor, None, bindings().tensor_marks(tensor), path)
        if _is_small_on_cpu(tensor):
            # Numbers or constants of the program; writes to `data` and through numpy don't
            # count as writes.
            self._node(PROBE, tensor, _bytes_of, (_bytes_of(tensor),), path)
        for kind in ("_backward_hooks", "_post_accumulate_grad_hooks"):
            if tensor.is_leaf and getattr(tensor, kind, None):
                self._todo.append((f"{path}.{kind}", getattr(tensor, kind)))
        if tensor.__dict__:
            self._visit_attributes(path, tensor)

    def _visit_class(self, path: str, kind: type) -> None:
        for base in kind.__mro__:
            root = base.__module__.partition(".")[0]
            if root == "builtins" or is_standard(_file_of(base)):
                continue
            if root == "torch":
                keys = [k for k in ("forward", "step", "__call__") if k in vars(base)]
            else:
                keys = [k for k, v in vars(base).items() if self._in_class(k, v)]
                self._todo += [(f"{base.__name__}.{k}", vars(base)[k]) for k in keys]
            if keys and (id(base) not in self._seen or base is kind):
                self._seen.add(id(base))
                self._node(
                    ITEMS, base, tuple(keys), [vars(base)[k] for k in keys],
                    f"{base.__name__}.",
                )  # fmt: skip

    def _in_class(self, name: str, value: Any) -> bool:
        if isinstance(value, (GetSetDescriptorType, MemberDescriptorType)):
            return False
        names = self.names
        return (
            name in names.all
            or name in names.all_methods
            or (name.startswith("__") and isinstance(value, FunctionType))
        )

    def _visit_function(self, path: str, function: FunctionType) -> None:
        if function is os.getenv:
            self._todo.append(("os.environ", os.environ))
        if function.__dict__:
            self._visit_attributes(path, function)
        if function.__code__ not in self.names.codes:
            return
        self._functions.add(function.__code__)
        self._node(ATTRIBUTE, function, "__code__", (function.__code__,), path)
        names = function.__code__.co_freevars
        for name, cell in zip(names, function.__closure__ or ()):
            try:
                content = cell.cell_contents
            except ValueError:
                content = ABSENT
            self._node(CELL, cell, None, (content,), name)
            if content is not ABSENT:
                self._todo.append((name, content))
        for key in ("__defaults__", "__kwdefaults__"):
            if (value := getattr(function, key)) is not None:
                self._node(ATTRIBUTE, function, key, (value,), f"{path}.{key}")
                self._todo.append((f"{path}.{key}", value))

    def _visit_sequence(self, path: str, value: Any) -> None:
        if isinstance(value, list):
            self._node(LIST, value, None, value, path)
        elif isinstance(value, set):
            self._node(PROBE, value, frozenset, (frozenset(value),), path)
        elif isinstance(value, deque):
            self._node(PROBE, value, tuple, (tuple(value),), path)
        if isinstance(value, (set, frozenset)):
            self._todo += [(path, item) for item in value]
        else:
            fields = getattr(value, "_fields", None)
            self._todo += [
                (f"{path}.{fields[i]}" if fields else f"{path}[{i}]", item)
                for i, item in enumerate(value)
            ]
        if type(value).__module__ not in ("builtins", "collections"):
            self._visit_attributes(path, value)

    def _visit_dict(self, path: str, value: dict) -> None:
        self._node(DICT, value, tuple(value), value.values(), path)
        self._todo += [(_item(path, key), item) for key, item in value.items()]

    def _visit_optimizer(self, path: str, optimizer: torch.optim.Optimizer) -> None:
        self.optimizers.append((path, optimizer))
        self._visit_attributes(path, optimizer, hidden=("state", "param_groups"))
        self._seen.add(id(optimizer.state))
        for part in (optimizer.state, *optimizer.state.values()):
            self._node(DICT, part, tuple(part), part.values(), f"{path}.state")
            self._todo += [
                (_item(f"{path}.state", key), item)
                for key, item in part.items()
                if part is not optimizer.state and not isinstance(item, torch.Tensor)
            ]
        groups = optimizer.param_groups
        self._seen.add(id(groups))
        self._node(LIST, groups, None, groups, f"{path}.param_groups")
        for number, group in enumerate(groups):
            where = f"{path}.param_groups[{number}]"
            self._seen.add(id(group))
            values = [IGNORED if _is_number(k, v) else v for k, v in group.items()]
            self._node(DICT, group, tuple(group), values, where)
            self._todo += [
                (_item(where, key), item)
                for key, item in zip(group, values)
                if item is not IGNORED
            ]

    def _visit_object(self, path: str, value: Any) -> None:
        kind = type(value)
        if isinstance(value, logging.Logger):
            return None  # what it contains affects only messages
        if hasattr(kind, "__next__"):
            raise Unknown(
                f"it can reach '{path}', an iterator, whose position a replay "
                "doesn't move: pass its elements as arguments"
            )
        if kind.__module__.startswith("numpy.random") or (
            kind.__module__ == "random" and not isinstance(value, type)
        ):
            return self._random_source(path)
        if is_c_function(value):
            if origin(value).startswith(("numpy.random", "random", "_random")):
                return self._random_source(path)
            self._todo.append((path, getattr(value, "__self__", None)))
            return None
        if kind.__module__ == "torch_ltc._capture.capture":
            self._todo.append((path, value._function))
            return None
        if kind is operator.attrgetter:
            return self._check_getter(path, value)
        if kind is MappingProxyType:
            self._todo += [(path, inside) for inside in gc.get_referents(value)]
            return None
        if isinstance(value, torch.nn.Module):
            self.modules.append((path, value))
        if kind.__flags__ & _HEAP_TYPE:
            self._node(ATTRIBUTE, value, "__class__", (kind,), f"{path}.__class__")
        self._visit_attributes(path, value)
        self._visit_buffer(path, value)
        return None

    def _check_getter(self, path: str, getter: operator.attrgetter) -> None:
        names = {name for text in getter.__reduce__()[1] for name in text.split(".")}
        if not names <= self.names.own:
            raise Unknown(
                f"it can call '{path}', an operator.attrgetter of names that the code "
                "doesn't contain: write the attributes in the function"
            )

    def _random_source(self, path: str) -> None:
        raise Unknown(
            f"it can draw random numbers from '{path}', which a replay wouldn't; draw them "
            "with torch, or pass them as arguments"
        )

    def _visit_buffer(self, path: str, value: Any) -> None:
        if isinstance(value, (bytearray, array.array, memoryview)) or (
            type(value).__module__ == "numpy" and hasattr(value, "tobytes")
        ):
            if memoryview(value).nbytes > _MAX_BYTES:
                raise Unknown(
                    f"it refers to '{path}', {memoryview(value).nbytes} bytes that aren't a tensor: make it a tensor, or an argument"
                )
            content = bytes(memoryview(value).tobytes())
            self._node(PROBE, value, _content, (content,), path)

    def _visit_attributes(
        self, path: str, value: Any, hidden: tuple[str, ...] = ()
    ) -> None:
        """Adds an object's namespace, slots and class."""
        kind = type(value)
        space = getattr(value, "__dict__", None)
        if isinstance(space, dict) and (space or not isinstance(value, dict)):
            kept = [
                item if self.names.wanted(value, key, item) else IGNORED
                for key, item in space.items()
            ]
            self._node(DICT, space, tuple(space), kept, f"{path}.")
            for key, item in zip(space, kept):
                if item is IGNORED or key in hidden:
                    continue
                inside = isinstance(value, torch.nn.Module) and key in _TABLES
                if inside:
                    self._visit_table(path, item)
                else:
                    self._todo.append((f"{path}.{key}", item))
        self._todo.append((kind.__name__, kind))
        if kind.__module__ in ("builtins", "collections") or (
            kind.__module__.startswith("torch")
        ):
            return
        for base in kind.__mro__:
            for name, member in vars(base).items():
                if isinstance(member, (MemberDescriptorType, GetSetDescriptorType)):
                    self._visit_slot(path, value, name, member)

    def _visit_slot(self, path: str, value: Any, name: str, member: Any) -> None:
        if name.startswith("__") or not (name in self.names.own or self.names.by_name):
            return
        try:
            content = getattr(value, name)
        except Exception:  # the slot isn't set
            content = ABSENT
        if isinstance(member, GetSetDescriptorType) and type(content) not in _PLAIN:
            return  # the getter creates an object at each access
        self._node(ATTRIBUTE, value, name, (content,), f"{path}.{name}")
        if content is not ABSENT:
            self._todo.append((f"{path}.{name}", content))

    def _visit_table(self, path: str, table: dict) -> None:
        """Adds the dict of a module's parameters, buffers or children."""
        if id(table) not in self._seen:
            self._seen.add(id(table))
            values = tuple(table.values())
            self.nodes.append(
                Node(DICT, table, tuple(table), values, f"{path}.", is_table=True)
            )
            self._todo += [(f"{path}.{key}", item) for key, item in table.items()]


def _is_small_on_cpu(tensor: torch.Tensor) -> bool:
    return (
        tensor.device.type == "cpu"
        and tensor.layout == torch.strided
        and not tensor.is_quantized
        and tensor.nbytes <= bindings().MAX_CONSTANT_BYTES
    )


def _bytes_of(tensor: torch.Tensor) -> bytes:
    values = tensor.detach().resolve_conj().resolve_neg().contiguous()
    # Not through NumPy, which is optional and lacks some dtypes.
    return ctypes.string_at(values.data_ptr(), values.nbytes) if values.nbytes else b""


def _content(value: Any) -> bytes:
    return memoryview(value).tobytes()


def _is_number(key: str, value: Any) -> bool:
    """Whether an option of an optimizer is a hyperparameter whose changes `numbers.py`
    tracks."""
    if key == "betas":
        return isinstance(value, tuple) and all(type(v) is float for v in value)
    return isinstance(value, float) or type(value) is int


def _item(path: str, key: Any) -> str:
    return f"{path}[{key!r}]" if type(key) in _PLAIN else path


def _file_of(kind: type) -> str:
    module = sys.modules.get(kind.__module__)
    return getattr(module, "__file__", None) or ""
