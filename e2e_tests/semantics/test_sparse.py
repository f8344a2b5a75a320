"""Ops on sparse tensors run on the CPU, one by one, with eager's results, aliases and
gradients."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import comparison
import pytest
import torch
import torch_ltc
from comparison import assert_close
from torch.utils._pytree import tree_leaves

SQUARE = torch.tensor([[0.0, 2, 0, 1], [3, 0, 0, 0], [0, 0, 0, 0], [0, 4, 5, 0]])
COMPRESSED = {
    "csr": lambda x: x.to_sparse_csr(),
    "csc": lambda x: x.to_sparse_csc(),
    "bsr": lambda x: x.to_sparse_bsr((2, 2)),
    "bsc": lambda x: x.to_sparse_bsc((2, 2)),
}


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "CSR support is in beta"
        yield


def coo(device: str, requires_grad: bool = False) -> torch.Tensor:
    """Returns an uncoalesced tensor: element (1, 0) occurs twice."""
    return torch.sparse_coo_tensor(
        torch.tensor([[0, 1, 1], [2, 0, 0]], device=device),
        torch.tensor([1.0, 2.0, 3.0], device=device),
        (2, 3),
        requires_grad=requires_grad,
    )


def dense(device: str, *shape: int) -> torch.Tensor:
    return (torch.arange(torch.Size(shape).numel()) / 4 + 1).reshape(shape).to(device)


def assert_same(lazy: Any, expected: Any) -> None:
    """As `comparison.assert_same`, but each result is on device lazy: ops on sparse tensors
    run on the CPU."""
    results = [leaf for leaf in tree_leaves(lazy) if isinstance(leaf, torch.Tensor)]
    assert all(result.device.type == "lazy" for result in results)
    comparison.assert_same(lazy, expected, rtol=None, atol=None, equal_nan=False)


def written(device: str, write: Callable[[torch.Tensor], Any]) -> list:
    """Returns a sparse tensor after `write`, and the tensors that share its memory."""
    sparse = coo(device)
    values, indices, alias = sparse._values(), sparse._indices(), sparse.detach()
    write(sparse)
    return [sparse, values, indices, alias, sparse._nnz(), sparse._version]


PROGRAMS: dict[str, Callable[[str], Any]] = {
    "from lists": lambda d: torch.sparse_coo_tensor([[0, 1]], [1.0, 2.0], (3,), device=d),
    "zeros": lambda d: torch.zeros(2, 3, layout=torch.sparse_coo, device=d),
    "move": lambda d: SQUARE.to_sparse().to(d),
    "move and cast": lambda d: SQUARE.to_sparse_csr().to(d, torch.float64),
    "cast": lambda d: coo(d).double(),
    "coalesce": lambda d: coo(d).coalesce(),
    "to dense": lambda d: coo(d).to_dense(),
    "to sparse": lambda d: SQUARE.to(d).to_sparse(),
    "hybrid": lambda d: SQUARE.to(d).to_sparse(1),
    "what it is": lambda d: [coo(d).sparse_dim(), coo(d).dense_dim(), coo(d).is_coalesced(), coo(d)._nnz()],
    "zeros_like": lambda d: torch.zeros_like(coo(d)),
    "clone": lambda d: coo(d).clone(),
    "like another": lambda d: coo(d).new(dense(d, 1, 2).long(), dense(d, 2), (4,)),
    "mm": lambda d: torch.sparse.mm(coo(d), dense(d, 3, 2)),
    "addmm": lambda d: torch.sparse.addmm(dense(d, 2, 2), coo(d), dense(d, 3, 2)),
    "sparse mm": lambda d: torch.sparse.mm(coo(d), coo(d).t()),
    "sum of sparse": lambda d: coo(d) + coo(d),
    "dense plus sparse": lambda d: dense(d, 2, 3) + coo(d),
    "times dense": lambda d: coo(d).coalesce() * dense(d, 2, 3),
    "dense times": lambda d: dense(d, 2, 3) * coo(d).coalesce(),
    "by a number": lambda d: coo(d) / torch.tensor(2.0).to(d),
    "mask": lambda d: dense(d, 2, 3).sparse_mask(coo(d).coalesce()),
    "select": lambda d: coo(d)[1],
    "index_select": lambda d: coo(d).index_select(0, torch.tensor([1]).to(d)),
    "sums": lambda d: [torch.sparse.sum(coo(d)), torch.sparse.sum(coo(d), 0)],
    "softmax": lambda d: torch.sparse.softmax(coo(d), 1),
    "cat": lambda d: torch.cat([coo(d), coo(d)]),
    "norm": lambda d: coo(d).norm(),
    "csr from parts": lambda d: torch.sparse_csr_tensor(
        torch.tensor([0, 1, 2]).to(d), torch.tensor([0, 1]).to(d), dense(d, 2)
    ),
    "csr from lists": lambda d: torch.sparse_csr_tensor([0, 1, 2], [0, 1], [1.0, 2.0], device=d),
    "csr mm": lambda d: SQUARE.to(d).to_sparse_csr() @ dense(d, 4, 2),
    "csr to coo": lambda d: SQUARE.to(d).to_sparse_csr().to_sparse(),
    "maximum": lambda d: torch.sparse.mm(SQUARE.to(d).to_sparse_csr(), dense(d, 4, 2), "amax"),
    "sampled": lambda d: torch.sparse.sampled_addmm(
        SQUARE.to(d).to_sparse_csr(), dense(d, 4, 2), dense(d, 2, 4)
    ),
    "mul_": lambda d: written(d, lambda s: s.mul_(2)),
    "mul_ dense number": lambda d: written(d, lambda s: s.mul_(torch.tensor(3.0).to(d))),
    "div_ dense number": lambda d: written(d, lambda s: s.div_(torch.tensor(4.0).to(d))),
    "add_": lambda d: written(d, lambda s: s.add_(coo(d))),
    "zero_": lambda d: written(d, lambda s: s.zero_()),
    "copy_": lambda d: written(d, lambda s: s.copy_(dense(d, 2, 3).to_sparse())),
    "copy_ from the CPU": lambda d: written(d, lambda s: s.copy_(dense("cpu", 2, 3).to_sparse())),
    "resize_as": lambda d: written(d, lambda s: s.resize_as_sparse_(SQUARE.to(d).to_sparse())),
    "write to values": lambda d: written(d, lambda s: s._values().mul_(3)),
    "sparse times dense": lambda d: torch.smm(coo(d), dense(d, 3, 2)),
    "out= by a number": lambda d: torch.mul(coo(d), torch.tensor(2.0).to(d), out=coo(d)),
    "dense add_": lambda d: dense(d, 2, 3).add_(coo(d), alpha=-0.5),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_agrees(name: str) -> None:
    assert_same(PROGRAMS[name]("lazy"), PROGRAMS[name]("cpu"))


@pytest.mark.parametrize("layout", COMPRESSED)
def test_compressed(layout: str) -> None:
    def program(device: str) -> list:
        sparse = COMPRESSED[layout](SQUARE.to(device))
        values = sparse.values()
        parts = [sparse.ccol_indices(), sparse.row_indices()] if layout in ("csc", "bsc") else [sparse.crow_indices(), sparse.col_indices()]  # fmt: skip
        # Eager's two tensors of indices share memory, so that one has an offset.
        parts = [part.clone() for part in parts]
        sparse.mul_(2)
        return [sparse, values, *parts, sparse.to_dense(), sparse.detach(), sparse._nnz()]  # fmt: skip

    assert_same(program("lazy"), program("cpu"))
    moved = COMPRESSED[layout](SQUARE).to("lazy")
    assert_same(moved, COMPRESSED[layout](SQUARE))
    assert_same(moved + moved, COMPRESSED[layout](2 * SQUARE))
    assert_same(torch.zeros_like(moved), torch.zeros_like(moved.cpu()))


def of_values(device: str) -> list:
    values = dense(device, 3).requires_grad_()
    right = dense(device, 3, 2).requires_grad_()
    left = torch.sparse_coo_tensor(coo(device)._indices(), values, (2, 3))
    torch.sparse.mm(left, right).square().sum().backward()
    return [values.grad, right.grad]


def of_a_leaf(device: str) -> list:
    sparse = coo(device, requires_grad=True)
    (torch.sparse.mm(sparse, dense(device, 3, 2)) ** 2).sum().backward()
    return [sparse.grad, sparse.to_dense()]


def through_layouts(device: str) -> list:
    x = SQUARE.to(device).requires_grad_()
    (x.to_sparse().to_dense() * dense(device, 4, 4)).sum().backward()
    return [x.grad]


def of_a_maximum(device: str) -> list:
    left = SQUARE.to(device).to_sparse_csr().requires_grad_()
    right = dense(device, 4, 2).requires_grad_()
    torch.sparse.mm(left, right, "amax").square().sum().backward()
    return [left.grad, right.grad]


@pytest.mark.parametrize("program", [of_values, of_a_leaf, through_layouts, of_a_maximum])  # fmt: skip
def test_gradients(program: Callable[[str], list]) -> None:
    assert_same(program("lazy"), program("cpu"))


OPTIMIZERS = {
    "SGD": lambda p: torch.optim.SGD(p, 0.1),
    "Adagrad": torch.optim.Adagrad,
    "SparseAdam": torch.optim.SparseAdam,
}


@pytest.mark.parametrize("layer", [torch.nn.Embedding, torch.nn.EmbeddingBag])
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_embeddings_have_sparse_gradients(layer, optimizer: str) -> None:
    def program(device: str) -> list:
        torch.manual_seed(0)
        embedding = layer(10, 4, sparse=True).to(device)
        stepper = OPTIMIZERS[optimizer](embedding.parameters())
        for step in range(3):
            stepper.zero_grad()
            for _ in range(2):  # the second gradient is added to the first
                indices = torch.tensor([[1, 2, 2], [5, 0, step]]).to(device)
                embedding(indices).square().sum().backward()
            stepper.step()
        return [embedding.weight, embedding.weight.grad]

    assert_same(program("lazy"), program("cpu"))


def test_prints() -> None:
    def words(text: str) -> str:
        return "".join(text.replace("device='lazy:0',", "").split())

    text = repr(coo("lazy"))
    assert "device='lazy:0'" in text
    assert words(text) == words(repr(coo("cpu")))


def test_is_entered_in_the_fallback_log() -> None:
    sparse = coo("lazy")
    torch_ltc.reset_metrics()
    sparse.coalesce()
    (row,) = torch_ltc.fallbacks()
    assert row["op"] == "aten::_coalesce"
    assert row["calls"] == 1
    assert "test_sparse.py" in row["location"]
    torch_ltc.reset_metrics()
    sparse._values(), sparse._nnz(), sparse.detach(), sparse.cpu()
    assert not torch_ltc.fallbacks()


def test_another_device_is_rejected() -> None:
    with pytest.raises(RuntimeError, match=r"same device.*test_sparse\.py"):
        torch.sparse.mm(torch.eye(4).to_sparse(), torch.ones(4, 4, device="lazy"))


def test_functionalize_of_the_cpu_is_as_it_was() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return (x.to_sparse() * 2).to_dense() + x.mul(2).index_select(0, torch.tensor([0]))  # fmt: skip

    x = dense("cpu", 2, 3)
    assert_close(torch.func.functionalize(function)(x), function(x))


GRADIENTS = {
    "to_dense": lambda a: a.to_dense(),
    "sum": torch.sparse.sum,
    "coalesced": lambda a: (a + a).coalesce().to_dense(),
    "product": lambda a: torch.sparse.mm(a, torch.eye(2, dtype=a.dtype).to(a.device)),
}


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("name", GRADIENTS)
def test_gradcheck(name: str, masked: bool) -> None:
    """gradcheck, which writes to the results of ops on sparse tensors, has eager's
    outcome."""

    def run(device: str) -> bool | str:
        x = torch.tensor([[1.0, 0.5], [2.0, 3.0]], dtype=torch.float64, device=device)
        x = x.to_sparse().requires_grad_()
        try:
            return torch.autograd.gradcheck(GRADIENTS[name], (x,), masked=masked)
        except ValueError as error:
            return str(error)

    assert run("lazy") == run("cpu")


@pytest.mark.parametrize("layout", ["coo", "csr", "csc", "bsr", "bsc"])
def test_invariants_are_checked_on_request(layout: str) -> None:
    """Eager only checks indices with `check_invariants` or the global setting."""

    def make(device: str, **options: bool) -> torch.Tensor:
        numbers = torch.ones((2, 2, 2) if layout.startswith("b") else 2, device=device)
        wrong = torch.tensor([0, 1, 3], device=device)
        columns = torch.tensor([0, 1], device=device)
        if layout == "coo":
            return torch.sparse_coo_tensor(wrong[1:, None].T, numbers, (2,), **options)
        constructor = getattr(torch, f"sparse_{layout}_tensor")
        return constructor(wrong, columns, numbers, (4, 4), **options)

    errors = {}
    for device in ("cpu", "lazy"):
        with pytest.raises(RuntimeError) as by_option:
            make(device, check_invariants=True)
        with (
            torch.sparse.check_sparse_tensor_invariants(),
            pytest.raises(RuntimeError) as by_setting,
        ):
            make(device)
        errors[device] = [str(by_option.value), str(by_setting.value)]
    for ours, eager in zip(errors["lazy"], errors["cpu"], strict=True):
        assert ours.startswith(eager)
