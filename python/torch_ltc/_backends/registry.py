"""Backends in Python: user-supplied compilers for the programs of device lazy.

def compile(program):          # a torch_ltc.program.Program
    module = my_compiler.load(program.text)
    return lambda *arguments: module.run(arguments)

torch_ltc.register_backend("mine", compile, stage="linalg")
with torch_ltc.use_backend("mine"):
    train()
"""

from __future__ import annotations

import inspect
import os
import tempfile
import threading
import traceback
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from importlib.metadata import entry_points
from typing import Any

import torch

from torch_ltc._backend import bindings
from torch_ltc._diagnostics.messages import logger
from torch_ltc.config import config
from torch_ltc.program import MODULE_STAGES, SYMBOLIC_STAGES, Program, SymbolicTrace
from torch_ltc.step import mark_step

#: The group of entry points of installed backends: each is named like a backend, and refers
#: to a function that registers the backend.
ENTRY_POINTS = "torch_ltc.backends"


class BackendError(RuntimeError):
    """A failure of a registered backend; the message contains the backend's traceback.
    The step that runs the program raises this message as a RuntimeError."""


@dataclass(frozen=True)
class _Backend:
    name: str
    compile: Callable[[Program], Callable[..., Any]]
    stage: str
    legal_ops: tuple[str, ...]
    unsupported_ops: tuple[str, ...]
    dynamic: bool


_registered: dict[str, _Backend] = {}


def _compile_tosa(program: Program) -> Callable[..., Any]:
    from torch_ltc._backends.mlir_module import compile_mlir

    return compile_mlir(program.bytecode)


#: Stage and compile function of each backend that is always available. "tosa" runs programs
#: on our own runtime, compiled from TOSA.
_BUILTIN: dict[str, tuple[str, Callable[[Program], Callable[..., Any]]]] = {
    "tosa": ("tosa", _compile_tosa)
}


def _op_names(names: Iterable[str], what: str) -> tuple[str, ...]:
    """Returns the names in the form "aten.sort"; "aten::sort" is accepted, too."""
    if isinstance(names, str):
        raise TypeError(f"{what} must be a list of ops, [{names!r}], but got a string.")
    return tuple(name.replace("::", ".") for name in names)


@cache
def _traced_ops() -> frozenset[str]:
    """Returns the names of the ops that programs can contain, with and without their
    overloads."""
    torch.empty(0, device="lazy")  # the first tensor registers the kernels
    has_kernel = torch._C._dispatch_has_kernel_for_dispatch_key
    names = set()
    for name in torch._C._dispatch_get_all_op_names():
        if name.endswith("out") and name.startswith("aten::"):
            continue  # programs contain the functional form
        if not name.startswith("aten::") or has_kernel(name, "Lazy"):
            name = name.replace("::", ".", 1)
            names |= {name, ".".join(name.split(".")[:2])}
    return frozenset(names)


def _check_names(names: tuple[str, ...], what: str) -> None:
    for name in names:
        if name not in _traced_ops():
            near = get_close_matches(name, sorted(_traced_ops()), 3, 0.7)
            raise ValueError(
                f"{what} contains '{name}', which isn't an op of programs"
                + (f"; did you mean {' or '.join(near)}?" if near else ".")
            )


def register_backend(
    name: str,
    compile: Callable[[Program], Callable[..., Any]],
    *,
    stage: str = "torch",
    legal_ops: Iterable[str] = (),
    unsupported_ops: Iterable[str] = (),
    dynamic: bool = False,
) -> None:
    """Registers `compile` as the compiler that `use_backend(name)` selects.

    `compile(program)` is called once for each new program and returns a function. That
    function is called on a worker thread, with one CPU tensor for each of
    `program.inputs` and one number for each of `program.scalars`. The tensors, and
    `.numpy()` and `torch.to_dlpack` of them, are views of the program's memory, valid
    during the call. The function returns one result for each of `program.outputs`: a CPU
    tensor, a numpy array, or any object with `__dlpack__`. A function with a parameter
    named `out` gets a list of tensors as this argument, writes the results to them and
    returns None.

    `stage` is the stage of `program.text` and `program.bytecode`: "torch" (at the
    backend contract, in torch-mlir's syntax), "linalg", "tosa", "stablehlo" or
    "torch-raw". At stages tosa and stablehlo the numbers are tensors of rank 0.
    `legal_ops`: ops ("aten.gelu") that the backend supports although torch_ltc would
    decompose them. `unsupported_ops`: ops that the backend doesn't support; they run
    eagerly and are listed in `torch_ltc.fallbacks()`, unless a decomposition removes
    them.

    `dynamic`: the backend supports programs for all sizes. A program that differs from an
    earlier one only in sizes is compiled once more, with `?` for the sizes that vary
    (`program.is_dynamic`), and its function is called with any sizes. Sizes that no
    input has are passed as ints after the program's other numbers. Programs without such
    a form are compiled for each size. Available at stages torch and torch-raw.

    Raises ValueError for an invalid name, stage or op name, and TypeError if `compile`
    isn't callable.
    """
    if not name or not isinstance(name, str):
        raise ValueError("A backend's name must be a non-empty string.")
    if stage not in MODULE_STAGES:
        raise ValueError(
            f"Unknown stage '{stage}' for backend '{name}': it must be one of "
            f"{', '.join(MODULE_STAGES)}."
        )
    if not callable(compile):
        raise TypeError(
            f"Backend '{name}' needs a function compile(program), but got an "
            f"object of class {type(compile).__name__}."
        )
    if dynamic and stage not in SYMBOLIC_STAGES:
        raise ValueError(
            f"Backend '{name}' can't be dynamic at stage '{stage}': programs for all "
            f"sizes are available at stages {' and '.join(SYMBOLIC_STAGES)}."
        )
    unsupported = _op_names(unsupported_ops, "unsupported_ops")
    _check_names(unsupported, "unsupported_ops")
    backend = _Backend(
        name,
        compile,
        stage,
        _op_names(legal_ops, "legal_ops"),
        unsupported,
        dynamic,
    )
    bindings().register_backend(
        name,
        lambda traced: _compile(backend, traced),
        list(backend.unsupported_ops),
        list(backend.legal_ops),
        (lambda general: _compile_general(backend, general)) if dynamic else None,
    )
    _registered[name] = backend
    if config.backend == name:
        config.backend = name  # drops what is cached about the earlier backend


def unregister_backend(name: str) -> None:
    """Removes a backend; if it is selected, torch_ltc's compiler is selected again."""
    if config.backend == name:
        use_backend(None)
    _registered.pop(name, None)
    bindings().remove_backend(name)


def backends() -> dict[str, str]:
    """Returns the names that `use_backend` accepts, with their stage, or "installed" for
    backends of packages that aren't loaded yet."""
    found = {point.name: "installed" for point in entry_points(group=ENTRY_POINTS)}
    found.update({name: stage for name, (stage, _) in _BUILTIN.items()})
    found.update({name: backend.stage for name, backend in _registered.items()})
    return dict(sorted(found.items()))


class use_backend:  # noqa: N801 (it is used as a function and in `with`)
    """Selects the compiler of programs from now on, or for a `with` block.

    `name`: a registered or installed backend; None: torch_ltc's own compiler. Raises
    ValueError for an unknown name. Pending ops are first run as a step of the previous
    backend. If that backend can't compile the step, raises RuntimeError with the reason,
    unless this error was raised before. In both cases, the new compiler is selected and
    runs the pending ops.
    """

    def __init__(self, name: str | None) -> None:
        if name and name not in _registered:
            find_installed(name)
        self._earlier = config.backend
        self._switch(name or "")

    def _switch(self, name: str) -> None:
        if config.backend != name:
            was_raised = config.backend in _failures.raised
            try:
                mark_step()
            except RuntimeError as error:
                if not was_raised:
                    raise
                logger.warning("%s The next compiler will run it.", error)
            finally:
                _failures.raised.discard(name)
                config.backend = name

    def __enter__(self) -> use_backend:
        return self

    def __exit__(self, kind: type | None, *error: Any) -> None:
        if kind is None:
            self._switch(self._earlier)
        # The pending ops may be those that failed, so they aren't run here.
        else:
            config.backend = self._earlier


def find_installed(name: str) -> None:
    """Registers a built-in backend, or loads the installed package that provides the
    backend. Raises ValueError if there is none."""
    if name in _BUILTIN:
        stage, compile = _BUILTIN[name]
        register_backend(name, compile, stage=stage)
        return
    points = [p for p in entry_points(group=ENTRY_POINTS) if p.name == name]
    if not points:
        known = ", ".join(backends()) or "none"
        raise ValueError(
            f"There is no backend '{name}'; registered or installed: {known}. "
            "torch_ltc.register_backend registers one."
        )
    points[0].load()()
    if name not in _registered:
        raise ValueError(
            f"The entry point '{points[0].value}' of package "
            f"{points[0].dist.name if points[0].dist else '?'} registered no backend "
            f"'{name}'."
        )


# -- functions that the bindings call ----------------------------------------


class _Failures(threading.local):
    """The backends that have failed to compile a program since they were selected. The
    program's tensors stay pending, so the next step includes them again."""

    def __init__(self) -> None:
        self.raised: set[str] = set()


_failures = _Failures()


def _compile_general(
    backend: _Backend, general: Any
) -> str | tuple[Any, Callable[..., None]]:
    """Returns the program for all sizes and its function, or the reason why there is
    none."""
    try:
        trace = SymbolicTrace(general, backend.stage, backend.legal_ops)
    except RuntimeError as error:
        return str(error).split("\n")[0]
    return trace.symbolic, _compile(backend, trace)


def _compile(backend: _Backend, traced: Any) -> Callable[..., None]:
    program = Program(traced, backend.stage, backend.legal_ops)
    try:
        _check_ops(backend, program)
        function = backend.compile(program)
        if not callable(function):
            raise TypeError(
                "compile(program) must return a function, but returned a "
                f"{type(function).__name__}"
            )
        return _Runner(backend, program, function)
    except (Exception, SystemExit) as error:
        _failures.raised.add(backend.name)
        raise _failure(backend, program, "failed to compile", error) from error


def _check_ops(backend: _Backend, program: Program) -> None:
    """Raises BackendError if the program contains an unsupported op: a decomposition
    created it, so it can't fall back any more."""
    if not backend.unsupported_ops or backend.stage not in ("torch-raw", "torch"):
        return
    for line in program.text.splitlines():
        words = line.split()
        name = words[2].removeprefix("torch.") if len(words) > 2 else ""
        if any(
            name == op or name.rpartition(".")[0] == op
            for op in backend.unsupported_ops
        ):
            raise BackendError(
                f"Backend '{backend.name}' doesn't support torch.{name}, which a "
                f"decomposition creates in program {program.name[:12]}; list the decomposed op in its legal_ops or unsupported_ops (torch_ltc.debug.dump shows stages torch-raw and torch)."
            )


class _Runner:
    """Runs a compiled program on the buffers of a step."""

    def __init__(
        self, backend: _Backend, program: Program, function: Callable[..., Any]
    ) -> None:
        self._backend = backend
        self._program = program
        self._function = function
        self._writes = _has_out(function)

    def __call__(
        self,
        inputs: list[torch.Tensor],
        scalars: list[float],
        outputs: list[torch.Tensor],
    ) -> None:
        try:
            if self._writes:
                self._function(*inputs, *scalars, out=outputs)
            else:
                self._store(self._function(*inputs, *scalars), outputs)
        except (Exception, SystemExit) as error:
            raise _failure(
                self._backend, self._program, "failed to run", error, inputs, scalars
            ) from error

    def _store(self, results: Any, outputs: list[torch.Tensor]) -> None:
        if len(outputs) == 1 and not isinstance(results, (tuple, list)):
            results = [results]
        if not isinstance(results, Sequence) or len(results) != len(outputs):
            count = len(results) if isinstance(results, Sequence) else 1
            raise ValueError(f"it returned {count} results, expected {len(outputs)}")
        for number, (result, output) in enumerate(zip(results, outputs)):
            tensor = _as_tensor(result)
            if tensor.shape != output.shape or tensor.dtype != output.dtype:
                raise ValueError(
                    f"result {number} has shape {list(tensor.shape)} and dtype "
                    f"{tensor.dtype}, expected {list(output.shape)} and {output.dtype}"
                )
            output.copy_(tensor)


def _has_out(function: Callable[..., Any]) -> bool:
    try:
        return "out" in inspect.signature(function).parameters
    except (TypeError, ValueError):  # some C functions have no signature
        return False


def _as_tensor(result: Any) -> torch.Tensor:
    if isinstance(result, torch.Tensor):
        if result.device.type != "cpu":
            raise TypeError(
                f"a result is a tensor on '{result.device}', expected one on the CPU"
            )
        return result
    if type(result).__module__ != "numpy" and hasattr(result, "__dlpack__"):
        return torch.from_dlpack(result)
    if not hasattr(result, "__array__"):
        raise TypeError(
            f"a result is a {type(result).__name__}, expected a CPU tensor, a numpy "
            "array or an object with __dlpack__"
        )
    import numpy

    # torch requires writable memory in C order, although the array is only read here.
    array = numpy.require(result, requirements=["C", "W"])
    array = array.reshape(numpy.shape(result))
    if array.dtype.name == "bfloat16":  # from ml_dtypes: torch doesn't support it
        return torch.from_numpy(array.view(numpy.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def _failure(
    backend: _Backend,
    program: Program,
    what: str,
    error: BaseException,
    inputs: list[torch.Tensor] | None = None,
    scalars: list[float] | None = None,
) -> BackendError:
    """Returns a BackendError with the backend's own traceback, and saves the program for
    reproduction."""
    if isinstance(error, BackendError):
        return error
    frames = traceback.extract_tb(error.__traceback__)
    own = "".join(traceback.format_list([f for f in frames if f.filename != __file__]))
    text = f"{own}{type(error).__name__}: {error}"
    where = _save(backend, program, text, inputs, scalars)
    return BackendError(
        f"Backend '{backend.name}' {what} program {program.name[:12]}: "
        f"{type(error).__name__}: {str(error).rstrip('.')}. {where}\n{text}"
    )


def _text(program: Program) -> str:
    """Returns the program's text at the backend's stage, or at stage torch-raw if it can't
    be lowered to that stage."""
    try:
        return program.text
    except RuntimeError:
        return program.text_at("torch-raw")


def _save(
    backend: _Backend,
    program: Program,
    text: str,
    inputs: list[torch.Tensor] | None,
    scalars: list[float] | None,
) -> str:
    """Saves the program in a new folder; returns a sentence with the folder's path."""
    try:
        folder = tempfile.mkdtemp(
            prefix=f"torch_ltc-{backend.name}-{program.name[:12]}-"
        )
        with open(os.path.join(folder, "program.mlir"), "w") as file:
            file.write(_text(program))
        with open(os.path.join(folder, "error.txt"), "w") as file:
            file.write(text + "\n")
        if inputs is not None:
            values = {"inputs": inputs, "scalars": scalars}
            torch.save(values, os.path.join(folder, "inputs.pt"))
        return f"The program was saved in {folder}."
    except (OSError, RuntimeError) as problem:
        return f"The program couldn't be saved ({problem})."
