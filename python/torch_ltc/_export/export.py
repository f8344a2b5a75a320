"""Exports functions, modules and whole training steps as MLIR files.

    torch_ltc.export(model, (x,), dialect="torch").save("model")
    torch_ltc.export_step(step, (x, y), module=model, optimizer=optimizer).save("step")

Calls are traced on device lazy and nothing is compiled. Parameters, buffers and optimizer
states are inputs of the MLIR function, under their names, and also outputs if they are
written.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from types import NoneType
from typing import Any

import torch
from torch.utils._pytree import tree_map

from torch_ltc._backend import bindings
from torch_ltc._diagnostics.messages import logger
from torch_ltc._export.dynamic_shapes import Variable, find_variables
from torch_ltc._export.numbers import (
    draw,
    evaluate,
)
from torch_ltc._export.symbolic import (
    Sizes,
    SymbolicSizes,
    generalize,
    learn_numbers,
)
from torch_ltc._export.tracing import (
    Traced,
    resized,
    restoring,
    tensor_names,
    to_lazy,
    tracing_call,
    tracing_step,
)
from torch_ltc.program import SYMBOLIC_STAGES, Program, TensorSpec
from torch_ltc.step import mark_step

#: Dialects that `export` writes, with their stages.
DIALECTS = {
    "torch": "torch",
    "linalg": "linalg",
    "tosa": "tosa",
    "stablehlo": "stablehlo",
}

#: MLIR types of the number arguments, by dialect and kind.
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

    `text` and `bytecode` are the MLIR module; `manifest()` describes the function in a
    dict; `save(folder)` writes all of these; `run()` runs the function on the CPU.
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
        #: "constant"), shape, dtype of each tensor argument; for a random argument also
        #: the `distribution` from which it is drawn.
        self.inputs = inputs
        #: The same for each result, with role "result" for the function's return values.
        #: `updates`: the index of the input that the result replaces, or -1.
        self.outputs = outputs
        #: kind ("int", "float"), value, MLIR type of each number argument; for a step
        #: and with `dynamic_shapes` also its role: "hyperparameter" with a `formula` of
        #: `hyperparameters`, "size" with a `formula` of `symbols`, or "constant".
        self.scalars = scalars
        #: The hyperparameters that formulas of `scalars` read, by name. `run` accepts new
        #: values for these.
        self.hyperparameters = hyperparameters
        #: The values of the inputs in the trace.
        self.values = values
        #: The symbols of sizes that vary: name, min, max of each.
        self.symbols: list[dict[str, Any]] = []
        self._sizes: SymbolicSizes | None = None
        self._compiled: dict[tuple[tuple[str, int], ...], Any] = {}

    def generalize(
        self, variables: list[Variable], trace: Callable[[Sizes], Any]
    ) -> None:
        """Replaces the program by one for all sizes of `variables`. `trace` traces the
        program at given sizes. Raises ValueError if a size can't vary as specified."""
        stage = DIALECTS[self.dialect]
        sizes = generalize(variables, trace, self._program.traced, self.inputs, stage)
        self._program = Program(sizes.trace, stage)
        self.entry = self._program.entry
        self._sizes = sizes
        self.symbols = [symbol.row() for symbol in sizes.symbols]
        for number, dim, text in sizes.places:
            known = [str(size) for size in self.inputs[number]["shape"]]
            self.inputs[number].setdefault("sizes", known)[dim] = text
        for row, formula in zip(self.scalars, sizes.formulas):
            if formula:
                row.update(role="size", formula=formula)

    @property
    def text(self) -> str:
        return self._program.text

    @property
    def bytecode(self) -> bytes:
        return self._program.bytecode

    def manifest(self) -> dict[str, Any]:
        """Returns a dict that describes the function's arguments and results."""
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
            "symbols": self.symbols,
        }

    def run(
        self, values: list[torch.Tensor] | None = None, **hyperparameters: float
    ) -> list[torch.Tensor]:
        """Runs the program with torch_ltc's compiler and returns the outputs on the CPU.

        `values`: CPU tensors for the inputs (default: those of the trace).
        `hyperparameters`: new values, such as `lr=0.01`. Raises ValueError for dialect
        stablehlo, for an unknown hyperparameter, and for sizes at which the program isn't
        valid, and TypeError if `values` isn't a list."""
        from torch_ltc._backends.mlir_module import compile_mlir

        if self.dialect == "stablehlo":
            raise ValueError(
                "torch_ltc's own compiler doesn't read StableHLO: run the program with "
                "a compiler that does (examples/backends/jax_stablehlo.py), or export "
                "it in dialect torch, linalg or tosa."
            )

        if not isinstance(values, (list, tuple, NoneType)):
            raise TypeError(
                "ExportedProgram.run needs a list of CPU tensors, one for each input, but "
                f"got {values!r:.60}."
            )
        # Copies the inputs, because the program may overwrite donated ones.
        tensors = [t.clone() for t in (self.values if values is None else values)]
        sizes = self._sizes.values(tensors) if self._sizes else []
        numbers = evaluate(
            self.scalars, self.hyperparameters, hyperparameters, dict(sizes)
        )
        compiled = self._compiled.get(tuple(sizes))
        if compiled is None:
            text = (
                bindings().specialize_module(self.text, sizes) if sizes else self.text
            )
            compiled = self._compiled[tuple(sizes)] = compile_mlir(text)
        return compiled(*tensors, *numbers)

    def next(
        self, values: list[torch.Tensor], results: list[torch.Tensor]
    ) -> list[torch.Tensor]:
        """Returns the inputs of the next run, after a run that computed `results` from
        `values`: parameters, buffers and states are updated, random numbers are generated
        by PyTorch's generator, and all other inputs are unchanged."""
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
        `values`, inputs.pt: the files that `python -m torch_ltc.replay` reads. Returns the
        folder. Raises ValueError if a file can't be written."""
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
    *,
    dynamic_shapes: Any = None,
) -> ExportedProgram:
    """Exports the computation `function(*args, **kwargs)` as MLIR, without running it.

    `function`: an `nn.Module` (including modules scripted or traced by `torch.jit`), which
    isn't changed, or a function of tensors. Tensors among the arguments may be on the CPU
    or on device lazy. Buffers that the module writes (for example, batch norm's statistics)
    are outputs too. `dialect`: torch, linalg, tosa or stablehlo.

    Raises ValueError, with the Python line, for code that depends on values of tensors (for
    example, `.item()` and `nonzero`) and for ops without a row in the op table.

    `dynamic_shapes`: the varying sizes of the arguments, in the form that torch.export
    accepts: `{"x": {0: Dim("batch", min=2, max=64)}}` by names, or `({0: batch}, None)` by
    positions; also `Dim.DYNAMIC`, `Dim.AUTO`, `Dim.STATIC`, the same Dim for equal sizes,
    and `2*batch`. The program is valid from a Dim's `min`, at least 2, to its `max`;
    without these bounds, for the ranges in the result's `symbols`. The function is traced
    several more times, at other sizes and at the bounds. Only dialect torch supports this.
    """
    _check_call("export", function, args, dialect, dynamic_shapes)
    call = tuple(args), kwargs or {}
    variables = _variables(function, *call, dynamic_shapes)

    def trace(sizes: Sizes) -> Any:
        """Traces the program at the given sizes."""
        with tracing_call(function, *resized(call, sizes), True) as traced:
            return traced.program()

    learn_numbers(variables, trace)
    with tracing_call(function, *call, bool(variables)) as traced:
        exported = _exported(dialect, traced)
    if variables:
        exported.generalize(variables, trace)
    return exported


def export_step(
    step: Callable[..., Any],
    args: tuple[Any, ...] = (),
    *,
    module: torch.nn.Module,
    optimizer: torch.optim.Optimizer | None = None,
    dialect: str = "torch",
    warmup: int = 1,
    dynamic_shapes: Any = None,
) -> ExportedProgram:
    """Exports a whole training step as MLIR: forward, backward and optimizer.

    `step(*args)` is called `warmup` times first, so that the optimizer has its state,
    and once to be traced; `module` must be on device lazy. Training continues afterwards:
    the traced step runs at the next end of a step. The outputs are the results of `step`,
    then every parameter, buffer and state that it writes, each with the index of the input
    that it replaces. Step counts are states, random numbers are inputs with role "random",
    and numbers that depend on the optimizer's hyperparameters have a formula, so that the
    program can run step after step:

        values = exported.values
        for rate in schedule:
            results = exported.run(values, lr=rate)
            values = exported.next(values, results)

    All other inputs have role "constant"; a warning lists them. Raises ValueError for the
    same code as `export`, and if `module` isn't on device lazy.
    """
    _check_call("export_step", step, args, dialect, dynamic_shapes)
    parameter = next(module.parameters(), None)
    if parameter is not None and parameter.device.type != "lazy":
        raise ValueError(
            f"export_step traces on device lazy, but the module is on "
            f"'{parameter.device}'; move it with .to('lazy') before its optimizer is "
            "made."
        )
    lazy_args = tree_map(to_lazy, tuple(args))
    variables = _variables(step, args, {}, dynamic_shapes)

    def trace(sizes: Sizes) -> Any:
        """Traces the program at the given sizes."""
        with (
            restoring(module, optimizer),
            tracing_step(
                step, resized((lazy_args, {}), sizes)[0], module, optimizer, True
            ) as other,
        ):
            return other.program()

    for _ in range(warmup):
        step(*lazy_args)
    mark_step()
    learn_numbers(variables, trace)
    with tracing_step(step, lazy_args, module, optimizer, bool(variables)) as traced:
        exported = _exported(dialect, traced)
    if variables:
        mark_step()  # runs the traced step
        exported.generalize(variables, trace)
    if baked := [row["name"] for row in exported.inputs if row["role"] == "constant"]:
        logger.warning(
            "torch_ltc.export_step: %d tensors are constants of the program, because "
            "they are neither arguments nor the module's nor the optimizer's: %s.",
            len(baked),
            ", ".join(baked[:8]),
        )
    return exported


# -- tracing -------------------------------------------------------------------


def _check_call(
    what: str, function: Any, args: Any, dialect: str, dynamic_shapes: Any
) -> None:
    _check_dialect(dialect)
    if dynamic_shapes is not None and DIALECTS[dialect] not in SYMBOLIC_STAGES:
        raise ValueError(
            f"torch_ltc.{what} writes programs with dynamic_shapes in dialect torch, but "
            f"not in {dialect}, whose programs are for one size each."
        )
    if not callable(function):
        raise TypeError(
            f"torch_ltc.{what} needs a function or a module, but got an object of "
            f"class {type(function).__name__}."
        )
    if not isinstance(args, (tuple, list)):
        raise TypeError(
            f"torch_ltc.{what} needs the arguments as a tuple, as in (x,), but got an "
            f"object of class {type(args).__name__}."
        )


def _exported(dialect: str, call: Traced) -> ExportedProgram:
    returned, written = call.tensors()
    traced = call.program()
    program = Program(traced, DIALECTS[dialect])
    named, numbers = call.named, call.numbers
    keys = {key: name for name, key in call.before.items() if key}
    drawn = dict(call.recording.drawn())
    inputs = _input_rows(traced, program, keys, named, drawn)
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
    for row, value in zip(scalars, evaluate(scalars, numbers.values, {}, {})):
        row["value"] = value
    values = [traced.input_tensor(i) for i in range(len(inputs))]
    return ExportedProgram(
        program, dialect, inputs, outputs, scalars, values, numbers.values
    )


def _variables(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    dynamic_shapes: Any,
) -> list[Variable]:
    if dynamic_shapes is None:
        return []
    return find_variables(function, args, kwargs, dynamic_shapes, tensor_names)


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
    """Describes the program's inputs. `keys`: names by `data_key`; `drawn`: distributions
    of random numbers by `data_key`."""
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
    """Describes the program's outputs. Tensors that share a value are one output, under the
    first tensor's name."""
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


def _check_dialect(dialect: str) -> None:
    if dialect not in DIALECTS:
        raise ValueError(
            f"Unknown dialect '{dialect}': it must be one of {', '.join(DIALECTS)}."
        )
