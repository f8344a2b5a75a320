"""Lazy tensors can be saved to and loaded from safetensors files, which transformers,
accelerate and PEFT use."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import torch_ltc
from comparison import assert_close
from safetensors import safe_open
from safetensors import torch as safetensors
from subprocesses import run_python
from torch import nn
from transformers import BertConfig, BertForMaskedLM, GPT2Config, GPT2LMHeadModel

DTYPES = (torch.float32, torch.float64, torch.float16, torch.bfloat16,
          torch.int64, torch.uint8, torch.bool)  # fmt: skip


class Tied(nn.Module):
    """A module with an output layer tied to its embedding, with buffers, and with a frozen
    parameter."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(7, 4)
        self.norm = nn.BatchNorm1d(4)
        self.output = nn.Linear(4, 7, bias=False)
        self.output.weight = self.embedding.weight
        self.frozen = nn.Parameter(torch.randn(3), requires_grad=False)


def trained(device: str) -> Tied:
    torch.manual_seed(0)
    model = Tied().to(device)
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad])
    for step in range(2):
        optimizer.zero_grad()
        positions = torch.arange(5, device=device) + step
        model.output(model.norm(model.embedding(positions))).square().mean().backward()
        optimizer.step()
    return model


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_tensors(dtype: torch.dtype, tmp_path: Path) -> None:
    values = {
        "a": torch.arange(6).reshape(2, 3).to(dtype),
        "b": torch.ones(()).to(dtype),
    }
    pending = {name: value.to("lazy").clone() for name, value in values.items()}
    safetensors.save_file(pending, tmp_path / "file")
    assert safetensors.save(pending) == safetensors.save(values)
    loaded = safetensors.load_file(tmp_path / "file")
    for name, value in values.items():
        assert loaded[name].dtype == dtype and torch.equal(loaded[name], value)


def test_shared_tensors_are_rejected_as_for_the_cpu(tmp_path: Path) -> None:
    for device in ("cpu", "lazy"):
        x = torch.ones(4, 4, device=device)
        for shared in ({"a": x, "b": x[1]}, {"a": x, "b": x.view(-1)}):
            with pytest.raises(RuntimeError, match="share memory"):
                safetensors.save_file(shared, tmp_path / "file")
        safetensors.save_file({"a": x, "b": x.clone()}, tmp_path / "file")


def test_models_with_tied_weights(tmp_path: Path) -> None:
    names = {}
    for device in ("cpu", "lazy"):
        model = trained(device)
        path = tmp_path / device
        safetensors.save_model(model, str(path))
        names[device] = sorted(safetensors.load_file(path))
        fresh = Tied().to(device)
        assert safetensors.load_model(fresh, path) == (set(), [])
        assert fresh.output.weight is fresh.embedding.weight
        for a, b in zip(fresh.parameters(), model.parameters(), strict=True):
            assert torch.equal(a, b)
    assert names["lazy"] == names["cpu"]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("channels_last", [False, True])
def test_convolutions(channels_last: bool, dtype: torch.dtype, tmp_path: Path) -> None:
    model = nn.Sequential(nn.Conv2d(2, 4, 3), nn.Conv2d(4, 4, 3)).to("lazy", dtype)
    if channels_last:
        model.to(memory_format=torch.channels_last)
    safetensors.save_model(model, str(tmp_path / "file"))
    loaded = safetensors.load_file(tmp_path / "file")
    for name, value in model.state_dict().items():
        assert torch.equal(loaded[name], value.cpu())


SMALL = {"vocab_size": 30, "bos_token_id": 0, "eos_token_id": 0}
BERT = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
        "intermediate_size": 16}  # fmt: skip
MODELS = {
    "bert": (BertForMaskedLM, lambda: BertConfig(**SMALL, **BERT)),
    "gpt2": (
        GPT2LMHeadModel,
        lambda: GPT2Config(**SMALL, n_embd=16, n_layer=1, n_head=2),
    ),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("shard", [None, "4KB"])
def test_pretrained(name: str, shard: str | None, tmp_path: Path) -> None:
    """A model with tied weights, which `save_pretrained` finds by their addresses, is saved
    without a sync and loaded with equal parameters."""
    kind, config = MODELS[name]
    model = kind(config()).to("lazy")
    torch_ltc.mark_step()
    torch_ltc.reset_metrics()
    model.save_pretrained(tmp_path, **({"max_shard_size": shard} if shard else {}))
    assert torch_ltc.metrics()["implicit_syncs"] == 0
    loaded = kind.from_pretrained(tmp_path).to("lazy")
    output = loaded.get_output_embeddings().weight
    assert output is loaded.get_input_embeddings().weight
    for a, b in zip(model.parameters(), loaded.parameters(), strict=True):
        assert torch.equal(a.cpu(), b.cpu())


@pytest.mark.parametrize("device", ["lazy", "lazy:0", torch.device("lazy")])
def test_files_are_read_to_the_device(device, tmp_path) -> None:
    values = {
        "a": torch.arange(6.0).reshape(2, 3),
        "b": torch.ones(2, dtype=torch.bfloat16),
    }
    safetensors.save_file(values, tmp_path / "file")
    loaded = safetensors.load_file(tmp_path / "file", device=str(device))
    with safe_open(tmp_path / "file", "pt", device=device) as file:
        read = {name: file.get_tensor(name) for name in values}
        part = file.get_slice("a")
        assert part.get_shape() == [2, 3]
        row = part[1:]
    for tensors in (loaded, read):
        for name, value in values.items():
            assert tensors[name].device.type == "lazy"
            assert_close(tensors[name], value)
    assert row.device.type == "lazy" and row.tolist() == [[3.0, 4.0, 5.0]]


@pytest.mark.parametrize("first", ["safetensors.torch", "torch"])
def test_the_library_may_be_imported_first(first: str, tmp_path) -> None:
    path = tmp_path / "file"
    safetensors.save_file({"a": torch.ones(2)}, path)
    run_python(
        f"import {first}, torch\n"
        "from safetensors.torch import load_file, load_model, save_model\n"
        f"assert load_file({str(path)!r}, device='lazy')['a'].tolist() == [1.0, 1.0]\n"
        f"assert load_file({str(path)!r})['a'].device.type == 'cpu'\n"
        "model = torch.nn.Linear(2, 2).to('lazy')\n"
        f"save_model(model, {str(path)!r})\n"
        f"load_model(model, {str(path)!r}, device='lazy')\n"
        "assert model.weight.device.type == 'lazy'\n"
    )
