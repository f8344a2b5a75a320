"""`torch.library.custom_op`: a kernel in Python for all devices is traced."""

from __future__ import annotations

import torch
import torch_ltc


def _define(name: str) -> torch.library.CustomOpDef:
    """Writes in place and through views, which is what needs functionalisation."""

    @torch.library.custom_op(f"torch_ltc_tests::{name}", mutates_args=())
    def op(x: torch.Tensor) -> torch.Tensor:
        y = x.clone()
        y[1:] += 1
        y.view(-1)[0] = 7
        z = torch.zeros_like(y)
        z[0].copy_(y[1])
        return y + z

    op.register_fake(torch.empty_like)
    op.register_autograd(lambda _, gradient: gradient * 2)
    return op


def test_a_kernel_for_all_devices_is_traced() -> None:
    op = _define("in_place")
    x = torch.arange(6.0).reshape(3, 2)
    lazy = x.to("lazy").requires_grad_()
    torch_ltc.reset_metrics()
    result = op(lazy)
    (result * 1.5).sum().backward()
    assert torch_ltc.metrics()["fallback_calls"] == 0
    assert torch_ltc.metrics()["implicit_syncs"] == 0
    torch.testing.assert_close(result.detach().cpu(), op(x))
    torch.testing.assert_close(lazy.grad.cpu(), torch.full((3, 2), 3.0))


def test_the_users_kernel_for_lazy_comes_first() -> None:
    op = _define("own_kernel")
    op.register_kernel("lazy")(lambda x: x + 100)
    result = op(torch.zeros(2, 2, device="lazy"))
    assert result.tolist() == [[100, 100], [100, 100]]
