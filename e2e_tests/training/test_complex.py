"""Models that compute with complex numbers train as in eager, in one program a step, and in
few programs for all sizes."""

from __future__ import annotations

import pytest
import torch
import torch_ltc
from comparison import assert_close
from counting import counting, fallback_names, sync_names
from torch import nn

SIZES = [(2, 12), (2, 12), (3, 9), (2, 10), (5, 7), (4, 14), (2, 13), (3, 16)]


class Rotary(nn.Module):
    """Attention whose queries and keys are rotated as complex numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.projection = nn.Linear(16, 48)
        frequencies = torch.outer(torch.arange(32.0), 10 ** -torch.linspace(0, 2, 4))
        self.register_buffer("frequencies", frequencies)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        angles = self.frequencies[: x.shape[1]]
        turns = torch.polar(torch.ones_like(angles), angles)[:, None]
        heads = self.projection(x).unflatten(-1, (3, 2, 8)).unbind(2)

        def turned(head: torch.Tensor) -> torch.Tensor:
            numbers = torch.view_as_complex(head.unflatten(-1, (-1, 2)))
            return torch.view_as_real(numbers * turns).flatten(-2)

        query, key = turned(heads[0]), turned(heads[1])
        return nn.functional.scaled_dot_product_attention(
            query.transpose(1, 2), key.transpose(1, 2), heads[2].transpose(1, 2)
        )


class Spectral(nn.Module):
    """A Fourier layer: complex weights for the lowest frequencies."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(16, 16, 3, dtype=torch.cfloat) / 16)
        self.bias = nn.Parameter(torch.zeros(16, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.transpose(1, 2)
        spectrum = torch.fft.rfft(x)
        mixed = torch.zeros_like(spectrum)
        mixed[..., :3] = torch.einsum("bix,iox->box", spectrum[..., :3], self.weight)
        y = torch.fft.irfft(mixed, n=x.shape[-1])
        return torch.tanh(y + self.bias) + spectrum.abs().mean()


class Waves(nn.Module):
    """A convolution whose output is compared by its spectrogram."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution = nn.Conv1d(16, 2, 3, padding=1)
        self.register_buffer("window", torch.hann_window(8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.convolution(x.transpose(1, 2)).flatten(1)
        spectrogram = torch.stft(y, 8, 4, window=self.window, return_complex=True)
        return spectrogram.abs() * torch.cos(spectrogram.angle())


class Products(nn.Module):
    """A complex linear layer with a nonlinearity on the magnitudes."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(16, 8, dtype=torch.cfloat) / 4)
        self.bias = nn.Parameter(torch.randn(8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.complex(x, x.roll(1, -1)) @ self.weight
        y = torch.relu(y.abs() + self.bias) * torch.exp(1j * y.angle())
        return (y * y.conj()).real + y.imag


MODELS = [Rotary, Spectral, Waves, Products]


def train(model: type[nn.Module], device: str, sizes) -> list[torch.Tensor]:
    torch.manual_seed(0)
    trained = model().to(device)
    optimizer = torch.optim.Adam(trained.parameters(), 0.01)
    losses = []
    for batch, length in sizes:
        x = torch.randn(batch, length, 16).to(device)
        loss = trained(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(trained.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.detach())
        torch_ltc.mark_step(wait=True)
    return [*losses, *(p.detach() for p in trained.parameters())]


@pytest.mark.parametrize("tier", ["compile", "interpret"])
@pytest.mark.parametrize("model", MODELS)
def test_one_program_a_step(model: type[nn.Module], tier: str) -> None:
    expected = train(model, "cpu", SIZES[:1] * 4)
    torch_ltc.reset_metrics()
    with torch_ltc.config(tier=tier), counting() as counts:
        results = train(model, "lazy", SIZES[:1] * 4)
    assert counts.fallback_calls == 0, fallback_names()
    assert counts.implicit_syncs == 0, sync_names()
    assert counts.executions == 4
    for number, (result, wanted) in enumerate(zip(results, expected)):
        assert_close(result, wanted, 1e-4, 1e-5, f"result {number}")


@pytest.mark.parametrize("model", MODELS)
def test_all_sizes_share_programs(model: type[nn.Module]) -> None:
    expected = train(model, "cpu", SIZES)
    with counting() as counts:
        results = train(model, "lazy", SIZES)
    assert counts.fallback_calls == 0, fallback_names()
    assert counts.compilations <= 6
    for number, (result, wanted) in enumerate(zip(results, expected)):
        assert_close(result, wanted, 1e-4, 1e-5, f"result {number}")
