"""Values and gradients at ties, zeros and bounds: OpInfo's samples with their numbers
rounded to a few integers. There the gradient of a formula may differ from that of
eager's kernel: `clamp` has one at its bounds, `relu` has none; equal maxima share it or
have it each.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from sweeps import opinfo
from torch.testing._internal.common_methods_invocations import OpInfo, SampleInput

SAMPLES = 12
EXCLUDED = {
    "pca_lowrank",  # equal singular values have no gradient
    "sparse.mm.reduce",  # operands have other layouts
    "sparse.sampled_addmm",
}
OPS = [
    op
    for op in opinfo.entries(torch.float32)
    if torch.float32 in op.supported_backward_dtypes("cpu")
    and opinfo.entry_name(op) not in EXCLUDED
]


def _rounded(value: Any) -> Any:
    if not isinstance(value, torch.Tensor) or not value.is_floating_point():
        return value
    numbers = (value / 2).round().clamp(-2, 2)
    # `SampleInput.transform` (torch 2.13) loses the flag.
    return numbers.requires_grad_(value.requires_grad)


def _run(op: OpInfo, sample: SampleInput, device: str) -> list[torch.Tensor]:
    results = opinfo.run_function(op, sample, device)
    return [*results, *opinfo.run_gradient(op, sample, device)]


@pytest.mark.parametrize("op", OPS, ids=opinfo.entry_name)
@pytest.mark.filterwarnings("ignore")
def test_ties(op: OpInfo) -> None:
    for sample in opinfo.samples_of(op, torch.float32, True, SAMPLES):
        operands = opinfo.tensors((sample.input, sample.args, sample.kwargs))
        if any(operand.layout != torch.strided for operand in operands):
            continue
        sample = sample.transform(_rounded)
        try:
            expected = _run(op, sample, "cpu")
        except Exception:
            continue  # such as singular matrices
        for ours, eagers in zip(_run(op, sample, "lazy"), expected, strict=True):
            torch.testing.assert_close(
                ours.cpu(), eagers, rtol=1e-3, atol=1e-4, equal_nan=True
            )
