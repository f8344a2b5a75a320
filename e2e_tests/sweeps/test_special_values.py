"""Values and gradients are eager's at infinities, NaN, zeros of both signs and denormals,
which replace the numbers of OpInfo's samples. For these values, a formula that equals
eager's kernel for all other numbers may differ: zero times infinity is NaN.
"""

from __future__ import annotations

import math

import pytest
import torch
from sweeps import opinfo, replaced_numbers
from torch.testing._internal.common_methods_invocations import OpInfo

NUMBERS = (math.inf, -math.inf, math.nan, 0.0, -0.0, 1e-40, 1e38, 1.5, -2.5)

#: Ops for which eager's kernels compute the elements that fill whole vectors differently
#: from the remaining ones. `ops/test_special_values.py` tests the former.
REMAINDERS = (
    "__rmod__",
    "fmod",
    "logit",
    "nn.functional.celu",
    "nn.functional.elu",
    "nn.functional.hardshrink",
    "nn.functional.hardswish",
    "nn.functional.hardtanh",
    "nn.functional.relu6",
    "nn.functional.selu",
    "nn.functional.softshrink",
    "remainder",
)

#: Ops whose result depends on the order of eager's operations, for example on whether a
#: sum of infinite products contains the padding.
ORDERS = (
    "native_layer_norm",
    "nn.functional.conv1d",
    "nn.functional.conv2d",
    "nn.functional.conv3d",
    "nn.functional.conv_transpose2d",
    "nn.functional.conv_transpose3d",
    "nn.functional.scaled_dot_product_attention",
    "std_mean",
    "trapezoid",
    "trapz",
    "var_mean",
)

EXCLUDED = {
    *REMAINDERS,
    *ORDERS,
    "grid_sampler_2d",  # at NaN, eager reads outside of the image (torch 2.13)
    "grid_sampler_3d",
    "nn.functional.grid_sample",
    "sparse.mm.reduce",  # has sparse operands
    "sparse.sampled_addmm",
}


def _special(numbers: torch.Tensor) -> torch.Tensor:
    positions = torch.arange(numbers.numel()) % len(NUMBERS)
    return torch.tensor(NUMBERS)[positions].reshape(numbers.shape)


@pytest.mark.parametrize(
    "op", replaced_numbers.differentiable_ops(EXCLUDED), ids=opinfo.entry_name
)
@pytest.mark.filterwarnings("ignore")
def test_special_values(op: OpInfo) -> None:
    replaced_numbers.compare(op, _special, samples=4)
