"""`torch.library.custom_op`: a kernel in Python for all devices is traced."""

from __future__ import annotations

import pytest
import torch
import torch_ltc
from semantics.comparison import compare


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


def _define_writing(name: str, device_types: str | None) -> torch.library.CustomOpDef:
    @torch.library.custom_op(
        f"torch_ltc_tests::{name}", mutates_args={"x"}, device_types=device_types
    )
    def op(x: torch.Tensor, by: float) -> torch.Tensor:
        x.add_(by)
        x[..., 0] = 7
        return x * 2

    return op


@pytest.mark.parametrize("device_types", [None, "cpu"])
def test_writes_to_an_argument(device_types: str | None) -> None:
    op = _define_writing(f"writing_on_{device_types}", device_types)

    def program(x: torch.Tensor) -> list:
        version = x._version
        return [x, op(x[1:].t(), 5.0), op(x, by=0.5), x._version > version]

    torch_ltc.reset_metrics()
    compare(program, torch.arange(6.0).reshape(3, 2))
    assert torch_ltc.metrics()["fallback_calls"] == 0


def test_a_written_argument_gives_no_gradient_of_the_result() -> None:
    op = _define_writing("writing_gradient", None)

    def program(x: torch.Tensor) -> list:
        y = x.detach().requires_grad_() * 1
        (op(y, 1.0) + y).sum().backward()
        return []

    compare(program, torch.ones(2))
    y = torch.ones(2, device="lazy").requires_grad_() * 1
    with pytest.raises(RuntimeError, match="no autograd formula"):
        op(y, 1.0).sum().backward()


def test_without_a_kernel_it_is_refused() -> None:
    op = _define_writing("writing_elsewhere", "cuda")
    with pytest.raises(NotImplementedError, match="register_kernel"):
        op(torch.zeros(2, device="lazy"), 1.0)


def test_torch_compile_on_the_cpu_keeps_the_op() -> None:
    """A kernel of ours at a key of all devices would be traced into its graphs."""

    @torch.library.custom_op("torch_ltc_tests::add_read", mutates_args={"x"})
    def add_read(x: torch.Tensor) -> None:
        x.add_(torch.from_numpy(x.numpy().copy()))

    def program(x: torch.Tensor) -> torch.Tensor:
        y = x * 2
        add_read(y)
        return y

    compiled = torch.compile(program, backend="aot_eager")
    torch.testing.assert_close(compiled(torch.ones(3)), torch.full((3,), 4.0))
