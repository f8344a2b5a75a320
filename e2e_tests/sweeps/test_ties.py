"""Values and gradients are eager's at ties, zeros and bounds: the numbers of OpInfo's
samples are rounded to a few integers. For these values, a formula's gradient may differ
from that of eager's kernel: `clamp` has a gradient at its bounds, `relu` has none at zero,
and equal maxima share the gradient or all get it.
"""

from __future__ import annotations

import pytest
import torch
from sweeps import opinfo, replaced_numbers
from torch.testing._internal.common_methods_invocations import OpInfo

EXCLUDED = {
    "pca_lowrank",  # equal singular values have no gradient
    "sparse.mm.reduce",  # has sparse operands
    "sparse.sampled_addmm",
}


def _rounded(numbers: torch.Tensor) -> torch.Tensor:
    return (numbers / 2).round().clamp(-2, 2)


@pytest.mark.parametrize(
    "op", replaced_numbers.differentiable_ops(EXCLUDED), ids=opinfo.entry_name
)
@pytest.mark.filterwarnings("ignore")
def test_ties(op: OpInfo) -> None:
    replaced_numbers.compare(op, _rounded, samples=12)
