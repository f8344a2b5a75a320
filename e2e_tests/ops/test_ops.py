"""Each row of the op tests has eager CPU's values, dtypes, shapes and gradients."""

from __future__ import annotations

import importlib
from collections.abc import Callable

import pytest
import torch
import torch_ltc
from comparison import assert_close
from counting import counting, fallback_names, sync_names
from ops.program import TOLERANCE, Row

FAMILIES = [
    "complex",
    "constructor",
    "convolution",
    "data_movement",
    "elementwise",
    "embedding",
    "indexing",
    "linear",
    "loss",
    "normalization",
    "pooling",
    "random",
    "reduction",
]


def all_cases():
    cases = []
    for family in FAMILIES:
        for row in importlib.import_module(f"ops.{family}").ROWS:
            for dtype in row.dtypes:
                name = f"{family}-{row.name}-{str(dtype).removeprefix('torch.')}"
                cases.append(pytest.param(row, dtype, id=name))
    return cases


def different_weights(count: int) -> torch.Tensor:
    return torch.linspace(0.5, 1.5, count)


def is_exact(dtype: torch.dtype) -> bool:
    return not (dtype.is_floating_point or dtype.is_complex)


def run(
    row: Row,
    dtype: torch.dtype,
    device: str,
    make_weights: Callable[[int], torch.Tensor] = different_weights,
) -> list[torch.Tensor]:
    """Returns the results, then the gradients of a weighted sum of the results."""
    torch.manual_seed(11)
    inputs = [tensor.to(device) for tensor in row.tensors(dtype)]
    wanted = [t for t in inputs if row.grad and not is_exact(t.dtype)]
    for tensor in wanted:
        tensor.requires_grad_()
    answer = row.function(*inputs)
    results = list(answer) if isinstance(answer, (tuple, list)) else [answer]
    differentiable = [r for r in results if r.requires_grad]
    if wanted and differentiable:
        weights = [
            make_weights(r.numel()).reshape(r.shape).to(r.dtype).to(device)
            for r in differentiable
        ]
        gradients = torch.autograd.grad(
            differentiable, wanted, weights, allow_unused=True
        )
        results += [g for g in gradients if g is not None]
    return [result.detach() for result in results]


@pytest.mark.parametrize(("row", "dtype"), all_cases())
def test_op(row: Row, dtype: torch.dtype) -> None:
    compare(row, dtype)


@pytest.mark.parametrize(("row", "dtype"), all_cases())
def test_op_by_op(row: Row, dtype: torch.dtype) -> None:
    """Each row has eager's results in the interpreter, which runs programs until they are
    compiled."""
    with torch_ltc.config(tier="interpret"):
        compare(row, dtype)


def compare(row: Row, dtype: torch.dtype) -> None:
    expected = run(row, dtype, "cpu")
    torch_ltc.reset_metrics()
    with counting() as counts:
        lazy = run(row, dtype, "lazy")
        torch_ltc.mark_step(wait=True)
    if row.reason:
        # A reason that no longer applies must be removed from the row.
        assert counts.fallback_calls + counts.implicit_syncs > 0, row.reason
    else:
        assert counts.fallback_calls == 0, fallback_names()
        assert counts.implicit_syncs == 0, sync_names()
    check_results(row, lazy, expected)


def check_results(
    row: Row, lazy: list[torch.Tensor], expected: list[torch.Tensor]
) -> None:
    assert len(lazy) == len(expected)
    for number, (result, wanted) in enumerate(zip(lazy, expected)):
        assert result.device.type == "lazy", f"result {number}"
        tolerance = row.tolerance or TOLERANCE.get(wanted.dtype, 0)
        if wanted.dtype == torch.bfloat16:
            tolerance = max(tolerance, TOLERANCE[torch.bfloat16])
        if is_exact(wanted.dtype):
            tolerance = 0
        assert_close(result, wanted, tolerance, tolerance, f"result {number}", True)
