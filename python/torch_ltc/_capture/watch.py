"""Tracks which Python code a recorded call runs, and which C functions it calls."""

from __future__ import annotations

import math
import sys
from contextvars import ContextVar
from types import BuiltinFunctionType, CodeType, FrameType, FunctionType, ModuleType
from typing import Any

import torch

from torch_ltc._capture.code import acts_for_torch, is_opaque, is_torch, user_line
from torch_ltc._capture.traced_sizes import TRACED_MATH, SizeTrace

# Modules of C functions whose results depend only on their arguments (or on Python
# objects, which are compared separately).
_PURE = frozenset(
    [
        "_abc",
        "_bisect",
        "_collections",
        "_collections_abc",
        "_decimal",
        "_functools",
        "_heapq",
        "_operator",
        "_sre",
        "_struct",
        "_typing",
        "_warnings",
        "_weakref",
        "abc",
        "bisect",
        "builtins",
        "cmath",
        "collections",
        "contextlib",
        "copy",
        "copyreg",
        "dataclasses",
        "decimal",
        "enum",
        "fractions",
        "functools",
        "heapq",
        "inspect",
        "itertools",
        "keyword",
        "math",
        "ml_dtypes",
        "numbers",
        "numpy",
        "operator",
        "re",
        "string",
        "struct",
        "sys",
        "torch",
        "torch_ltc",
        "types",
        "typing",
        "weakref",
    ]
)
_IMPURE_BUILTINS = frozenset(["print", "open", "input", "breakpoint"])
# Modules of C functions that torch's own code must not call either.
_IMPURE_IN_TORCH = frozenset(["io", "random", "_random", "_io", "secrets"])
_SEEDING = frozenset(
    ["manual_seed", "seed", "set_state", "set_offset", "graphsafe_set_state"]
)
# C functions of user code that compare numbers by their methods, or don't take any.
_TRACING_MODULES = frozenset(
    [
        "_abc",
        "_bisect",
        "_collections_abc",
        "_contextvars",
        "_functools",
        "_sre",
        "_typing",
        "_warnings",
    ]
    + ["_weakref", "abc", "contextlib", "copyreg", "dataclasses", "enum", "functools"]
    + ["inspect", "re", "sys", "torch", "torch_ltc", "types", "typing", "weakref"]
)
# Functions and methods of built-in types that read a number, such as an index.
_READING_NUMBERS = frozenset(
    ["bin", "center", "chr", "expandtabs", "hex", "indices", "insert", "ljust", "numel"]
    + ["oct", "pop", "pow", "rjust", "rotate", "sum", "to_bytes", "zfill", "index"]
    + ["__getitem__", "__setitem__", "__delitem__", "__mul__", "__rmul__", "__imul__"]
)
_READING = frozenset(["tolist", "numpy", "__array__", "__dlpack__", "data_ptr"])


def origin(function: Any) -> str:
    """Returns the name of the module that defines a C function."""
    owner = getattr(function, "__self__", None)
    if owner is None or isinstance(owner, ModuleType):
        return getattr(function, "__module__", None) or ""
    kind = owner if isinstance(owner, type) else type(owner)
    for base in kind.__mro__:
        found = vars(base).get(getattr(function, "__name__", ""))
        # An override in Python calls the C function of a base class.
        if found is not None and not isinstance(found, FunctionType):
            return base.__module__
    return kind.__module__


def is_pure(function: Any) -> bool:
    """Whether the result of a C function depends only on its arguments (`_PURE`)."""
    module = origin(function)
    if module.startswith("numpy.random"):
        return False
    if module.partition(".")[0] not in _PURE:
        return False
    return module != "builtins" or function.__name__ not in _IMPURE_BUILTINS


def reads_numbers(function: Any) -> bool:
    """Whether a C function may read an argument's value without calling its methods."""
    name, owner = function.__name__, getattr(function, "__self__", None)
    # They call `__hash__`, `__floor__` and `__eq__`.
    if isinstance(owner, dict) or (owner is math and name in TRACED_MATH):
        return False
    if isinstance(owner, (list, tuple)) and name == "index":
        return False
    is_of_container = origin(function) in ("builtins", "collections", "_collections")
    if is_of_container or isinstance(owner, torch.Size):
        return name in _READING_NUMBERS or isinstance(owner, (float, complex, int))
    return origin(function).partition(".")[0] not in _TRACING_MODULES


class Watch:
    """Watches the calling thread in a `with` block. `codes`: the code that ran, with its
    globals and the user's line that first led to it; `problem`: what a replay couldn't
    repeat, or ""."""

    def __init__(self, size_trace: SizeTrace | None = None) -> None:
        self._size_trace = size_trace
        self.codes: dict[CodeType, tuple[dict[str, Any], str]] = {}
        self.problem = ""
        #: The first line that sets a random generator's state; "" if there is none.
        self.seeds = ""
        #: Whether the call used context variables.
        self.uses_context = False

    def __enter__(self) -> Watch:
        if sys.getprofile() is not None:
            self.problem = "a profiler runs (sys.setprofile), which recording needs"
        else:
            sys.setprofile(self._event)
        return self

    def __exit__(self, *error: Any) -> None:
        if sys.getprofile() == self._event:
            sys.setprofile(None)

    def _event(self, frame: FrameType, event: str, argument: Any) -> None:
        if event == "call":
            code = frame.f_code
            if code not in self.codes:
                self.codes[code] = frame.f_globals, user_line(frame)
            if self._size_trace and is_opaque(code.co_filename):
                self._size_trace.pin_within(frame.f_locals)
        elif event == "c_call":
            self._called(frame, argument)

    def _called(self, frame: FrameType, function: Any) -> None:
        name = function.__name__
        owner = getattr(function, "__self__", None)
        is_of_user = not is_torch(frame.f_code.co_filename)
        if self._size_trace and is_of_user and reads_numbers(function):
            self._size_trace.pin_all()
        if name in _SEEDING and isinstance(owner, torch._C.Generator):
            self.seeds = self.seeds or user_line(frame)
        if isinstance(owner, ContextVar):
            self.uses_context = True
        elif not is_of_user:
            if origin(function).partition(".")[0] in _IMPURE_IN_TORCH:
                self._reject(frame, function)
        elif name in _READING and isinstance(owner, torch.Tensor):
            if owner.device.type == "cpu":
                self._reject(frame, function, "reads a CPU tensor's values")
        elif not is_pure(function) and not acts_for_torch(frame):
            self._reject(frame, function)

    def _reject(self, frame: FrameType, function: Any, why: str = "") -> None:
        if self.problem or getattr(function, "__func__", None) is not None:
            return
        module = origin(function)
        name = (
            function.__name__
            if module == "builtins"
            else (f"{module}.{function.__name__}")
        )
        self.problem = (
            f"it calls {name} at {user_line(frame)}, which "
            f"{why or 'a replay would neither repeat nor update the results of'}"
        )


def is_c_function(value: Any) -> bool:
    """Whether `value` is a C function, including kinds that profiling doesn't report."""
    return isinstance(value, BuiltinFunctionType) or (
        callable(value)
        and type(value).__name__
        in ("cython_function_or_method", "fused_cython_function", "method_descriptor")
    )
