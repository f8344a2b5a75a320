"""A captured function whose calls seldom repeat a program is soon traced as without
`capture`, and captured again once its calls repeat a program."""

from __future__ import annotations

import logging

import pytest
import torch
import torch_ltc
from torch_ltc._capture import capture as module


@pytest.fixture
def recordings(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Returns a list of the recorded calls' indices, which grows during the test."""
    made: list[int] = []
    record = module.Captured._record

    def count(self, *arguments):
        made.append(self.traces + self.replays)
        return record(self, *arguments)

    monkeypatch.setattr(module.Captured, "_record", count)
    return made


@torch_ltc.capture
def total(x: torch.Tensor, negated: bool) -> torch.Tensor:
    return -x.square().sum() if negated else x.square().sum()


def of_rank(rank: int) -> torch.Tensor:
    """A tensor with 2 ** rank elements; tensors of two ranks need two programs."""
    return torch.ones((2,) * rank, device="lazy")


@pytest.mark.parametrize("varying", ["rank", "argument"])
def test_recordings_of_calls_without_repeats(
    recordings: list[int], varying: str, caplog: pytest.LogCaptureFixture
) -> None:
    step = torch_ltc.capture(total._function)
    with caplog.at_level(logging.WARNING, "torch_ltc"):
        for i in range(200):
            rank, negated = (1 + i % 7, False) if varying == "rank" else (2, i % 2 == 1)
            result = step(of_rank(rank), negated)
            assert result.item() == (-(2**rank) if negated else 2**rank)
    assert step.replays == 0
    # Pauses of 16, 32 and 64 calls, each followed by two recordings.
    assert recordings == [*range(16), 32, 33, 66, 67, 132, 133]
    warnings = [r for r in caplog.records if "seldom repeat" in r.getMessage()]
    assert len(warnings) == 1
    (reason,) = step.fallbacks
    assert step.fallbacks[reason] == 200 - len(recordings)


def test_calls_that_repeat_at_last(recordings: list[int]) -> None:
    step = torch_ltc.capture(total._function)
    for i in range(30):
        step(of_rank(1 + i % 7), False)
    for _ in range(200):
        assert step(of_rank(9), False).item() == 2**9
    assert recordings == [*range(16), 32, 33]
    assert step.replays == 200 - 4


def test_replays_pay_for_recordings(recordings: list[int]) -> None:
    """If each epoch ends with a call that needs another program, three calls of an epoch
    are recorded and four are replayed."""
    step = torch_ltc.capture(total._function)
    for _ in range(30):
        for rank in [3] * 6 + [2]:
            assert step(of_rank(rank), False).item() == 2**rank
    assert step.replays == 30 * 4
    assert len(recordings) == 30 * 3
