"""Running one exported step repeatedly equals the training from which it was exported."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch_ltc
from comparison import assert_close
from torch import nn
from torch_ltc._export.manifest import manifest_from_bytes, read_manifest

STEPS = 20
OPTIMIZERS: dict[str, Callable[[Any], torch.optim.Optimizer]] = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.05),
    "momentum": lambda p: torch.optim.SGD(
        p, lr=0.05, momentum=0.9, nesterov=True, weight_decay=1e-2
    ),
    "adam": lambda p: torch.optim.Adam(p, lr=1e-2, weight_decay=1e-2),
    "adamw": lambda p: torch.optim.AdamW(p, lr=1e-2),
    "amsgrad": lambda p: torch.optim.AdamW(p, lr=1e-2, amsgrad=True),
    "two groups": lambda p: torch.optim.AdamW(
        [{"params": p[:2], "lr": 3e-3}, {"params": p[2:]}], lr=1e-2
    ),
    "rmsprop": lambda p: torch.optim.RMSprop(p, lr=1e-3, momentum=0.5),
    "adagrad": lambda p: torch.optim.Adagrad(p, lr=1e-2),
    "adagrad decayed": lambda p: torch.optim.Adagrad(p, lr=1e-2, lr_decay=0.1),
    "adadelta": lambda p: torch.optim.Adadelta(p, lr=0.5),
}


class Training:
    def __init__(self, device: str, optimizer: str, dropout: float = 0.3) -> None:
        torch.manual_seed(0)
        self.model = nn.Sequential(
            nn.Linear(
                5, 8, bias=False
            ),  # before batch norm, a bias's gradient is noise
            nn.BatchNorm1d(8),
            nn.Tanh(),
            nn.Dropout(dropout),
            nn.Linear(8, 2),
        ).to(device)
        self.optimizer = OPTIMIZERS[optimizer](list(self.model.parameters()))
        torch.manual_seed(1)

    def step(self, x: torch.Tensor) -> torch.Tensor:
        self.optimizer.zero_grad()
        loss = (self.model(x) - 1).square().mean()
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 0.5)
        self.optimizer.step()
        return loss.detach()


def batches() -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(2)
    return [torch.randn(6, 5, generator=generator) for _ in range(STEPS)]


def rates(training: Training, step: int) -> list[float]:
    return [g["initial"] * 0.9**step for g in training.optimizer.param_groups]


def eager_losses(optimizer: str) -> tuple[list[torch.Tensor], Training]:
    training = Training("cpu", optimizer)
    for group in training.optimizer.param_groups:
        group["initial"] = group["lr"]
    losses = []
    training.step(batches()[0])
    torch.manual_seed(3)
    for number, x in enumerate(batches()):
        for group, rate in zip(
            training.optimizer.param_groups, rates(training, number)
        ):
            group["lr"] = rate
        losses.append(training.step(x))
    return losses, training


@pytest.mark.parametrize("dialect", ["torch", "linalg"])
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_follows_eager(optimizer: str, dialect: str) -> None:
    expected, eager = eager_losses(optimizer)
    training = Training("lazy", optimizer)
    initial = [group["lr"] for group in training.optimizer.param_groups]
    # The exported values include the random numbers of the trace; `next` generates new
    # ones.
    exported = torch_ltc.export_step(
        training.step,
        (batches()[0],),
        module=training.model,
        optimizer=training.optimizer,
        dialect=dialect,
    )
    names = {row["name"]: number for number, row in enumerate(exported.inputs)}
    assert [row["role"] for row in exported.inputs].count("random") == 1
    assert "constant" not in {row["role"] for row in exported.inputs}
    values = list(exported.values)
    torch.manual_seed(3)
    for number, x in enumerate(batches()):
        values[names["arg0"]] = x
        drawn = exported.next(values, [])
        numbers = {"lr": initial[0] * 0.9**number}
        if len(initial) > 1:
            numbers["lr_1"] = initial[1] * 0.9**number
        if "step" in exported.hyperparameters:
            numbers["step"] = number + 2
        results = exported.run(drawn, **numbers)
        assert_close(results[0], expected[number], 2e-4, 1e-5, f"step {number}")
        for result, row in zip(results, exported.outputs):
            if row["updates"] >= 0:
                drawn[row["updates"]] = result
        values = drawn
    state = eager.model.state_dict()
    for name, value in state.items():
        if name in names:
            assert_close(values[names[name]], value, rtol=1e-3, atol=1e-4, what=name)


def test_numbers_of_one_step_are_reported(caplog: pytest.LogCaptureFixture) -> None:
    training = Training("lazy", "sgd")
    training.optimizer = torch.optim.NAdam(training.model.parameters(), lr=1e-2)
    torch_ltc.export_step(
        training.step,
        (batches()[0],),
        module=training.model,
        optimizer=training.optimizer,
    )
    assert "NAdam stores mu_product, step on the CPU" in caplog.text


def test_training_continues_after_the_export() -> None:
    """An export runs two steps of the training (a warm-up and the traced step). Training
    then continues as in eager, with the same hyperparameters and step counts."""
    runs = []
    for device in ("cpu", "lazy"):
        training = Training(device, "adamw", dropout=0.0)
        x = batches()[0].to(device)
        if device == "lazy":
            torch_ltc.export_step(
                training.step, (x,), module=training.model, optimizer=training.optimizer
            )
            assert training.optimizer.param_groups[0]["lr"] == 1e-2
        else:
            training.step(x), training.step(x)
        runs.append([training.step(x).cpu() for _ in range(4)])
        steps = {s["step"].item() for s in training.optimizer.state.values()}
        assert steps == {6.0}
    assert_close(*runs, rtol=1e-4, atol=1e-6)


def test_the_manifest_names_numbers(tmp_path: Path) -> None:
    training = Training("lazy", "adamw")
    exported = torch_ltc.export_step(
        training.step,
        (batches()[0],),
        module=training.model,
        optimizer=training.optimizer,
    )
    exported.save(tmp_path)
    manifest = read_manifest(tmp_path)
    assert {row["name"]: row["value"] for row in manifest["hyperparameters"]}[
        "lr"
    ] == 1e-2
    formulas = {row["formula"] for row in manifest["scalars"]}
    assert "1 - lr * weight_decay" in formulas
    for row in manifest["scalars"]:
        assert row["role"] == ("hyperparameter" if row["formula"] else "constant")
    (random,) = (row for row in manifest["inputs"] if row["role"] == "random")
    assert random["distribution"] == "bernoulli(0.69999999999999996)"
    steps = [row for row in manifest["inputs"] if row["name"].endswith(".step")]
    assert steps and all(row["role"] == "state" for row in steps)
    message = manifest_from_bytes((tmp_path / "manifest.pb").read_bytes())
    assert message["hyperparameters"] == manifest["hyperparameters"]
    with pytest.raises(ValueError, match=r"no hyperparameter 'rate'; it has: .*lr"):
        exported.run(rate=1.0)


@pytest.mark.parametrize("dialect", ["torch", "linalg", "tosa", "stablehlo"])
@pytest.mark.parametrize("number", [math.inf, -math.inf, math.nan])
def test_numbers_that_json_does_not_have(
    number: float, dialect: str, tmp_path: Path
) -> None:
    exported = torch_ltc.export(
        lambda x: x.masked_fill(x > 0, number), (torch.ones(3),), dialect=dialect
    )
    exported.save(tmp_path)
    assert "Infinity," not in (tmp_path / "manifest.json").read_text()
    (saved,) = (
        row["value"]
        for row in read_manifest(tmp_path)["scalars"]
        if not math.isfinite(row["value"])
    )
    assert str(saved) == str(number)
    message = manifest_from_bytes((tmp_path / "manifest.pb").read_bytes())
    assert str(number) in {str(row["value"]) for row in message["scalars"]}
    if dialect != "stablehlo":
        (result,) = exported.run()
        assert_close(result, torch.full((3,), number), equal_nan=True)


@pytest.mark.parametrize("dialect", ["torch", "linalg", "tosa", "stablehlo"])
def test_causal_attention(dialect: str, tmp_path: Path) -> None:
    attention = nn.functional.scaled_dot_product_attention
    x = torch.linspace(-1, 1, 24).reshape(1, 2, 3, 4)
    exported = torch_ltc.export(
        lambda x: attention(x, x, x, is_causal=True), (x,), dialect=dialect
    )
    exported.save(tmp_path)
    if dialect != "stablehlo":
        assert_close(
            exported.run()[0], attention(x, x, x, is_causal=True), rtol=1e-4, atol=1e-5
        )
