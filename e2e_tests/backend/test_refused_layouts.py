"""Tensors that the device doesn't have are refused with a sentence."""

from __future__ import annotations

import pytest
import torch
from subprocesses import run_python
from torch import nn

SENTENCES = {
    "to_sparse": lambda x: x.to_sparse(),
    "to_sparse_csr": lambda x: x.to_sparse_csr(),
    "sparse_coo_tensor": lambda x: torch.sparse_coo_tensor(
        [[0, 1], [1, 2]], [1.0, 2.0], (4, 4), device="lazy"
    ),
    "sparse times lazy": lambda x: torch.sparse.mm(torch.eye(4).to_sparse(), x),
    "quantize_per_tensor": lambda x: torch.quantize_per_tensor(x, 0.1, 0, torch.qint8),
    "nested": lambda x: torch.nested.nested_tensor([x[0], x[1]]),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("make", SENTENCES.values(), ids=SENTENCES.keys())
def test_one_sentence(make) -> None:
    x = torch.randn(4, 4, device="lazy")
    with pytest.raises((NotImplementedError, RuntimeError), match="lazy") as error:
        make(x)
    assert len(str(error.value)) < 400, str(error.value)
    assert (x + 1).sum().isfinite().item()  # nothing is lost


EARLY = """
import torch, warnings
import torch_ltc
warnings.simplefilter("ignore")
for make in (
    lambda: torch.sparse_coo_tensor([[0], [1]], [1.0], (2, 2), device="lazy"),
    lambda: torch.eye(3).to_sparse().to("lazy"),
    lambda: torch.empty(3, device="lazy", layout=torch.sparse_coo),
    lambda: torch.empty(3, device="lazy", dtype=torch.qint8),
):
    try:
        make()
    except NotImplementedError as error:
        assert str(error).startswith("Device 'lazy' has no "), error
    else:
        raise AssertionError("not refused")
"""


def test_before_there_is_a_lazy_tensor() -> None:
    run_python(EARLY)


@pytest.mark.parametrize("layer", [nn.Embedding, nn.EmbeddingBag])
def test_gradients_of_sparse_embeddings_are_dense(layer) -> None:
    indices = torch.tensor([[1, 2, 2], [5, 0, 1]])
    kept = {}
    for device in ("cpu", "lazy"):
        torch.manual_seed(0)
        embedding = layer(10, 4, sparse=True).to(device)
        optimizer = torch.optim.SGD(embedding.parameters(), 0.1)
        embedding(indices.to(device)).square().sum().backward()
        optimizer.step()
        kept[device] = embedding.weight.detach().cpu()
    assert not embedding.weight.grad.is_sparse
    torch.testing.assert_close(kept["lazy"], kept["cpu"])


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
