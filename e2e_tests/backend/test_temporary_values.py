"""Large values of op-by-op runs are in the pool of buffers, whatever a CPU kernel does
with the memory that it allocates."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator

import pytest
import torch
import torch_ltc
from comparison import assert_close
from torch import Tensor, nn


@pytest.fixture(autouse=True)
def op_by_op() -> Iterator[None]:
    with torch_ltc.config(tier="interpret"):
        yield


CASES: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    # oneDNN allocates scratch memory and reordered operands without a tensor.
    "convolution": (lambda: nn.Conv2d(64, 64, 3), (8, 64, 40, 40)),
    "first layer": (lambda: nn.Conv2d(3, 64, 7, stride=2), (4, 3, 112, 112)),
    "dilation": (lambda: nn.Conv2d(32, 64, 3, dilation=2), (8, 32, 40, 40)),
    "groups": (lambda: nn.Conv2d(64, 64, 3, groups=64), (8, 64, 40, 40)),
    "transposed": (lambda: nn.ConvTranspose2d(64, 32, 4, stride=2), (8, 64, 20, 20)),
    "volumes": (lambda: nn.Conv3d(8, 16, 3), (4, 8, 16, 32, 32)),
    "sequences": (lambda: nn.Conv1d(64, 64, 9), (8, 64, 2000)),
    "layer": (lambda: nn.Linear(1024, 1024), (512, 1024)),
    "LSTM": (lambda: nn.LSTM(128, 256), (64, 32, 128)),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("name", CASES)
def test_kernels_may_allocate_memory_without_tensors(
    name: str, dtype: torch.dtype
) -> None:
    make, shape = CASES[name]
    eager = make().to(dtype)
    lazy = copy.deepcopy(eager).to("lazy")
    x = torch.rand(shape).to(dtype)

    def gradients(model: nn.Module, x: Tensor) -> list[Tensor]:
        model.zero_grad()
        x = x.clone().requires_grad_()
        y = model(x)
        (y[0] if isinstance(y, tuple) else y).square().mean().backward()
        return [t.grad.cpu() for t in (x, *model.parameters())]

    expected = gradients(eager, x)
    for _ in range(3):  # later runs take memory from the pool
        # The recurrence of the LSTM rounds in another order.
        assert_close(
            gradients(lazy, x.to("lazy")),
            expected,
            rtol=1e-5 if dtype == torch.float32 else 0.05,
            atol=1e-5 if dtype == torch.float32 else 1e-4,
        )


def test_results_that_ops_resize() -> None:
    x = torch.rand(1 << 20)
    for _ in range(2):
        y = x.to("lazy")
        assert_close((y.masked_select(y > 0.5) * 2).cpu(), x[x > 0.5] * 2)
        assert_close(y.sort()[0].unique(), x.unique())
