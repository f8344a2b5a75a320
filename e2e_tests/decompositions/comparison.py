"""Compares an op's decomposition, which torch runs, with the op itself: no value is on
device lazy."""

from __future__ import annotations

import op_table
import torch
from comparison import assert_close
from decompositions.torch_stage import (
    Evaluator,
    call,
    decompose,
    flat,
    plain,
    write_program,
)

TOLERANCES = {
    torch.float64: (1e-10, 1e-12),
    torch.float32: (1e-5, 1e-6),
    torch.float16: (1e-3, 1e-6),
    torch.bfloat16: (8e-3, 1e-6),
}


def rows_to_decompose() -> set[str]:
    """Returns the names of the ops that the op table declares as decomposed."""
    return {row.emit for row in op_table.rows() if row.lower == "decompose"}


DECOMPOSED = rows_to_decompose()


HALF = (torch.float16, torch.bfloat16)


def in_float32(value):
    if isinstance(value, torch.Tensor) and value.dtype in HALF:
        return value.float()
    if isinstance(value, torch.dtype) and value in HALF:
        return torch.float32
    if isinstance(value, (list, tuple)):
        return [in_float32(element) for element in value]
    return value


def reference(name: str, arguments: list) -> list[torch.Tensor | None]:
    """Returns eager's results. Those of 16-bit floats are computed in float32 and rounded
    once, because some of eager's kernels lose more precision (_log_softmax in torch 2.13).
    """
    results = flat(call(name, plain(arguments)))
    if not any(r is not None and r.dtype in HALF for r in results):
        return results
    exact = flat(call(name, in_float32(plain(arguments))))
    return [
        None if result is None else e.to(result.dtype)
        for e, result in zip(exact, results, strict=True)
    ]


def compare(name: str, *arguments, expected=None, rtol=None, atol=None) -> list[str]:
    """Asserts that the decomposition of op `name` has eager's results. Returns the names of
    the decomposition's ops. `expected`: the results, if eager has no kernel for the op."""
    if expected is None:
        expected = reference(name, list(arguments))
    text, inputs = write_program(name, list(arguments), expected)
    decomposed = decompose(text)
    evaluator = Evaluator(decomposed)
    actual = evaluator.run(inputs)
    left = DECOMPOSED.intersection(evaluator.ops)
    assert not left, f"{left} in\n{decomposed}"
    asked = [result for result in expected if result is not None]
    for number, (mine, eager) in enumerate(zip(actual, asked, strict=True)):
        default = TOLERANCES.get(eager.dtype, (0, 0))
        assert_close(
            mine,
            eager,
            default[0] if rtol is None else rtol,
            default[1] if atol is None else atol,
            f"result #{number} of {name}\n{decomposed}",
            equal_nan=True,
        )
    return evaluator.ops
