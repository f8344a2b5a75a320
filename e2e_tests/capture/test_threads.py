"""Captured steps while other threads train."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable

import pytest
import torch
import torch_ltc
from comparison import assert_close
from torch import Tensor, nn


def _train(
    seed: int, steps: int, is_captured: bool, answers: dict[int, list[float]]
) -> None:
    generator = torch.Generator().manual_seed(seed)
    model = nn.Linear(8, 8)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.rand(parameter.shape, generator=generator))
    model.to("lazy")
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

    def step(x: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    run: Callable[[Tensor], Tensor] = torch_ltc.capture(step) if is_captured else step
    inputs = (torch.rand(4, 8, generator=generator).to("lazy") for _ in range(steps))
    answers[seed] = [run(x).item() for x in inputs]
    if is_captured:
        assert run.replays > steps // 2, dict(run.fallbacks)


@pytest.fixture
def _often_switched():
    before = sys.getswitchinterval()
    sys.setswitchinterval(2e-4)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("_often_switched")
@pytest.mark.parametrize("captured", [(0,), (0, 1, 2)])
def test_threads_that_step_while_another_records(captured: tuple[int, ...]) -> None:
    expected, answers = {}, {}
    for seed in range(3):
        _train(seed, 30, seed in captured, expected)
    threads = [
        threading.Thread(target=_train, args=(seed, 30, seed in captured, answers))
        for seed in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers) == [0, 1, 2]  # no thread failed
    for seed, losses in expected.items():
        assert_close(answers[seed], losses, rtol=1e-4, atol=1e-6)
