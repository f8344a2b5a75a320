"""Replaces the numbers in OpInfo's samples, and compares values and gradients on device
`lazy` with eager. OpInfo's own numbers are random, so they contain no ties or infinities.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

import torch
from comparison import assert_close
from sweeps import opinfo
from torch.testing._internal.common_methods_invocations import OpInfo, SampleInput


def differentiable_ops(excluded: Collection[str]) -> list[OpInfo]:
    return [
        op
        for op in opinfo.entries(torch.float32)
        if torch.float32 in op.supported_backward_dtypes("cpu")
        and opinfo.entry_name(op) not in excluded
    ]


def _run(op: OpInfo, sample: SampleInput, device: str) -> list[torch.Tensor]:
    results = opinfo.run_function(op, sample, device)
    return [*results, *opinfo.run_gradient(op, sample, device)]


def compare(
    op: OpInfo, replace: Callable[[torch.Tensor], torch.Tensor], samples: int
) -> None:
    """Compares the first `samples` samples of an op after replacing their numbers;
    `replace` returns new numbers for a tensor."""

    def with_other_numbers(value: object) -> object:
        if not isinstance(value, torch.Tensor) or not value.is_floating_point():
            return value
        # `SampleInput.transform` (torch 2.13) loses `requires_grad`.
        return replace(value.detach()).requires_grad_(value.requires_grad)

    pairs = []  # read last, so that one program computes all samples
    for sample in opinfo.samples_of(op, torch.float32, True, samples):
        operands = opinfo.tensors((sample.input, sample.args, sample.kwargs))
        if any(operand.layout != torch.strided for operand in operands):
            continue
        sample = sample.transform(with_other_numbers)
        try:
            expected = _run(op, sample, "cpu")
        except Exception:
            continue  # eager rejects the numbers, for example a singular matrix
        pairs.append((_run(op, sample, "lazy"), expected))
    for ours, eagers in pairs:
        assert_close(ours, eagers, 1e-3, 1e-4, equal_nan=True)
