"""Programs for all sizes whose numbers depend on the sizes: factors, bounds, ends of
slices, scales."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
import torch_ltc
from comparison import assert_close
from torch import nn
from torch.export import Dim
from torch.nn import functional as F
from torch_ltc._export.size_formulas import evaluate, find_formula

batch, length = Dim("batch", min=2), Dim("length", min=4)

#: Functions of a tensor of shape (batch, length, 8).
FUNCTIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "factor": lambda x: x * x.shape[1],
    "divisor": lambda x: x / x.shape[1],
    "divisor of a batch": lambda x: F.kl_div(x, x.softmax(1), reduction="batchmean"),
    "root": lambda x: x @ x.mT / math.sqrt(x.shape[1]),
    "logarithm": lambda x: x * math.log(x.shape[1]),
    "product of sizes": lambda x: x.sum() / (x.shape[0] * x.shape[1]),
    "quotient of sizes": lambda x: x * (x.shape[0] / x.shape[1]),
    "rounded quotient": lambda x: x + x.shape[1] // 3,
    "difference": lambda x: x * (x.shape[1] - 0.5),
    "exponent": lambda x: x.abs() ** (1 / x.shape[1]),
    "alpha": lambda x: torch.add(x, x, alpha=x.shape[1]),
    "fill": lambda x: x.masked_fill(x > 0, x.shape[1]),
    "full": lambda x: x + torch.full_like(x, x.shape[1]),
    "bound": lambda x: (x * 9).clamp(max=x.shape[1]),
    "bound of indices": lambda x: (x * 9).long().clamp(0, x.shape[1] - 1),
    "positions": lambda x: (
        x + (torch.arange(x.shape[1], device=x.device) / x.shape[1])[:, None]
    ),
    "first half": lambda x: x[:, : x.shape[1] // 2],
    "chunks": lambda x: x.chunk(2, 1)[0] * 2,
    "shift by half": lambda x: x.roll(x.shape[1] // 2, 1),
    "grid": lambda x: F.grid_sample(
        x[:, None], torch.rand(1, 4, 4, 2).to(x.device).expand(x.shape[0], -1, -1, -1),
        align_corners=False,
    ),
    "nearest": lambda x: F.interpolate(x[:, None], scale_factor=2),
    "nearest to a size": lambda x: F.interpolate(x[:, None], size=(20, 9)),
    "bilinear": lambda x: F.interpolate(x[:, None], scale_factor=2, mode="bilinear"),
    "bicubic": lambda x: F.interpolate(x[:, None], scale_factor=2, mode="bicubic"),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_numbers_follow_the_sizes(name: str) -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        torch.manual_seed(0)  # for constants
        return FUNCTIONS[name](x)

    example = torch.randn(3, 10, 8)
    exported = torch_ltc.export(
        function, (example,), dynamic_shapes=({0: batch, 1: length},)
    )
    for size in (3, 10), (2, 13), (5, 64), (7, 101):
        x = torch.randn(*size, 8)
        values = [
            x if row["role"] == "argument" else value
            for row, value in zip(exported.inputs, exported.values)
        ]
        assert_close(exported.run(values)[0], function(x), rtol=1e-4, atol=1e-5)


def test_the_manifest_has_formulas() -> None:
    exported = torch_ltc.export(
        lambda x: x / math.sqrt(x.shape[1]),
        (torch.randn(3, 10),),
        dynamic_shapes=({0: batch, 1: length},),
    )
    (row,) = exported.manifest()["scalars"]
    assert (row["role"], row["formula"]) == ("size", "sqrt(length)")


class Scores(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.out = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (self.out(x) @ x.mT / math.sqrt(x.shape[1])).softmax(-1)


def test_a_training_step() -> None:
    torch.manual_seed(0)
    model = Scores()
    lazy = Scores().to("lazy")
    lazy.load_state_dict(model.state_dict())
    optimizers = [torch.optim.SGD(m.parameters(), lr=0.1) for m in (lazy, model)]

    def step(x: torch.Tensor, m: nn.Module = lazy, number: int = 0) -> torch.Tensor:
        optimizers[number].zero_grad()
        loss = m(x).square().sum() / x.shape[0]
        loss.backward()
        optimizers[number].step()
        return loss

    example = torch.randn(3, 10, 8)
    exported = torch_ltc.export_step(
        step, (example,), module=lazy, optimizer=optimizers[0],
        dynamic_shapes=({0: batch, 1: length},),
    )  # fmt: skip
    x = torch.randn(5, 17, 8)
    model.load_state_dict({k: v.cpu() for k, v in lazy.state_dict().items()})
    states = dict(lazy.named_parameters())
    values = [
        x if row["role"] == "argument"
        else states[row["name"]].detach().cpu() if row["name"] in states else value
        for row, value in zip(exported.inputs, exported.values)
    ]  # fmt: skip
    results = dict(zip((row["name"] for row in exported.outputs), exported.run(values)))
    assert_close(results["result"], step(x, model, 1), rtol=1e-4, atol=1e-6)
    assert_close(results["out.weight"], model.out.weight, rtol=1e-4, atol=1e-6)


def test_a_tensor_from_the_sizes_is_rejected() -> None:
    with pytest.raises(ValueError, match=r"'constant1'.*depend on the sizes"):
        torch_ltc.export(
            lambda x: x + torch.tensor(float(x.shape[1])).to(x.device),
            (torch.randn(3, 10),),
            dynamic_shapes=({1: length},),
        )


def test_an_unknown_function_of_sizes_is_rejected() -> None:
    with pytest.raises(ValueError, match="isn't a known function"):
        torch_ltc.export(
            lambda x: x * math.sin(x.shape[1]),
            (torch.randn(3, 10),),
            dynamic_shapes=({1: length},),
        )


def test_steps_that_vary_are_rejected() -> None:
    with pytest.raises(ValueError, match=r"the number of steps of .*lstm varies"):
        torch_ltc.export(
            nn.LSTM(4, 3), (torch.randn(5, 2, 4),), dynamic_shapes=({0: length},)
        )


def test_derived_dims_without_their_root() -> None:
    half = Dim("half", min=2, max=40)
    exported = torch_ltc.export(
        lambda x: x.unflatten(1, (-1, 2)).mean(2),
        (torch.randn(3, 8),),
        dynamic_shapes=({1: 2 * half},),
    )
    x = torch.randn(3, 26)
    assert_close(exported.run([x])[0], x.unflatten(1, (-1, 2)).mean(2))
    with pytest.raises(ValueError, match="must be"):
        exported.run([torch.randn(3, 9)])

    exported = torch_ltc.export(
        torch.relu, (torch.randn(3, 8),), dynamic_shapes=({1: 2 * half},)
    )
    assert exported.symbols[0]["max"] == 80
    with pytest.raises(ValueError, match="Size 1 of 'arg0' is 9, but must be 8"):
        exported.run([torch.randn(3, 9)])


@pytest.mark.parametrize(
    "formula",
    ["n", "1 / (n * m)", "sqrt(m)", "log(n)", "-1 / sqrt(n)", "2 * n - 3", "n / m", "(m // 4)", "n / (n + 3)", "m * ((n + 1) // 2)"],
)  # fmt: skip
def test_formulas(formula: str) -> None:
    traces = [
        {"n": n, "m": m} for n, m in ((3, 11), (8, 30), (12, 21), (19, 44), (31, 50))
    ]
    found = find_formula([evaluate(formula, sizes) for sizes in traces], traces)
    for n, m in (2, 5), (100, 77):
        sizes = {"n": n, "m": m}
        assert evaluate(found, sizes) == pytest.approx(evaluate(formula, sizes))


def test_a_window_is_a_constant() -> None:
    """`hann_window` has no row in the op table, and reads no tensor."""

    def function(x: torch.Tensor) -> torch.Tensor:
        window = torch.hann_window(16, device=x.device)
        return torch.stft(x, 16, 4, window=window, return_complex=True).abs()

    exported = torch_ltc.export(function, (torch.randn(3, 64),))
    x = torch.randn(3, 64)
    values = [
        x if row["role"] == "argument" else value
        for row, value in zip(exported.inputs, exported.values)
    ]
    assert_close(exported.run(values)[0], function(x), rtol=1e-4, atol=1e-4)


def test_code_that_differs_at_a_bound() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return x * 2 if x.shape[0] > 100 else x + 1

    with pytest.raises(ValueError, match="Size 0 of 'arg0' can't be 200"):
        torch_ltc.export(
            function, (torch.randn(8),), dynamic_shapes=({0: Dim("n", max=200)},)
        )
    exported = torch_ltc.export(
        lambda x: x * 2 if x.shape[0] < 5 else x + 1,
        (torch.randn(8),),
        dynamic_shapes=({0: Dim("n")},),
    )
    assert exported.symbols[0]["min"] == 5
