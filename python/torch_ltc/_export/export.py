"""Export: functions, modules and whole training steps as MLIR files.

    torch_ltc.export(model, (x,), dialect="torch").save("model")
    torch_ltc.export_step(step, (x, y), module=model, optimizer=optimizer).save("step")

Everything is traced on device lazy and nothing is compiled. Parameters, buffers and
optimizer states are inputs and, if they are written, outputs of the function, under
their names.
"""

from __future__ import annotations

import contextlib
import copy
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch.utils._pytree import tree_flatten, tree_map

from torch_ltc._backend import bindings
from torch_ltc._export.numbers import (
    Hyperparameters,
    counting_on_the_device,
    draw,
    evaluate,
)
from torch_ltc.config import config
from torch_ltc.messages import logger, what_was_forbidden
from torch_ltc.program import Program, TensorSpec
from torch_ltc.step import mark_step, wait_device_ops

#: Dialects that `export` writes, with their stages.
DIALECTS = {
    "torch": "torch",
    "linalg": "linalg",
    "tosa": "tosa",
    "stablehlo": "stablehlo",
}

#: Types of the number arguments: floats and ints.
SCALAR_TYPES = {
    "torch": {"float": "!torch.float", "int": "!torch.int"},
    "linalg": {"float": "f64", "int": "i64"},
    "tosa": {"float": "tensor<f32>", "int": "tensor<i64>"},
    "stablehlo": {"float": "tensor<f64>", "int": "tensor<i64>"},
}

#: Version of the manifests that this release writes and reads.
MANIFEST_VERSION = 1


class ExportedProgram:
    """One MLIR function with a description of its arguments and results.

    `text` and `bytecode` are the module; `manifest()` describes it as data;
    `save(folder)` writes all of it; `run()` computes it on the CPU.
    """

    def __init__(
        self,
        program: Program,
        dialect: str,
        inputs: list[dict[str, Any]],
        outputs: list[dict[str, Any]],
        scalars: list[dict[str, Any]],
        values: list[torch.Tensor],
        hyperparameters: dict[str, float],
    ) -> None:
        self._program = program
        self.dialect = dialect
        self.entry = program.entry
        #: name, role ("parameter", "buffer", "state", "argument", "random",
        #: "constant"), shape, dtype of each tensor argument; for a random one also the
        #: `distribution` that a run draws it from.
        self.inputs = inputs
        #: The same for each result; role "result" for the function's return values;
        #: `updates`: the number of the input that it replaces, or -1.
        self.outputs = outputs
        #: kind ("int", "float"), value, MLIR type of each number argument; for a step
        #: also its role: "hyperparameter" with a `formula` of `hyperparameters`, or
        #: "constant".
        self.scalars = scalars
        #: Numbers of the optimizer that `run` accepts other values for, by name.
        self.hyperparameters = hyperparameters
        #: The values of the inputs when it was traced.
        self.values = values
        self._compiled: Any = None

    @property
    def text(self) -> str:
        return self._program.text

    @property
    def bytecode(self) -> bytes:
        return self._program.bytecode

    def manifest(self) -> dict[str, Any]:
        """The signature as data for JSON."""
        return {
            "version": MANIFEST_VERSION,
            "dialect": self.dialect,
            "entry": self.entry,
            "inputs": self.inputs,
            "scalars": self.scalars,
            "outputs": self.outputs,
            "hyperparameters": [
                {"name": name, "value": value}
                for name, value in self.hyperparameters.items()
            ],
        }

    def run(
        self, values: list[torch.Tensor] | None = None, **hyperparameters: float
    ) -> list[torch.Tensor]:
        """The outputs, computed by torch_ltc's compiler for `values` of the inputs
        (default: those of the trace); `hyperparameters`: other values than those of the
        trace, such as `lr=0.01`. Supports all dialects but StableHLO."""
        from torch_ltc._backends.mlir_module import compile_mlir

        if self.dialect == "stablehlo":
            raise ValueError(
                "torch_ltc's own compiler doesn't read StableHLO: run the program with "
                "a compiler that does (examples/backends/jax_stablehlo.py), or export "
                "it in dialect torch, linalg or tosa."
            )

        numbers = evaluate(self.scalars, self.hyperparameters, hyperparameters)
        if self._compiled is None:
            self._compiled = compile_mlir(self.text)
        # A donated input is written to.
        tensors = [t.clone() for t in (self.values if values is None else values)]
        return self._compiled(*tensors, *numbers)

    def next(
        self, values: list[torch.Tensor], results: list[torch.Tensor]
    ) -> list[torch.Tensor]:
        """The inputs of the run after the one that computed `results` from `values`:
        parameters, buffers and states are updated, random numbers are drawn from
        PyTorch's generator; arguments are unchanged."""
        following = list(values)
        for result, row in zip(results, self.outputs):
            if row["updates"] >= 0:
                following[row["updates"]] = result
        for number, row in enumerate(self.inputs):
            if row["role"] == "random":
                following[number] = draw(row)
        return following

    def save(self, folder: str | os.PathLike[str], values: bool = True) -> Path:
        """Writes program.mlir, program.mlirbc, manifest.json, manifest.pb and, with
        `values`, inputs.pt: the files that `python -m torch_ltc.replay` reads."""
        from torch_ltc._export.manifest import for_json, manifest_bytes

        path = Path(folder)
        try:
            path.mkdir(parents=True, exist_ok=True)
            (path / "program.mlir").write_text(self.text)
            (path / "program.mlirbc").write_bytes(self.bytecode)
            text = json.dumps(for_json(self.manifest()), indent=1, allow_nan=False)
            (path / "manifest.json").write_text(text)
            (path / "manifest.pb").write_bytes(manifest_bytes(self.manifest()))
            if values:
                numbers = [scalar["value"] for scalar in self.scalars]
                torch.save(
                    {"inputs": self.values, "scalars": numbers}, path / "inputs.pt"
                )
        except OSError as error:
            raise ValueError(
                f"The exported program can't be written to '{path}': "
                f"{error.strerror or error}."
            ) from error
        return path

    def __repr__(self) -> str:
        return (
            f"ExportedProgram({self.dialect}, {len(self.inputs)} inputs, "
            f"{len(self.scalars)} scalars, {len(self.outputs)} outputs)"
        )


def export(
    function: Callable[..., Any],
    args: tuple[Any, ...] = (),
    kwargs: dict[str, Any] | None = None,
    dialect: str = "torch",
) -> ExportedProgram:
    """The computation `function(*args, **kwargs)` as MLIR, without running it.

    `function`: an `nn.Module` (also scripted or traced by `torch.jit`), which isn't
    changed, or a function of tensors. Tensors among the arguments may be on the CPU or
    on device lazy. Buffers that the module writes (batch norm's statistics) are outputs
    too. Code that depends on values of tensors (`.item()`, sizes of `nonzero`) and ops
    without a row in the op table can't be exported; the error contains their line.
    """
    _check_call("export", function, args, dialect)
    kwargs = kwargs or {}
    named: dict[str, tuple[str, torch.Tensor]] = {}
    if isinstance(function, torch.nn.Module):
        function = _lazy_copy(function)
        named.update(_tensors_of(function))
    lazy_args, lazy_kwargs = tree_map(_to_lazy, (tuple(args), kwargs))
    for name, tensor in _argument_names(lazy_args, lazy_kwargs):
        named[name] = ("argument", tensor)
    with (
        _only_tracing("export"),
        config(source_info=True),
        torch.no_grad(),
        _recording() as recording,
        Hyperparameters(None) as numbers,
    ):
        before = _data_keys(named)
        results = function(*lazy_args, **lazy_kwargs)
        return _exported(dialect, named, results, before, recording, numbers)


def export_step(
    step: Callable[..., Any],
    args: tuple[Any, ...] = (),
    *,
    module: torch.nn.Module,
    optimizer: torch.optim.Optimizer | None = None,
    dialect: str = "torch",
    warmup: int = 1,
) -> ExportedProgram:
    """A whole training step as MLIR: forward, backward and optimizer.

    `step(*args)` is called `warmup` times first, so that the optimizer has its state,
    and once to be traced; `module` must be on device lazy. Training continues
    afterwards: the traced step runs with the next end of a step. Outputs: the results
    of `step`, then every parameter, buffer and state that it writes, each with the
    number of the input that it replaces. Step counts are states, random numbers inputs
    of role "random", and numbers that depend on the optimizer's hyperparameters have a
    formula, so that the program can be run for one step after the other:

        values = exported.values
        for rate in schedule:
            results = exported.run(values, lr=rate)
            values = exported.next(values, results)

    All other inputs have role "constant"; they are logged as a warning if they are
    tensors.
    """
    _check_call("export_step", step, args, dialect)
    parameter = next(module.parameters(), None)
    if parameter is not None and parameter.device.type != "lazy":
        raise ValueError(
            f"export_step traces on device lazy, but the module is on "
            f"'{parameter.device}'; move it with .to('lazy') before its optimizer is "
            "made."
        )
    lazy_args = tree_map(_to_lazy, tuple(args))
    for _ in range(warmup):
        step(*lazy_args)
    mark_step()
    with (
        counting_on_the_device(optimizer),
        _only_tracing("export_step"),
        config(auto_step=False, source_info=True),
        _recording() as recording,
        Hyperparameters(optimizer) as numbers,
    ):
        named = {**_tensors_of(module), **_states_of(module, optimizer)}
        for name, tensor in _argument_names(lazy_args, {}):
            named[name] = ("argument", tensor)
        before = _data_keys(named)
        results = step(*lazy_args)
        exported = _exported(dialect, named, results, before, recording, numbers)
    if baked := [row["name"] for row in exported.inputs if row["role"] == "constant"]:
        logger.warning(
            "torch_ltc.export_step: %d tensors are constants of the program, because "
            "they are neither arguments nor the module's nor the optimizer's: %s.",
            len(baked),
            ", ".join(baked[:8]),
        )
    return exported


# -- tracing -------------------------------------------------------------------


def _check_call(what: str, function: Any, args: Any, dialect: str) -> None:
    _check_dialect(dialect)
    if not callable(function):
        raise TypeError(
            f"torch_ltc.{what} needs a function or a module, but got a "
            f"{type(function).__name__}."
        )
    if not isinstance(args, (tuple, list)):
        raise TypeError(
            f"torch_ltc.{what} needs the arguments as a tuple, as in (x,), but got a "
            f"{type(args).__name__}."
        )


class _only_tracing:  # noqa: N801 (used in `with` only)
    """Raises errors for events that would cut the program into pieces."""

    def __init__(self, what: str) -> None:
        self._what = what

    def __enter__(self) -> None:
        mark_step()
        wait_device_ops()
        self._before = bindings().counters()["executions"]
        bindings().enter_guard("sync")
        bindings().enter_guard("fallback")

    def __exit__(self, kind: type | None, error: Any, trace: Any) -> None:
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
def _recording() -> Iterator[Any]:
    recording = bindings().Recording([])
    try:
        yield recording
    finally:
        recording.close()


def _exported(
    dialect: str,
    named: dict[str, tuple[str, torch.Tensor]],
    results: Any,
    before: dict[str, int],
    recording: Any,
    numbers: Hyperparameters,
) -> ExportedProgram:
    """`before`: the identities of the objects in `named` before the function ran."""
    backend = bindings()
    returned = [
        (f"result{i}" if i else "result", tensor)
        for i, tensor in enumerate(t for t in tree_flatten(results)[0] if _is_lazy(t))
    ]
    written = [
        (name, tensor)
        for name, (_, tensor) in named.items()
        if backend.data_key(tensor) != before[name]
    ]
    if not returned and not written:
        raise ValueError(
            "Nothing to export: the function returns no tensor on device lazy and "
            "writes none of the module's."
        )
    traced = backend.pending_program([tensor for _, tensor in returned + written])
    program = Program(traced, DIALECTS[dialect])
    keys = {key: name for name, key in before.items() if key}
    inputs = _input_rows(traced, program, keys, named, dict(recording.drawn()))
    places = {row["name"]: number for number, row in enumerate(inputs)}
    outputs = _output_rows(traced, program, returned, written, named, places)
    scalars = []
    for kind, value in traced.scalars():
        formula = numbers.explain(value)
        role = "hyperparameter" if formula else "constant"
        row = {"kind": kind, "value": value, "type": SCALAR_TYPES[dialect][kind]}
        if numbers.is_known:
            row |= {"role": role, "formula": formula}
        scalars.append(row)
    for row, value in zip(scalars, evaluate(scalars, numbers.values, {})):
        row["value"] = value
    values = [traced.input_tensor(i) for i in range(len(inputs))]
    return ExportedProgram(
        program, dialect, inputs, outputs, scalars, values, numbers.values
    )


def _row(name: str, role: str, spec: TensorSpec) -> dict[str, Any]:
    return {
        "name": name,
        "role": role,
        "shape": list(spec.shape),
        "dtype": str(spec.dtype).removeprefix("torch."),
    }


def _input_rows(
    traced: Any,
    program: Program,
    keys: dict[int, str],
    named: dict[str, tuple[str, torch.Tensor]],
    drawn: dict[int, str],
) -> list[dict[str, Any]]:
    """`drawn`: distributions of random numbers, by identity."""
    rows = []
    for number, (row, spec) in enumerate(zip(traced.inputs(), program.inputs)):
        name, distribution = keys.get(row["data"]), drawn.get(row["data"], "")
        role = named[name][0] if name else "random" if distribution else "constant"
        rows.append(_row(name or f"{role}{number}", role, spec))
        if role == "random":
            rows[-1]["distribution"] = distribution
    return rows


def _output_rows(
    traced: Any,
    program: Program,
    returned: list[tuple[str, torch.Tensor]],
    written: list[tuple[str, torch.Tensor]],
    named: dict[str, tuple[str, torch.Tensor]],
    places: dict[str, int],
) -> list[dict[str, Any]]:
    """Tensors that share a value are one output, under the first tensor's name."""
    rows: dict[int, dict[str, Any]] = {}
    for i, (name, _) in enumerate(returned + written):
        output = traced.output_of_tensor[i]
        if output in rows:
            rows[output]["also"].append(name)
            continue
        role = "result" if i < len(returned) else named[name][0]
        row = _row(name, role, program.outputs[output])
        row["updates"] = -1 if i < len(returned) else places.get(name, -1)
        row["also"] = []
        rows[output] = row
    return [rows[number] for number in range(len(program.outputs))]


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
    """ "weight.exp_avg": the optimizer's tensors by parameter."""
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
    for number, value in enumerate(args):
        tensors = [t for t in tree_flatten(value)[0] if _is_lazy(t)]
        for i, tensor in enumerate(tensors):
            yield f"arg{number}" + (f".{i}" if len(tensors) > 1 else ""), tensor
    for key, value in kwargs.items():
        tensors = [t for t in tree_flatten(value)[0] if _is_lazy(t)]
        for i, tensor in enumerate(tensors):
            yield key + (f".{i}" if len(tensors) > 1 else ""), tensor


def _is_lazy(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.device.type == "lazy"


def _to_lazy(value: Any) -> Any:
    return value.to("lazy") if isinstance(value, torch.Tensor) else value


def _check_dialect(dialect: str) -> None:
    if dialect not in DIALECTS:
        raise ValueError(
            f"Unknown dialect '{dialect}': it is one of {', '.join(DIALECTS)}."
        )
