"""In op-by-op runs, the graph's view copies (such as slice_copy) run as views. Kernels that
assume contiguous operands must get contiguous ones, in forward and backward."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch_ltc
from comparison import assert_close
from torch.nn import functional

OPS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "group_norm": lambda x: functional.group_norm(x, 2),
    "weighted group_norm": lambda x: functional.group_norm(
        x, 2, x[0, :, 0, 0], x[1, :, 1, 0]
    ),
    "layer_norm": lambda x: functional.layer_norm(x, x.shape[1:]),
    "batch_norm": lambda x: functional.batch_norm(x, None, None, training=True),
    "instance_norm": lambda x: functional.instance_norm(x),
    "softmax": lambda x: x.softmax(1),
    "log_softmax": lambda x: x.log_softmax(2),
    "convolution": lambda x: functional.conv2d(x, x[:, :, :2, :2]),
    "max_pool": lambda x: functional.max_pool2d(x, 2),
    "avg_pool": lambda x: functional.avg_pool2d(x, 2),
    "adaptive_pool": lambda x: functional.adaptive_avg_pool2d(x, 2),
    "interpolate": lambda x: functional.interpolate(x, scale_factor=2, mode="bilinear"),
    "pad": lambda x: functional.pad(x, (1, 1, 1, 1), mode="reflect"),
    "cross_entropy": lambda x: functional.cross_entropy(
        x, torch.arange(32).view(2, 4, 4).to(x.device) % 4
    ),
    "attention": lambda x: functional.scaled_dot_product_attention(x, x * 2, x + 1),
    "glu": lambda x: functional.glu(x, 1),
    "cumsum": lambda x: x.cumsum(1),
    "sort": lambda x: x.sort(1).values,
    "matmul": lambda x: x @ x.flip(1),
    "unfold": lambda x: functional.unfold(x, 2),
    "norm": lambda x: x.norm(dim=1),
    "matrix_exp": lambda x: torch.matrix_exp(x.contiguous()),
}
LAYOUTS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "transposed": lambda x: x.transpose(0, 1).transpose(2, 3).transpose(0, 1),
    "channels last": lambda x: x.reshape(2, 16, 4).transpose(1, 2).reshape(2, 4, 4, 4),
    "sliced": lambda x: torch.cat([x, x], -1)[..., ::2],
    "flipped back": lambda x: x.permute(3, 2, 1, 0).permute(3, 2, 1, 0).mT,
    "expanded": lambda x: x[:, :1].expand(2, 4, 4, 4),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", OPS)
def test_views_into_kernels(name: str, layout: str) -> None:
    def compute(device: str) -> tuple[torch.Tensor, torch.Tensor]:
        torch.manual_seed(0)
        x = torch.randn(2, 4, 4, 4).to(device).requires_grad_()
        y = OPS[name](LAYOUTS[layout](x))
        weights = torch.rand(y.mT.shape if y.dim() > 1 else y.shape).to(device)
        (y * (weights.mT if y.dim() > 1 else weights)).sum().backward()
        return y.detach().cpu().contiguous(), x.grad.cpu().contiguous()

    with torch_ltc.config(tier="interpret"):
        lazy = compute("lazy")
    assert_close(lazy, compute("cpu"), rtol=1e-4, atol=1e-4)


def test_searches_of_views_give_no_advice_about_their_memory(
    recwarn: pytest.WarningsRecorder,
) -> None:
    x = torch.arange(24.0).reshape(2, 4, 3).to("lazy")
    bounds = x.transpose(1, 2).contiguous()
    with torch_ltc.config(tier="interpret"):
        found = torch.searchsorted(bounds, bounds[..., ::2].contiguous())
        found = found + torch.bucketize(bounds[..., ::2].contiguous(), bounds[0, 0])
        assert found.cpu().max() == 6
    assert not recwarn.list
