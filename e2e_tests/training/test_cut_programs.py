"""A step's results don't depend on where its programs end.

A backward pass in a separate program reads the forward pass's results from memory, and
its ops are fused differently than in a program of the whole step.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
import torch
import torch_ltc
from comparison import assert_close, largest
from torch import nn
from torch.nn import functional as F

Layer = Callable[[], nn.Module]


def _image(*shape: int) -> Callable[[], torch.Tensor]:
    return lambda: torch.randn(*shape)


def _words() -> torch.Tensor:
    return torch.randint(11, (3, 5))


class _First(nn.Module):
    """Returns the first result of a layer."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x)[0]


class _Attention(nn.Module):
    def __init__(self, causal: bool) -> None:
        super().__init__()
        self.project, self.causal = nn.Linear(8, 24), causal

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        parts = self.project(x).unflatten(-1, (3, 2, 4)).permute(2, 0, 3, 1, 4)
        seen = F.scaled_dot_product_attention(*parts, is_causal=self.causal)
        return F.gelu(seen)


class _Loss(nn.Module):
    def __init__(
        self, loss: Callable[..., torch.Tensor], targets: torch.Tensor
    ) -> None:
        super().__init__()
        self.layer, self.loss = nn.Linear(6, 4), loss
        self.register_buffer("targets", targets)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.loss(self.layer(x), self.targets)


def _normed(norm: Layer, activation: Layer, channels: int = 8) -> Layer:
    # Without a bias: a norm over each channel would remove it, so that its gradient would
    # be rounding noise.
    return lambda: nn.Sequential(
        nn.Conv2d(channels, channels, 3, padding=1, bias=False), norm(), activation()
    )


def _loss(loss: Callable[..., torch.Tensor], targets: torch.Tensor) -> Layer:
    return lambda: _Loss(loss, targets)


MODELS: dict[str, tuple[Layer, Callable[[], torch.Tensor]]] = {
    "group_norm-silu": (_normed(lambda: nn.GroupNorm(4, 8), nn.SiLU), _image(2, 8, 6, 6)),
    "group_norm-one": (_normed(lambda: nn.GroupNorm(1, 6), nn.GELU, 6), _image(1, 6, 5, 5)),
    "group_norm-each": (_normed(lambda: nn.GroupNorm(8, 8), nn.Mish), _image(3, 8, 4, 4)),
    "instance_norm": (_normed(lambda: nn.InstanceNorm2d(8, affine=True), nn.SiLU), _image(2, 8, 6, 6)),
    "batch_norm": (_normed(lambda: nn.BatchNorm2d(8), nn.SiLU), _image(2, 8, 6, 6)),
    "layer_norm": (lambda: nn.Sequential(nn.Linear(6, 6), nn.LayerNorm(6), nn.SiLU()), _image(4, 5, 6)),
    "layer_norm-planes": (lambda: nn.Sequential(nn.LayerNorm((6, 6)), nn.Tanh()), _image(2, 8, 6, 6)),
    "rms_norm": (lambda: nn.Sequential(nn.Linear(6, 6), nn.RMSNorm(6), nn.SiLU()), _image(4, 5, 6)),
    "convolutions": (lambda: nn.Sequential(nn.Conv1d(4, 6, 3), nn.Softplus(), nn.ConvTranspose1d(6, 2, 3)), _image(2, 4, 9)),
    "attention": (lambda: _Attention(False), _image(2, 6, 8)),
    "attention-causal": (lambda: _Attention(True), _image(2, 6, 8)),
    "multihead": (lambda: nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True), _image(2, 5, 8)),
    "lstm": (lambda: _First(nn.LSTM(4, 6, batch_first=True)), _image(2, 5, 4)),
    "gru": (lambda: _First(nn.GRU(4, 6)), _image(5, 2, 4)),
    "embedding": (lambda: nn.Sequential(nn.Embedding(11, 6), nn.LayerNorm(6), nn.SiLU()), _words),
    "embedding_bag": (lambda: nn.Sequential(nn.EmbeddingBag(11, 6), nn.SiLU()), _words),
    "cross_entropy": (_loss(F.cross_entropy, torch.tensor([0, 3, 1, 2, 2])), _image(5, 6)),
    "smooth_l1": (_loss(F.smooth_l1_loss, torch.linspace(-1, 1, 20).view(5, 4)), _image(5, 6)),
    "bce": (_loss(F.binary_cross_entropy_with_logits, torch.linspace(0, 1, 20).view(5, 4)), _image(5, 6)),
}  # fmt: skip


def run(
    name: str, device: str, between: Callable[[torch.Tensor], object]
) -> dict[str, torch.Tensor]:
    """Returns loss, gradients and buffers; `between` runs before the backward pass."""
    layer, batch = MODELS[name]
    torch.manual_seed(5)
    model, x = layer().to(device), batch().to(device)
    if x.is_floating_point():
        x.requires_grad_()
    y = model(x)
    weights = torch.linspace(-0.5, 1.5, y.numel()).view(y.shape).to(device)
    loss = (y * weights).sum()
    between(loss)
    loss.backward()
    found = {"loss": loss.detach(), **dict(model.named_buffers())}
    found |= {key: p.grad for key, p in model.named_parameters()}
    if x.grad is not None:
        found["x"] = x.grad
    return {key: value.cpu() for key, value in found.items()}


def _assert_equal(name: str, between: Callable[[torch.Tensor], object]) -> None:
    expected = run(name, "cpu", lambda loss: None)
    found = run(name, "lazy", between)
    assert found.keys() == expected.keys()
    for key, wanted in expected.items():
        assert_close(found[key], wanted, 1e-4, 2e-5 * largest(wanted, 1e-3), key)


BETWEEN = {
    "read": lambda loss: loss.item(),
    "step": lambda loss: torch_ltc.mark_step(),
}


@pytest.mark.parametrize("between", BETWEEN)
@pytest.mark.parametrize("name", MODELS)
def test_backward_is_a_program(name: str, between: str) -> None:
    _assert_equal(name, BETWEEN[between])


@pytest.mark.parametrize("name", MODELS)
def test_programs_end_anywhere(name: str) -> None:
    """Programs also end in the middle of a backward pass, where no Python line runs."""
    length = random.Random(name).randint(2, 12)
    with torch_ltc.config(max_trace_ops=length):
        _assert_equal(name, lambda loss: None)
