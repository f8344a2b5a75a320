"""Steps that read values are traced in each call."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
import torch_ltc


def _read_branch(x: torch.Tensor) -> torch.Tensor:
    total = (x * 2).sum()
    return total + 100 if total.item() > 10 else total


def _read_argument(x: torch.Tensor) -> torch.Tensor:
    return x + 1 if bool(x.sum() > 10) else x - 1


def _read_twin(x: torch.Tensor) -> torch.Tensor:
    result = x * 2
    return result if math.isnan(result.sum().item()) else result.clone()


def _read_for_result(x: torch.Tensor) -> float:
    return (x > 0).sum().item()


READS = {
    "branch": _read_branch,
    "argument": _read_argument,
    "branch with one program": _read_twin,
    "result": _read_for_result,
    "list": lambda x: (x * 2).tolist(),
    "copy": lambda x: (x * 2).cpu(),
    "array": lambda x: float((x * 2).cpu().numpy().sum()),
    "truth": lambda x: bool((x > 0).all()),
    "value of an argument": lambda x: (x * 2, x[0].item()),
    "memory": lambda x: (x * 2, int(x.data_ptr() != 0)),
}


@pytest.mark.parametrize("kind", READS)
def test_a_read_at_any_place_is_repeated(kind: str) -> None:
    """A replay would return what the recorded call read, also if the read ends the step."""
    captured = torch_ltc.capture(READS[kind])
    values = [torch.ones(3), torch.ones(3), torch.ones(3), -torch.ones(3)]
    values += [torch.full((3,), 9.0), torch.full((3,), math.nan), torch.ones(3)]
    for value in values:
        x = value.to("lazy")
        torch_ltc.mark_step()
        torch.testing.assert_close(
            captured(x), READS[kind](value), equal_nan=True, check_device=False
        )
    assert captured.replays == 0
    assert all("reads values" in text for text in captured.fallbacks), (
        captured.fallbacks
    )
    assert any(f"{Path(__file__).name}:" in text for text in captured.fallbacks)
