"""Values and gradients at ties, zeros and bounds: OpInfo's samples with their numbers
rounded to a few integers. There the gradient of a formula may differ from that of
eager's kernel: `clamp` has one at its bounds, `relu` has none; equal maxima share it or
have it each.
"""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils._pytree import tree_leaves, tree_map

SAMPLES = 8
EXCLUDED = {
    "pca_lowrank",  # equal singular values have no gradient
    "sparse_mm_reduce",  # operands have other layouts
    "sparse_sampled_addmm",
    "tensor_split",  # wants its indices on the CPU
    "to",  # names devices
}
OPS = [
    op
    for op in op_db
    if torch.float32 in op.supported_backward_dtypes("cpu")
    and op.formatted_name not in EXCLUDED
]


def _rounded(value: Any) -> Any:
    if not isinstance(value, torch.Tensor) or not value.is_floating_point():
        return value
    numbers = (value.detach() / 2).round().clamp(-2, 2)
    return numbers.requires_grad_(value.requires_grad)


def _tensors(value: Any) -> list[torch.Tensor]:
    return [leaf for leaf in tree_leaves(value) if isinstance(leaf, torch.Tensor)]


def _run(op: Any, sample: tuple, device: str) -> list[torch.Tensor | None] | None:
    def move(value: Any) -> Any:
        if isinstance(value, torch.device):
            return torch.device(device)
        if not isinstance(value, torch.Tensor):
            return value
        return value.detach().to(device).requires_grad_(value.requires_grad)

    operand, args, kwargs = tree_map(move, sample)
    torch.manual_seed(0)
    results = [r for r in _tensors(op(operand, *args, **kwargs)) if r.requires_grad]
    leaves = [t for t in _tensors((operand, args, kwargs)) if t.requires_grad]
    if not results or not leaves:
        return None
    total = 0
    for result in results:
        real = result.real if result.is_complex() else result
        weights = torch.arange(1.0, real.numel() + 1, device=device)
        total = (
            total + (real * (weights / max(real.numel(), 1)).reshape(real.shape)).sum()
        )
    gradients = torch.autograd.grad(total, leaves, allow_unused=True)
    return [None if t is None else t.detach().cpu() for t in (*gradients, *results)]


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.formatted_name)
@pytest.mark.filterwarnings("ignore")
def test_ties(op: Any) -> None:
    samples = op.sample_inputs("cpu", torch.float32, requires_grad=True)
    for sample in itertools.islice(samples, SAMPLES):
        values = tree_map(_rounded, (sample.input, sample.args, sample.kwargs))
        if any(t.layout != torch.strided for t in _tensors(values)):
            continue
        try:
            expected = _run(op, values, "cpu")
        except Exception:
            continue  # such as singular matrices
        result = _run(op, values, "lazy")
        if expected is None:
            assert result is None
            continue
        for ours, eagers in zip(result, expected, strict=True):
            assert (ours is None) == (eagers is None)
            if eagers is not None:
                torch.testing.assert_close(
                    ours, eagers, rtol=1e-3, atol=1e-4, equal_nan=True
                )
