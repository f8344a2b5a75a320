"""Compares lowerings to TOSA and StableHLO with eager torch, on the cases of the lowerings
to linalg: what a dialect can express has eager's values, and everything else is rejected
with the op and the reason."""

from __future__ import annotations

import re
import subprocess

import jax_peer
import pytest
import torch
import torch_ltc
from comparison import assert_close
from lowering.linalg.case_functions import Case, Function, make_function
from lowering.linalg.inputs import random
from lowering.linalg.native import LTC_OPT
from lowering.linalg.test_convolution import GEOMETRIES
from lowering.linalg.test_values import FAMILIES, compare

ERRORS = (
    r"(aten\.\w+(\.\w+)?('s result)?|input \d+) (has no lowering to (TOSA|StableHLO): "
    r".+|has the dtype '\w+', which the conversion to .+|has no elements, and .+)|"
    r".*rule BC4.*"
)
# Ops whose quotients a dialect rounds differently than C: a quotient close to an integer
# may be rounded to the other side.
ROUNDED = ("div.Tensor_mode", "div.Scalar_mode", "floor_divide", "remainder", "fmod")
# The minimum share of each family's cases that a dialect supports. The other cases have
# unsupported dtypes or no elements, or are scatters that reduce.
TAKEN = {
    "tosa": {
        "elementwise": 0.6,
        "reduction": 0.6,
        "movement": 0.6,
        "indexing": 0.45,
        "window": 0.7,
    },
    "stablehlo": {
        "elementwise": 0.7,
        "reduction": 0.7,
        "movement": 0.65,
        "indexing": 0.45,
        "window": 0.8,
    },
}
# Without --full, every third case is tested.
EVERY = 3


def converted(functions: list[Function], dialect: str) -> tuple[dict[int, str], str]:
    """Returns the texts of the cases that the dialect can express, and the errors of the
    rest."""
    modules = [f"module @case_{i} {{\n{f.text}\n}}" for i, f in enumerate(functions)]
    done = subprocess.run(
        [str(LTC_OPT), f"--ltc-torch-to-{dialect}", "--split-input-file"],
        input="\n// -----\n".join(modules),
        capture_output=True,
        text=True,
    )
    texts = {}
    for chunk in done.stdout.split("// -----"):
        if found := re.search(r"module @case_(\d+)", chunk):
            texts[int(found[1])] = chunk
    return texts, done.stderr


def arguments(function: Function) -> list[torch.Tensor]:
    """Returns the arguments in the order of the function's parameters, with numbers as
    tensors."""
    tensors, scalars = iter(function.tensors), iter(function.scalars)
    signature = function.text.split("(", 1)[1].split(") -> ")[0].split("%arg")[1:]
    return [
        next(tensors)
        if "vtensor" in part
        else torch.tensor(
            next(scalars),
            dtype=torch.float64 if "torch.float" in part else torch.int64,
        )
        for part in signature
    ]


def run_tosa(text: str, values: list[torch.Tensor]) -> list[torch.Tensor]:
    module = torch_ltc.compile_mlir(text)
    return module(*(v.to(spec.dtype) for v, spec in zip(values, module.inputs)))


def run(
    dialect: str, programs: list[tuple[str, list[torch.Tensor]]]
) -> list[list[torch.Tensor]]:
    if dialect == "tosa":
        return [run_tosa(*program) for program in programs]
    return jax_peer.run(programs)


@pytest.mark.parametrize("dialect", TAKEN)
@pytest.mark.parametrize("family", FAMILIES)
def test_values(family: str, dialect: str, request: pytest.FixtureRequest) -> None:
    step = 1 if request.config.getoption("--full") else EVERY
    cases: list[Case] = FAMILIES[family][::step]
    functions = [make_function(case, f"case_{i}") for i, case in enumerate(cases)]
    texts, errors = converted(functions, dialect)
    for line in errors.splitlines():
        if ": error: " in line:
            message = line.split(": error: ", 1)[1]
            assert re.fullmatch(ERRORS, message), message
    assert len(texts) >= TAKEN[dialect][family] * len(cases), errors
    texts = {i: t for i, t in texts.items() if not cases[i].op.startswith(ROUNDED)}
    programs = [(text, arguments(functions[i])) for i, text in texts.items()]
    assert "Stack dump" not in errors
    results = run(dialect, programs)
    failures = []
    for i, outputs in zip(texts, results, strict=True):
        for number, pair in enumerate(zip(outputs, functions[i].expected, strict=True)):
            try:
                compare(loosened(cases[i]), number, *pair)
            except AssertionError as error:
                failures.append(str(error))
    assert not failures, f"{len(failures)} results differ\n" + "\n".join(failures)


def loosened(case: Case) -> Case:
    """Returns the case with a tolerance of at least 2e-6, because dialects compute
    quotients with reciprocals and roots with powers."""
    tolerance = max(case.tolerance or 0.0, 2e-6)
    return Case(case.op, case.args, case.kwargs, tolerance)


def gradients(name: str) -> Function:
    """Returns a function that computes the gradients of a convolution's input, weight and
    bias."""
    sizes, weight_sizes, *window = GEOMETRIES[name]
    x, weight = random(*sizes), random(*weight_sizes)
    y = torch.ops.aten.convolution(x, weight, None, *window)
    arguments = (random(*y.shape), x, weight, [y.shape[1]], *window, [True] * 3)
    return make_function(Case("convolution_backward", arguments), "program")


@pytest.mark.parametrize("dialect", TAKEN)
def test_gradients_of_convolutions(dialect: str) -> None:
    names = [name for name in GEOMETRIES if (dialect, name) != ("tosa", "3d")]
    functions = [gradients(name) for name in names]
    texts, errors = converted(functions, dialect)
    assert len(texts) == len(functions), errors
    programs = [(text, arguments(functions[i])) for i, text in texts.items()]
    for function, outputs in zip(functions, run(dialect, programs), strict=True):
        for pair in zip(outputs, function.expected, strict=True):
            assert_close(*pair, rtol=1e-4, atol=1e-4)
