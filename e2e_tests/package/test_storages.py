"""Lazy tensors have storages, so code that detects shared tensors by address works."""

from __future__ import annotations

import ctypes

import pytest
import torch
import torch_ltc
from comparison import assert_close
from torch import nn
from torch.utils._pytree import tree_leaves

VIEWS = {
    "a row": lambda x: x[1],
    "a slice": lambda x: x[1:, ::2],
    "a transpose": lambda x: x.t(),
    "a reshape": lambda x: x.view(-1),
    "detach": lambda x: x.detach(),
    "another dtype": lambda x: x.view(torch.int32),
    "a view of a view": lambda x: x.view(-1)[3:].view(3, 3)[2],
}
COPIES = {
    "clone": lambda x: x.clone(),
    "a sum": lambda x: x + 0,
    "to": lambda x: x.to("lazy", copy=True),
    "contiguous of a transpose": lambda x: x.t().contiguous(),
    "a twin": lambda x: torch.ones_like(x),
}
DTYPES = (torch.float32, torch.float64, torch.int32, torch.bfloat16)


def distance(view: torch.Tensor, base: torch.Tensor) -> int:
    return view.data_ptr() - base.data_ptr()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", VIEWS)
def test_views_have_their_bases_storage(name: str, dtype: torch.dtype) -> None:
    if name == "another dtype" and dtype.itemsize != 4:
        pytest.skip("int32 is a view of four bytes")
    base = {d: torch.ones(3, 4, dtype=dtype, device=d) for d in ("lazy", "cpu")}
    view = {d: VIEWS[name](x) for d, x in base.items()}
    storages = [t["lazy"].untyped_storage() for t in (base, view)]
    assert storages[0].data_ptr() == storages[1].data_ptr() != 0
    assert storages[0]._cdata == storages[1]._cdata
    assert storages[0].nbytes() == base["cpu"].untyped_storage().nbytes()
    assert distance(view["lazy"], base["lazy"]) == distance(view["cpu"], base["cpu"])
    base["lazy"].add_(1)  # a pending write
    assert storages[0].data_ptr() == view["lazy"].untyped_storage().data_ptr()


@pytest.mark.parametrize("name", COPIES)
@pytest.mark.parametrize("first", ["base", "copy"])
def test_other_tensors_have_other_addresses(name: str, first: str) -> None:
    """A tensor and its copy may share a buffer until their addresses are queried, and have
    different addresses then."""
    base = torch.ones(3, 3, device="lazy")
    torch_ltc.mark_step()
    copy = COPIES[name](base)
    torch_ltc.mark_step()
    tensors = (base, copy) if first == "base" else (copy, base)
    a, b = (tensor.data_ptr() for tensor in tensors)
    assert a and b and a != b
    assert [tensor.data_ptr() for tensor in tensors] == [a, b], "they stay"
    assert base.tolist() == copy.tolist() == [[1.0] * 3] * 3


def test_the_address_is_the_values() -> None:
    x = torch.arange(6.0, device="lazy")
    y = x.clone()
    x.mul_(2)

    def read(tensor: torch.Tensor) -> list[float]:
        return (ctypes.c_float * tensor.numel()).from_address(tensor.data_ptr())[:]

    assert read(x) == [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]
    assert read(x[4:]) == [8.0, 10.0]
    assert read(y) == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]


def test_empty_tensors_have_no_address() -> None:
    for device in ("cpu", "lazy"):
        empty = torch.empty(0, 3, device=device)
        assert empty.data_ptr() == empty.untyped_storage().data_ptr() == 0


def test_the_address_of_computed_values_cuts_nothing() -> None:
    model = nn.Linear(3, 2).to("lazy")
    torch_ltc.mark_step()
    pending = model.weight.detach() * 2
    torch_ltc.reset_metrics()
    assert len({p.data_ptr() for p in model.parameters()}) == 2
    assert torch_ltc.metrics()["implicit_syncs"] == 0
    assert pending.data_ptr()
    (row,) = torch_ltc.syncs()
    assert "data_ptr" in row["op"] and "test_storages.py" in row["location"]


def test_training_keeps_addresses_and_values() -> None:
    """A step overwrites parameters in place, although their addresses have been queried."""
    parameter = nn.Parameter(torch.ones(100, device="lazy"))
    optimizer = torch.optim.SGD([parameter], lr=0.5)
    addresses = []
    for _ in range(4):
        parameter.grad = torch.ones(100, device="lazy")
        optimizer.step()
        addresses.append(parameter.data_ptr())
    assert len(set(addresses[1:])) == 1
    assert parameter.tolist() == [-1.0] * 100


def test_storages_are_read_like_the_cpus() -> None:
    x = torch.arange(5, dtype=torch.int16)
    ours, eagers = x.to("lazy").untyped_storage(), x.untyped_storage()
    assert ours.tolist() == eagers.tolist() == list(ours)
    assert bytes(ours) == bytes(eagers) and ours[2] == eagers[2]
    assert ours.cpu().device.type == "cpu"
    copy = ours.clone()
    assert copy.device.type == "lazy" and copy.tolist() == ours.tolist()
    copy[0] = 1
    assert ours.tolist() == eagers.tolist() != copy.tolist()
    assert len(ours) == len(eagers) and ours.device.type == "lazy"


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x.untyped_storage().resize_(3),
        lambda x: x.share_memory_(),
        lambda x: nn.Linear(2, 2).to("lazy").share_memory(),
    ],
)
def test_what_storages_do_not_do(call) -> None:
    x = torch.ones(3, device="lazy")
    with pytest.raises(RuntimeError, match=r"lazy.*x\.cpu"):
        call(x)
    assert not x.is_shared() and x.tolist() == [1.0] * 3


def test_a_storage_without_memory() -> None:
    """FullyShardedDataParallel releases a storage, asks for its size, and fills it later."""
    seen = {}
    for device in ("cpu", "lazy"):
        x = torch.arange(6.0, device=device)
        row = x.view(2, 3)[1]
        storage = x.untyped_storage()
        sizes = [storage.size()]
        storage.resize_(0)
        sizes.append(storage.size())
        storage.resize_(24)
        sizes.append(storage.size())
        x.copy_(torch.arange(6.0, device=device) * 10)
        seen[device] = sizes, row.tolist(), (x + 1).tolist()
    assert seen["lazy"] == seen["cpu"]


def _float_bytes(device: str) -> torch.UntypedStorage:
    return torch.arange(4.0, device=device).untyped_storage()


def _copied(device: str) -> object:
    x = torch.ones(4, device=device)
    x.untyped_storage().copy_(_float_bytes(device))
    return x


def _copied_across(device: str) -> object:
    x, y = torch.ones(4, device=device), torch.ones(4)
    x.untyped_storage().copy_(_float_bytes("cpu"))
    y.untyped_storage().copy_(x.untyped_storage())
    return x, y


def _written_byte(device: str) -> object:
    x = torch.zeros(2, dtype=torch.int32, device=device)
    view = x[1:]
    x.untyped_storage()[4] = 7
    return x, view


def _filled(device: str) -> object:
    x = torch.ones(2, 2, device=device)
    row = x[1]
    x.untyped_storage().fill_(0)
    return x, row


def _set_to(*place) -> object:
    def program(device: str) -> object:
        base = torch.arange(6.0, device=device)
        x = torch.zeros(2, device=device)
        x.set_(base.untyped_storage(), *place)
        x.add_(1)
        base.mul_(10)
        return x, base

    return program


def _set_to_typed(device: str) -> object:
    base = torch.arange(3.0, device=device)
    x = torch.zeros(1, device=device).set_(base.storage())
    x += 1
    return x, base, base.storage().tolist(), base.storage()[1]


def _set_other_dtype(device: str) -> object:
    base = torch.ones(2, device=device)
    x = torch.empty(0, dtype=torch.int32, device=device).set_(base.untyped_storage())
    before = x.clone()
    x.zero_()
    return before, x, base


def _new(device: str) -> object:
    storage = torch.UntypedStorage(8, device=device)
    storage.fill_(1)
    return storage.nbytes(), torch.empty(0, dtype=torch.int64, device=device).set_(
        storage
    )


def _resized_after(look) -> object:
    """Returns a program that resizes tensors after `look` has read their storages: this is
    allowed, as Python's storage object isn't a view of the tensor."""

    def program(device: str) -> object:
        x, y = (torch.empty(0, device=device) for _ in range(2))
        look(x), look(y)
        torch.abs(torch.arange(4.0, device=device).view(2, 2) - 2, out=x)
        return x, y.resize_(3).zero_()

    return program


STORAGES = {
    "copied": _copied,
    "copied across": _copied_across,
    "a byte": _written_byte,
    "filled": _filled,
    "set": _set_to(),
    "set to a part": _set_to(1, (2, 2), (1, 2)),
    "set to a row": _set_to(2, (3,)),
    "set to a typed one": _set_to_typed,
    "set, another dtype": _set_other_dtype,
    "new": _new,
    "resized after data_ptr": _resized_after(lambda x: x.data_ptr()),
    "resized after storage": _resized_after(lambda x: x.untyped_storage()),
    "resized after nbytes": _resized_after(lambda x: x.untyped_storage().nbytes()),
    "lazy clone": lambda d: torch._lazy_clone(torch.arange(3.0, device=d)).add_(1),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("program", STORAGES.values(), ids=STORAGES)
def test_storages_as_eager_has_them(program) -> None:
    actual, expected = (tree_leaves(program(device)) for device in ("lazy", "cpu"))
    for a, e in zip(actual, expected, strict=True):
        assert type(a) is type(e)
        if not isinstance(e, torch.Tensor):
            assert a == e
            continue
        assert (a.shape, a.stride(), a.storage_offset()) == (e.shape, e.stride(), e.storage_offset())  # fmt: skip
        assert_close(a, e)


@pytest.mark.parametrize("other", ["cpu", "meta"])
def test_a_tensor_is_not_set_to_another_devices(other: str) -> None:
    x = torch.arange(3.0).to("lazy")
    view = x[1:]
    for target, source in ((x, torch.ones(2, device=other)), (torch.ones(2, device=other), x)):  # fmt: skip
        with pytest.raises(RuntimeError, match="the devices must match"):
            target.set_(source)
    x.add_(1)  # x still shares its view's memory
    assert view.tolist() == [2.0, 3.0]
