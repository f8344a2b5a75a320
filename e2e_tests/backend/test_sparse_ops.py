"""Ops on sparse tensors that are traced: products with dense matrices, sums with dense
tensors, masks and copies. They need no value, so they neither wait nor cut the step."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
import torch_ltc
from comparison import assert_close
from counting import counting
from torch import nn


@pytest.fixture(autouse=True, params=["compile", "interpret"])
def _tier(request):
    with warnings.catch_warnings(), torch_ltc.config(tier=request.param):
        warnings.simplefilter("ignore")  # "CSR support is in beta"
        yield


def matrix(device: str, kind: str, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Returns a sparse matrix of 6 rows and 5 columns. An element of "coo" occurs twice."""
    rows = torch.tensor([0, 4, 0, 2, 5, 0])
    columns = torch.tensor([3, 1, 0, 4, 4, 3])
    values = torch.arange(1, 7, dtype=dtype) / 4
    sparse = torch.sparse_coo_tensor(torch.stack([rows, columns]), values, (6, 5))
    if kind != "coo":
        sparse = sparse.coalesce()
    if kind in ("csr", "csc"):
        sparse = sparse.to_sparse_csr() if kind == "csr" else sparse.to_sparse_csc()
    return sparse.to(device)


def compare(function: Callable[[str], list], fallbacks: int = 0) -> None:
    """Compares `function(device)` with eager. On device lazy, it must make so many calls by
    fallback, and no sync that isn't one of them."""
    torch.manual_seed(0)
    expected = function("cpu")
    torch.manual_seed(0)
    torch_ltc.reset_metrics()
    with counting() as counts:
        results = function("lazy")
    assert sum(row["calls"] for row in torch_ltc.fallbacks()) == fallbacks
    assert counts.implicit_syncs <= fallbacks
    assert_close(results, expected)


@pytest.mark.parametrize("kind", ["coo", "coalesced", "csr", "csc"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_products(kind, dtype):
    def run(device: str) -> list:
        x = torch.randn(5, 7, dtype=dtype).to(device).requires_grad_()
        sparse = matrix(device, kind, dtype)
        y = torch.sparse.mm(sparse, x) if kind != "csc" else sparse @ x
        (y * y).sum().backward()
        return [y.detach(), x.grad, sparse.mm(x[:, ::2].detach())]

    compare(run)


@pytest.mark.parametrize("kind", ["coo", "csr"])
def test_sums_of_products(kind):
    def run(device: str) -> list:
        sparse = matrix(device, kind)
        x, bias = torch.randn(5, 3).to(device), torch.randn(6, 3).to(device)
        hidden = torch.full((6, 3), torch.nan).to(device)
        results = [torch.addmm(bias, sparse, x), torch.addmm(bias[:1], sparse, x)]
        results += [torch.addmm(bias, sparse, x, beta=0.5, alpha=2)]
        return [*results, torch.addmm(hidden, sparse, x, beta=0)]

    if kind == "csr":  # eager doesn't broadcast the summand of compressed tensors
        compare(lambda device: run(device)[2:])
    else:
        compare(run)


ERRORS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "sizes": lambda a: a @ torch.ones(4, 2, device=a.device),
    "dtypes": lambda a: a @ torch.ones(5, 2, device=a.device, dtype=torch.float64),
    "rank": lambda a: torch.sparse.mm(a, torch.ones(5, device=a.device)),
    "sum of other sizes": lambda a: torch.ones(6, 4, device=a.device) + a,
    "mask of other sizes": lambda a: torch.ones(6, 4, device=a.device).sparse_mask(a),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name):
    messages = []
    for device in ("cpu", "lazy"):
        with pytest.raises((RuntimeError, IndexError)) as error:
            ERRORS[name](matrix(device, "coalesced"))
        messages.append(str(error.value).split(" [aten::")[0])
    assert messages[0] == messages[1]


def test_sums():
    def run(device: str) -> list:
        sparse = matrix(device, "coo")
        dense = torch.randn(6, 5).to(device).requires_grad_()
        results = [dense + sparse, torch.add(dense, sparse, alpha=-2)]
        results[1].square().sum().backward()
        written = torch.ones(6, 5, device=device)
        view = written[1:]
        written.add_(sparse, alpha=0.5)
        rows = torch.sparse_coo_tensor(  # row 2 occurs twice
            torch.tensor([[2, 0, 2]], device=device),
            torch.ones(3, 5, device=device),
            (6, 5),
        )
        written.add_(rows, alpha=3).sub_(sparse)
        none = torch.sparse_coo_tensor((6, 5), device=device)
        return [r.detach() for r in results] + [
            dense.grad,
            written,
            view,
            view + 1,
            dense + none,
        ]

    compare(run)


def test_masks_and_copies():
    def run(device: str) -> list:
        sparse = matrix(device, "coalesced")
        dense = torch.randn(6, 5).to(device)
        chosen = dense.sparse_mask(sparse)
        copy = sparse.clone()
        copy._values().mul_(2)
        compressed = matrix(device, "csr").clone()
        compressed.values().add_(1)
        parts = [chosen._indices(), chosen._values(), sparse._values(), copy._values()]
        return [*parts, compressed.values(), chosen.is_coalesced(), copy.is_coalesced()]

    compare(run)


def test_a_graph_network():
    """Training waits for nothing but the losses."""

    def run(device: str) -> list:
        first, second = nn.Linear(4, 8).to(device), nn.Linear(8, 3).to(device)
        parameters = [*first.parameters(), *second.parameters()]
        optimizer = torch.optim.Adam(parameters, lr=0.01)
        graph, x = matrix(device, "csr"), torch.randn(5, 4).to(device)
        back = matrix(device, "coalesced").t()
        labels = torch.tensor([0, 1, 2, 0, 1]).to(device)
        for _ in range(4):
            hidden = torch.relu(graph @ first(x))
            loss = F.cross_entropy(torch.sparse.mm(back, second(hidden)), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        return [loss.detach(), *(p.detach() for p in parameters)]

    compare(run)


def test_graphs_of_random_sizes():
    """At most 4 programs are compiled for 12 graphs."""

    def run(device: str) -> list:
        layer, sizes = nn.Linear(4, 8).to(device), random.Random(0)
        optimizer, losses = torch.optim.SGD(layer.parameters(), lr=0.1), []
        for _ in range(12):
            nodes, edges = sizes.randrange(20, 90), sizes.randrange(50, 300)
            ends = torch.randint(nodes, (2, edges))
            graph = torch.sparse_coo_tensor(ends, torch.rand(edges), (nodes, nodes))
            hidden = torch.sparse.mm(
                graph.to(device), layer(torch.rand(nodes, 4).to(device))
            )
            loss = hidden.square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
        return losses

    with torch_ltc.config(cache=False):
        compare(run)
    assert torch_ltc.metrics()["compilations"] <= 4


@pytest.mark.parametrize("kind, fallbacks", [("sgd", 0), ("adam", 3)])
def test_sparse_gradients(kind, fallbacks):
    """SparseAdam only waits for the number of rows of each gradient."""

    def run(device: str) -> list:
        table = nn.Embedding(10, 4, sparse=True).to(device)
        make = torch.optim.SparseAdam if kind == "adam" else torch.optim.SGD
        optimizer = make(table.parameters(), lr=0.1)
        for _ in range(3):
            rows = torch.randint(10, (8,)).to(device)
            loss = table(rows).square().sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        return [table.weight.detach()]

    compare(run, fallbacks)
