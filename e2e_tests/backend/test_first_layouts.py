"""The first lazy tensor of a process may be sparse. The gradient of EmbeddingBag in mode
"max" and the results of ops with Python complex numbers equal eager's."""

from __future__ import annotations

import pytest
import torch
from comparison import assert_close
from subprocesses import run_python
from torch import nn

SPARSE_FIRST = """
import torch, warnings
import torch_ltc
warnings.simplefilter("ignore")
eye = torch.eye(3)
{make}
print(made.layout, made.device, made.to_dense().cpu().tolist())
"""

MAKERS = [
    "made = torch.sparse_coo_tensor([[0], [1]], [1.0], (2, 2), device='lazy')",
    "made = eye.to_sparse().to('lazy')",
    "made = eye.to_sparse_csr().to('lazy')",
    "made = torch.zeros(3, 3, device='lazy', layout=torch.sparse_coo)",
    "made = torch.zeros(3, 3, device='lazy', layout=torch.sparse_csr)",
    "made = torch.sparse_csr_tensor([0, 1, 2], [0, 1], [1.0, 2.0], device='lazy')",
]


@pytest.mark.parametrize("make", MAKERS)
def test_the_first_lazy_tensor_is_sparse(make: str) -> None:
    run_python(SPARSE_FIRST.format(make=make))


def test_the_maximum_of_bags_has_a_gradient() -> None:
    gradients = {}
    for device in ("cpu", "lazy"):
        torch.manual_seed(0)
        bag = nn.EmbeddingBag(10, 4, mode="max").to(device)
        bag(torch.tensor([[1, 2, 2], [5, 0, 1]]).to(device)).square().sum().backward()
        gradients[device] = bag.weight.grad.cpu()
    assert_close(gradients["lazy"], gradients["cpu"])


def test_complex_numbers_from_python() -> None:
    x = torch.randn(3)
    c = torch.fft.fft(x)
    for value in (x, c):
        lazy = value.to("lazy")
        assert_close((lazy * 2j).cpu(), value * 2j)
        assert_close((1j + lazy).cpu(), 1j + value)
