"""Networks over images whose number, height and width all vary compile a few programs: the
numbers of pixels and of pairs of patches are products of up to five varying sizes."""

from __future__ import annotations

import copy
import random

import pytest
import torch
import torch.nn.functional as F
import torch_ltc
from backend.fresh_programs import without_programs  # noqa: F401
from comparison import assert_close
from torch import Tensor, nn

STEPS = 14
#: See test_general_loops.py.
MOST_COMPILATIONS = 4


class Autoencoder(nn.Module):
    """Halves the sizes and doubles them again."""

    def __init__(self) -> None:
        super().__init__()
        self.down = nn.Conv2d(3, 8, 3, stride=2, padding=1)
        self.norm = nn.GroupNorm(2, 8)
        self.up = nn.ConvTranspose2d(8, 3, 4, stride=2, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        y = self.up(F.silu(self.norm(self.down(x))))
        return F.mse_loss(torch.cat([y, x], 1), torch.cat([x, y], 1))


class ImageTransformer(nn.Module):
    """Attends between patches and a class token, with positions from a table."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, 16, 4, stride=4)
        self.layer = nn.TransformerEncoderLayer(16, 2, 32, 0.0, batch_first=True)
        self.token = nn.Parameter(torch.randn(1, 1, 16))
        self.positions = nn.Parameter(torch.randn(1, 101, 16))

    def forward(self, x: Tensor) -> Tensor:
        y = self.patches(x).flatten(2).transpose(1, 2)
        y = torch.cat([self.token.expand(len(x), -1, -1), y], 1)
        return self.layer(y + self.positions[:, : y.size(1)])[:, 0].square().mean()


class Upsampler(nn.Module):
    """A transposed convolution with a varying stride."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(3, 4, 4, 4))

    def forward(self, x: Tensor) -> Tensor:
        stride = 2 + x.size(2) % 3
        y = F.conv_transpose2d(x[:, :, ::4, ::4], self.weight, stride=stride)
        return y.square().mean()


@pytest.mark.parametrize("network", [Autoencoder, ImageTransformer, Upsampler])
def test_images_of_any_sizes(network: type[nn.Module]) -> None:
    torch.manual_seed(0)
    eager = network()
    lazy = copy.deepcopy(eager).to("lazy")
    torch.lazy.synchronize()
    torch_ltc.reset_metrics()
    draw = random.Random(0)
    for _ in range(STEPS):
        sizes = draw.randint(2, 6), 3, 4 * draw.randint(3, 9), 4 * draw.randint(3, 9)
        x = torch.randn(sizes)
        results = []
        for model, device in ((lazy, "lazy"), (eager, "cpu")):
            model.zero_grad()
            loss = model(x.to(device))
            loss.backward()
            torch_ltc.mark_step()
            gradients = [parameter.grad for parameter in model.parameters()]
            results.append([value.detach().cpu() for value in (loss, *gradients)])
        assert_close(*results, rtol=1e-4, atol=1e-4)
    assert torch_ltc.metrics()["compilations"] <= MOST_COMPILATIONS


@pytest.mark.parametrize("height", range(7, 18, 2))
def test_numbers_of_blocks_in_proportion(height: int) -> None:
    """The kernel of the transposed convolution's bias splits each of four channels, and the
    kernel of the relu before it splits twice as many elements in a row. At large sizes,
    twice the latter's number of blocks is the former's number of iterations, at small
    sizes it isn't."""
    torch.manual_seed(0)
    first, second = nn.Conv2d(1, 4, 3, padding=1), nn.Conv2d(4, 8, 3, padding=1)
    up = nn.ConvTranspose2d(8, 4, 2, stride=2)

    def run(x: Tensor, modules: list[nn.Module]) -> Tensor:
        y = modules[0](x).relu()
        z = modules[2](modules[1](F.max_pool2d(y, 2)).relu())
        return torch.cat([y, F.pad(z, (0, 0, 0, 1))], 1)

    modules = [first, second, up]
    lazy = [copy.deepcopy(module).to("lazy") for module in modules]
    with torch.no_grad(), torch_ltc.config(tier="compile"):
        for width in (30, 26, 28, 22):
            x = torch.randn(1, 1, height, width)
            results = run(x.to("lazy"), lazy)
            assert_close(results, run(x, modules), rtol=1e-4, atol=1e-5)
