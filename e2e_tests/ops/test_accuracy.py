"""Functions where a plain formula loses the digits of small or large operands."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

FUNCTIONS = {
    "log1p": torch.log1p,
    "expm1": torch.expm1,
    "elu": F.elu,
    "celu": F.celu,
    "selu": F.selu,
    "softplus": F.softplus,
    "logsigmoid": F.logsigmoid,
    "mish": F.mish,
    "silu": F.silu,
    "sinh": torch.sinh,
    "tanh": torch.tanh,
    "asinh": torch.asinh,
    "atanh": torch.atanh,
    "erf": torch.erf,
    "lgamma": torch.lgamma,
    "digamma": torch.digamma,
    "logit_backward": lambda x: torch.ops.aten.logit_backward(x.cos(), x),
    "logaddexp": lambda x: torch.logaddexp(x, torch.zeros_like(x)),
    "xlog1py": lambda x: torch.special.xlog1py(x, x.flip(0)),
}

RELATIVE = {torch.float32: 2e-5, torch.float64: 5e-13}


def operands(dtype: torch.dtype) -> torch.Tensor:
    digits = 300 if dtype == torch.float64 else 37
    magnitudes = torch.logspace(-digits, 2, 4 * digits + 9, dtype=torch.float64)
    near = torch.linspace(-30.3, 30.7, 400, dtype=torch.float64)
    ends = torch.tensor([0.0, 1.0, torch.inf, torch.nan], dtype=torch.float64)
    return torch.cat([magnitudes, -magnitudes, near, ends, -ends]).to(dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_relative_error(name: str, dtype: torch.dtype) -> None:
    x = operands(dtype)
    expected = FUNCTIONS[name](x)
    result = FUNCTIONS[name](x.to("lazy")).cpu()
    # Where the smallest results are rounded or flushed to zero isn't defined.
    smallest = torch.finfo(dtype).tiny * 1e3
    torch.testing.assert_close(
        result, expected, rtol=RELATIVE[dtype], atol=smallest, equal_nan=True
    )
