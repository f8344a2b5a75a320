"""Lazy tensors work with torch.save, torch.load (to either device), pickle, deepcopy, repr
and NumPy."""

from __future__ import annotations

import copy
import io
import pickle

import numpy
import pytest
import torch
import torch_ltc
from comparison import assert_close
from subprocesses import run_python
from torch import nn

DTYPES = [
    torch.float32,
    torch.float64,
    torch.bfloat16,
    torch.float16,
    torch.int64,
    torch.int32,
    torch.uint8,
    torch.bool,
]


def through_file(value, **options):
    buffer = io.BytesIO()
    torch.save(value, buffer)
    buffer.seek(0)
    return torch.load(buffer, **options)


@pytest.mark.parametrize("dtype", DTYPES)
def test_tensor(dtype: torch.dtype) -> None:
    tensor = torch.arange(6).reshape(2, 3).to(dtype)
    lazy = tensor.to("lazy")
    for result, device in [
        (through_file(lazy), "lazy"),
        (through_file(lazy, map_location="cpu"), "cpu"),
        (through_file(lazy, map_location=torch.device("cpu")), "cpu"),
        (through_file(lazy, map_location={"lazy:0": "cpu"}), "cpu"),
        (through_file(tensor, map_location="lazy"), "lazy"),
        (through_file(tensor, map_location=torch.device("lazy")), "lazy"),
        (through_file(tensor), "cpu"),
    ]:
        assert result.device.type == device
        assert result.dtype == dtype
        assert torch.equal(result.cpu(), tensor)


def test_pending_tensor_and_empty_tensor() -> None:
    pending = torch.ones(3, device="lazy") * 2 + 1
    assert through_file(pending, map_location="cpu").tolist() == [3.0] * 3
    assert through_file(torch.empty(0, 4, device="lazy")).shape == (0, 4)
    assert through_file(torch.tensor(2.5, device="lazy")).item() == 2.5


def test_requires_grad_and_parameters() -> None:
    leaf = torch.ones(2, device="lazy", requires_grad=True)
    assert through_file(leaf).requires_grad
    parameter = nn.Parameter(torch.ones(2, device="lazy"), requires_grad=False)
    for result in (through_file(parameter), pickle.loads(pickle.dumps(parameter))):
        assert isinstance(result, nn.Parameter)
        assert not result.requires_grad and result.device.type == "lazy"


def _trained() -> tuple[nn.Module, torch.optim.Optimizer]:
    model = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3)).to("lazy")
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.randn(5, 4).to("lazy")).square().sum().backward()
    optimizer.step()
    return model, optimizer


def test_state_dicts_move_between_devices() -> None:
    model, optimizer = _trained()
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
    loaded = through_file(state, map_location="cpu")
    cpu = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3))
    cpu.load_state_dict(loaded["model"])
    cpu_optimizer = torch.optim.AdamW(cpu.parameters())
    cpu_optimizer.load_state_dict(loaded["optimizer"])
    x = torch.randn(5, 4)
    assert_close(model(x.to("lazy")), cpu(x))

    back = through_file({"model": cpu.state_dict()}, map_location="lazy")
    other = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3)).to("lazy")
    other.load_state_dict(back["model"])
    assert_close(other.state_dict()["0.weight"], cpu[0].weight)


def test_training_continues_after_loading() -> None:
    model, optimizer = _trained()
    loaded = through_file({"m": model.state_dict(), "o": optimizer.state_dict()})
    twin = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3)).to("lazy")
    twin.load_state_dict(loaded["m"])
    twin_optimizer = torch.optim.AdamW(twin.parameters())
    twin_optimizer.load_state_dict(loaded["o"])
    x = torch.randn(5, 4).to("lazy")
    for network, rule in ((model, optimizer), (twin, twin_optimizer)):
        rule.zero_grad()
        network(x).square().sum().backward()
        rule.step()
    for mine, other in zip(model.parameters(), twin.parameters()):
        assert torch.equal(mine.cpu(), other.cpu())


def test_whole_module() -> None:
    model, _ = _trained()
    for result in (
        through_file(model, weights_only=False),
        pickle.loads(pickle.dumps(model)),
    ):
        assert next(result.parameters()).device.type == "lazy"
        for name, value in result.state_dict().items():
            assert torch.equal(value.cpu(), model.state_dict()[name].cpu()), name


def test_file_is_readable_without_torch_ltc(tmp_path) -> None:
    path = tmp_path / "state.pt"
    torch.save({"w": torch.arange(3.0, device="lazy")}, path)
    program = f"""
        import torch
        print(torch.load({str(path)!r}, map_location="cpu")["w"].tolist())
    """
    result = run_python(program, TORCH_DEVICE_BACKEND_AUTOLOAD="0")
    assert result.stdout.strip() == "[0.0, 1.0, 2.0]"


def test_location_of_another_lazy_device_is_rejected() -> None:
    with pytest.raises(RuntimeError, match="map_location"):
        through_file(torch.ones(1), map_location="lazy:1")


@pytest.mark.parametrize("of", [torch.Tensor.untyped_storage, torch.Tensor.storage])
def test_storage_without_its_tensor(of) -> None:
    """It is loaded on the CPU: a lazy storage belongs to a tensor."""
    loaded = []
    for device in ("cpu", "lazy"):
        file = io.BytesIO()
        torch.save([of(torch.arange(4.0).to(device))], file)
        file.seek(0)
        loaded.append([list(s) for s in torch.load(file, weights_only=False)])
    assert loaded[0] == loaded[1]


def test_one_sync_saves_a_whole_step() -> None:
    model, _ = _trained()
    before = torch_ltc.metrics()["executions"]
    through_file(model.state_dict())
    assert torch_ltc.metrics()["executions"] == before, "all were computed"


def test_deepcopy() -> None:
    model, _ = _trained()
    twin = copy.deepcopy(model)
    with torch.no_grad():
        twin[0].weight.add_(1)
    assert not torch.equal(twin[0].weight.cpu(), model[0].weight.cpu())
    assert_close(twin[0].weight.cpu() - 1, model[0].weight)
    tensor = torch.ones(2, device="lazy")
    other = copy.deepcopy(tensor)
    other.add_(1)
    assert tensor.tolist() == [1.0, 1.0]


def test_repr_shows_values() -> None:
    tensor = torch.tensor([1.0, 2.5], device="lazy") * 2
    assert repr(tensor) == "tensor([2., 5.], device='lazy:0')"
    assert "requires_grad=True" in repr(
        torch.ones(1, device="lazy", requires_grad=True)
    )
    assert "device='lazy:0'" in str(torch.empty(0, device="lazy"))
    assert f"{torch.tensor(1.5, device='lazy'):.2f}" == "1.50"


def test_numpy() -> None:
    tensor = torch.arange(4.0, device="lazy") + 1
    assert tensor.cpu().numpy().tolist() == [1.0, 2.0, 3.0, 4.0]
    assert tensor.tolist() == [1.0, 2.0, 3.0, 4.0]
    with pytest.raises(TypeError, match="cpu"):
        tensor.numpy()
    array = numpy.arange(3, dtype=numpy.float32)
    lazy = torch.from_numpy(array).to("lazy")
    array[0] = 9
    assert lazy.tolist() == [0.0, 1.0, 2.0], "a later write to the array isn't seen"


def through_legacy_file(value, **options):
    buffer = io.BytesIO()
    torch.save(value, buffer, _use_new_zipfile_serialization=False)
    buffer.seek(0)
    return torch.load(buffer, **options)


@pytest.mark.parametrize("source", ["cpu", "lazy"])
@pytest.mark.parametrize("target", ["cpu", "lazy", None])
@pytest.mark.parametrize(
    "dtype", [*DTYPES, torch.complex64, torch.int8, torch.int16], ids=str
)
def test_legacy_file(dtype: torch.dtype, target: str | None, source: str) -> None:
    x = torch.arange(6).reshape(2, 3).to(dtype)
    loaded = through_legacy_file(x.to(source), map_location=target)
    assert loaded.device.type == (target or source)
    assert torch.equal(loaded.cpu(), x)


@pytest.mark.parametrize("source", ["cpu", "lazy"])
def test_legacy_file_with_views_of_one_memory(source: str) -> None:
    x = torch.arange(12.0).reshape(3, 4).to(source)
    value = {
        "x": x,
        "row": x[1],
        "t": x.t(),
        "gaps": x[:, ::2],
        "other": torch.ones(2, requires_grad=True),
        "empty": torch.zeros(0, 3).to(source),
        "parameter": nn.Parameter(torch.full((2,), 3.0).to(source)),
    }
    loaded = through_legacy_file(value, map_location="lazy")
    for name, tensor in value.items():
        assert loaded[name].device.type == "lazy"
        assert loaded[name].stride() == tensor.stride()
        assert torch.equal(loaded[name].cpu(), tensor.cpu())
    assert loaded["other"].requires_grad and loaded["other"].is_leaf
    loaded["row"].fill_(-1)
    assert loaded["x"].cpu()[1].tolist() == [-1.0] * 4
    assert loaded["t"].cpu()[:, 1].tolist() == [-1.0] * 4
    assert loaded["gaps"].cpu()[1].tolist() == [-1.0] * 2


def test_legacy_file_of_a_model() -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    tied = nn.ModuleList([model, model])
    state = through_legacy_file(tied.state_dict(), map_location="lazy")
    for name, tensor in tied.state_dict().items():
        assert torch.equal(state[name].cpu(), tensor)
    other = nn.ModuleList([nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))] * 2)
    other.to("lazy").load_state_dict(state)
    x = torch.randn(5, 3)
    assert_close(other[0](x.to("lazy")), model(x))


@pytest.mark.parametrize("device", ["cpu", "lazy"])
def test_shallow_copies_share_memory(device: str) -> None:
    x = torch.arange(3.0).to(device)
    x.note = "kept"
    y = copy.copy(x)
    y.add_(1)
    assert y is not x and y.note == "kept"
    assert x.cpu().tolist() == [1, 2, 3]
    parameter = nn.Parameter(x)
    shared = copy.copy(parameter)
    assert type(shared) is nn.Parameter and shared.requires_grad
    with torch.no_grad():
        shared.mul_(2)
    assert parameter.tolist() == [2, 4, 6]
    frozen = copy.copy(nn.Parameter(x, requires_grad=False))
    assert type(frozen) is nn.Parameter and not frozen.requires_grad
    leaf = torch.ones(2, device=device, requires_grad=True)
    assert copy.copy(leaf).requires_grad and copy.copy(leaf).is_leaf
    model = copy.copy(nn.Linear(2, 2).to(device))
    assert isinstance(model.weight, nn.Parameter)


def _views(device: str) -> dict[str, torch.Tensor]:
    base = torch.arange(12.0, device=device).view(3, 4)
    number = torch.complex(base, base + 1)
    return {
        "column": base[:, 1],
        "rows": base[1:, ::2],
        "expanded": torch.ones(1, device=device).expand(5),
        "transposed": base.t(),
        "imaginary": number.imag,
        "conjugate": number.conj(),
        "reinterpreted": base.view(torch.int32)[1],
    }


def _pickled(tensor: torch.Tensor) -> torch.Tensor:
    return pickle.loads(pickle.dumps(tensor))


@pytest.mark.parametrize("copied", [_pickled, through_file])
@pytest.mark.parametrize("name", _views("cpu"))
def test_views_keep_strides_and_bits(name: str, copied) -> None:
    results = [copied(_views(device)[name]) for device in ("cpu", "lazy")]
    expected, result = results
    assert result.device.type == "lazy"
    assert result.stride() == expected.stride()
    assert result.storage_offset() == expected.storage_offset()
    assert result.is_conj() == expected.is_conj()
    assert torch.equal(result.cpu(), expected)


@pytest.mark.parametrize("bit", ["conj", "neg"])
def test_bits_of_a_cpu_file(bit: str) -> None:
    """A file contains the memory of a tensor and, separately, its conjugate bit."""
    number = torch.randn(3, dtype=torch.complex64)
    view = number.conj() if bit == "conj" else torch._neg_view(number)
    buffer = io.BytesIO()
    torch.save(view, buffer)
    buffer.seek(0)
    assert torch.equal(torch.load(buffer, map_location="lazy").cpu(), view)


@pytest.mark.parametrize("copied", [_pickled, through_file])
def test_bits_of_a_lazy_file(copied) -> None:
    number = torch.randn(3, dtype=torch.complex64).to("lazy")
    for view in (number.conj(), torch._neg_view(number), number.conj().imag):
        result = copied(view)
        assert (result.is_conj(), result.is_neg()) == (view.is_conj(), view.is_neg())
        assert torch.equal(result.cpu(), view.cpu())


@pytest.mark.parametrize("copied", [_pickled, through_file])
@pytest.mark.parametrize("layout", ["to_sparse", "to_sparse_csr", "to_sparse_csc"])
@pytest.mark.filterwarnings("ignore:Sparse CS[RC] tensor support")
def test_sparse(layout: str, copied) -> None:
    tensor = getattr(torch.eye(3, device="lazy"), layout)()
    result = copied(tensor)
    assert (result.device.type, result.layout) == ("lazy", tensor.layout)
    assert torch.equal(result.to_dense().cpu(), torch.eye(3))
