"""torch.inference_mode: models, views of normal tensors, writes. Its results are
normal tensors on device `lazy`, which may take part in training later."""

from __future__ import annotations

import pytest
import torch
from semantics.comparison import compare
from torch import nn
from torch.nn import functional as F


def test_models_run() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3), nn.Flatten(), nn.LayerNorm(12),
        nn.Linear(12, 4),
    ).eval()  # fmt: skip
    recurrent = nn.LSTM(4, 3)
    x = torch.randn(5, 2, 4, 4)
    with torch.no_grad():
        y = model(x)
        expected = [y, recurrent(y)[0]]
    model.to("lazy")
    recurrent.to("lazy")
    with torch.inference_mode():
        z = model(x.to("lazy"))
        results = [z, recurrent(z)[0]]
    for result, wanted in zip(results, expected, strict=True):
        torch.testing.assert_close(result.cpu(), wanted, rtol=1e-4, atol=1e-5)


def test_views_of_normal_tensors() -> None:
    def program(x: torch.Tensor) -> list[torch.Tensor]:
        base = x.clone()
        with torch.inference_mode():
            view = base[1:]
            view.mul_(2)
            rows = base.t().unbind()
            rows[0].add_(1)
            inner = (x * 2).view(-1)
            inner[0] = 9
        base.add_(1)
        return [base, view, *rows, inner]

    compare(program, torch.arange(6.0).reshape(3, 2))


def test_training_goes_on_after_it() -> None:
    def program(x: torch.Tensor) -> list[torch.Tensor]:
        weight = x.clone().requires_grad_()
        with torch.inference_mode():
            (weight.t() @ x).sum()
        (weight.t() @ x).sum().backward()
        return [weight.grad]

    compare(program, torch.arange(6.0).reshape(3, 2))


#: What PyTorch computes by writes through views of a new tensor, and by other ops.
COMPOSITES = {
    "circular padding": lambda x: F.pad(x, (1, 2, 1, 0), mode="circular"),
    "circular padding of one dimension": lambda x: F.pad(x[0], (2, 1), mode="circular"),
    "block_diag": lambda x: torch.block_diag(x[0, 0], x[0, 1]),
    "repeat": lambda x: x.repeat(2, 1, 2, 1),
    "fold": lambda x: F.fold(F.unfold(x, 2), (4, 5), 2),
    "cov": lambda x: torch.cov(x[0, 0]),
    "stft": lambda x: torch.stft(x.flatten(), 8, return_complex=True).abs(),
}  # fmt: skip


@pytest.mark.parametrize("name", COMPOSITES)
def test_composite_ops_have_eagers_values(name: str) -> None:
    x = torch.linspace(-1, 2, 40).reshape(1, 2, 4, 5)
    with torch.inference_mode():
        result = COMPOSITES[name](x.to("lazy"))
        torch.testing.assert_close(result.cpu(), COMPOSITES[name](x))
