"""The gradients of linear interpolations of 16-bit floats are as accurate as eager's."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

#: The operand's sizes and the scale. Each gradient is a sum whose number of terms grows
#: with the scale.
CASES = {
    "linear": ((1, 2, 11), 57),
    "bilinear": ((1, 2, 5, 7), 23),
    "trilinear": ((1, 1, 3, 4, 5), 7),
}


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("align", [True, False])
@pytest.mark.parametrize("mode", CASES)
def test_gradients(mode: str, align: bool, dtype: torch.dtype) -> None:
    sizes, scale = CASES[mode]
    torch.manual_seed(0)
    start = torch.randn(sizes).to(dtype)
    outer = torch.randn(1, sizes[1], *(n * scale for n in sizes[2:])).to(dtype)

    def gradient(device: str, dtype: torch.dtype) -> torch.Tensor:
        x = start.to(device, dtype).requires_grad_()
        y = F.interpolate(x, scale_factor=scale, mode=mode, align_corners=align)
        (grad,) = torch.autograd.grad(y, x, outer.to(device, dtype))
        return grad.cpu().double()

    exact = gradient("cpu", torch.float64)
    error, eager = (
        (gradient(device, dtype) - exact).abs().max() for device in ("lazy", "cpu")
    )
    assert error <= 1.1 * eager
