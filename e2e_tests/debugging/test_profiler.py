"""`torch.profiler` shows the phases and commands of lazy programs, with ATen names."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
import torch_ltc
from torch import nn


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(12, 11), nn.Tanh())
        self.image = nn.Conv2d(1, 2, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.body(x).square().mean()
        return y + self.image(x.reshape(1, 1, 7, 12)).mean()


def train(steps: int) -> None:
    model = Model().to("lazy")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    inputs = torch.randn(7, 12).to("lazy")
    for _ in range(steps):
        optimizer.zero_grad()
        loss = model(inputs)
        loss.backward()
        optimizer.step()
    (model(inputs) * 2).item()
    torch_ltc.wait_device_ops()


@pytest.fixture(scope="module")
def profile() -> Iterator[torch.profiler.profile]:
    with torch_ltc.config(source_info=True), torch.profiler.profile() as result:
        train(3)
    yield result


def test_table(profile: torch.profiler.profile) -> None:
    names = {event.key for event in profile.key_averages()}
    ours = sorted(name for name in names if name.startswith("torch_ltc::"))
    # Phases: compile, schedule, execute, sync.
    for phase in ("compile", "schedule for mark_step", "execute "):
        assert any(name.startswith(f"torch_ltc::{phase}") for name in ours), ours
    assert "torch_ltc::sync for aten::_local_scalar_dense" in names
    # Traced ops, under their own names.
    assert {"aten::tanh", "aten::addmm"} & names
    # Commands: ATen names, shapes, module paths.
    tanh = [name for name in ours if "aten.tanh" in name]
    assert any("f32[7,11]" in name and "(body" in name for name in tanh), ours
    products = [name for name in ours if "7x11x12" in name or "aten.mm" in name]
    assert products, ours
    convolution = [name for name in ours if "convolution" in name]
    assert any("f32[1,2,5,10]" in name and "(image)" in name for name in convolution)


def test_chrome_trace(profile: torch.profiler.profile, tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    profile.export_chrome_trace(str(path))
    events = [e for e in json.loads(path.read_text())["traceEvents"] if "dur" in e]
    runs = [e for e in events if e["name"].startswith("torch_ltc::execute ")]
    commands = [e for e in events if e["name"].startswith("torch_ltc::aten.")]
    assert runs and commands
    for command in commands:  # each inside a run, on the worker thread
        assert any(
            run["tid"] == command["tid"]
            and run["ts"] <= command["ts"]
            and command["ts"] + command["dur"] <= run["ts"] + run["dur"] + 1
            for run in runs
        )
    tracing = {e["tid"] for e in events if e["name"] == "aten::tanh"}
    assert tracing and tracing.isdisjoint({run["tid"] for run in runs})


def test_nothing_is_recorded_without_a_profiler(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING):
        train(1)
    assert not caplog.records
