"""Tensors that the device doesn't have are refused with a sentence."""

from __future__ import annotations

import pytest
import torch
from subprocesses import run_python
from torch import nn

SENTENCES = {
    "nested": lambda x: torch.nested.nested_tensor([x[0], x[1]]),
    "nested on the device": lambda x: torch.nested.nested_tensor(
        [torch.ones(2), torch.ones(3)], device="lazy"
    ),
    "jagged": lambda x: torch.nested.nested_tensor(
        [torch.ones(2), torch.ones(3)], device="lazy", layout=torch.jagged
    ),
    "as jagged": lambda x: torch.nested.as_nested_tensor(x, layout=torch.jagged),
    "nested, moved": lambda x: _nested(torch.strided).to("lazy"),
    "jagged, moved": lambda x: _nested(torch.jagged).to("lazy"),
    "values and offsets": lambda x: torch.nested.nested_tensor_from_jagged(
        x, torch.tensor([0, 1, 4]).to("lazy")
    ),
    "narrowed": lambda x: torch.nested.narrow(
        x, 1, torch.tensor([0, 1, 0, 1]), torch.tensor([2, 1, 2, 1]), torch.jagged
    ),
}


def _nested(layout: torch.layout) -> torch.Tensor:
    return torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=layout)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("make", SENTENCES.values(), ids=SENTENCES.keys())
def test_one_sentence(make) -> None:
    x = torch.randn(4, 4, device="lazy")
    with pytest.raises((NotImplementedError, RuntimeError), match="lazy") as error:
        make(x)
    assert len(str(error.value)) < 400, str(error.value)
    assert (x + 1).sum().isfinite().item()  # nothing is lost


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


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("layout", [torch.strided, torch.jagged])
def test_nested_tensors_of_the_cpu_stay(layout: torch.layout) -> None:
    parts = [part.tolist() for part in (_nested(layout) * 2).unbind()]
    assert parts == [[2.0, 2.0], [2.0, 2.0, 2.0]]


def test_the_sentence_names_the_line() -> None:
    with pytest.raises(NotImplementedError, match=r"pad_seq.*refused_layouts\.py:\d+"):
        torch.nested.nested_tensor([torch.ones(2)], device="lazy")


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
    torch.testing.assert_close(gradients["lazy"], gradients["cpu"])


def test_complex_numbers_from_python() -> None:
    x = torch.randn(3)
    c = torch.fft.fft(x)
    for value in (x, c):
        lazy = value.to("lazy")
        torch.testing.assert_close((lazy * 2j).cpu(), value * 2j)
        torch.testing.assert_close((1j + lazy).cpu(), 1j + value)
