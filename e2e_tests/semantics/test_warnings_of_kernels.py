"""A kernel's warning reaches the user once, as a Python warning, and steps don't print it."""

from __future__ import annotations

import pytest
import torch
import torch_ltc


#: A call that equals one of an earlier step isn't checked again, so the lengths differ.
@pytest.mark.parametrize(
    ("tier", "reads", "first"),
    [
        ("interpret", False, 3),
        ("interpret", True, 13),
        ("compile", False, 23),
        ("compile", True, 33),
    ],
)
def test_a_step_does_not_repeat_the_warning_of_a_call(
    tier: str,
    reads: bool,
    first: int,
    capfd: pytest.CaptureFixture,
    recwarn: pytest.WarningsRecorder,
) -> None:
    with torch_ltc.config(tier=tier):
        for length in range(first, first + 3):
            y = torch.ones(length, 1, device="lazy").std(1)
            if not reads:
                torch_ltc.mark_step()
            assert y.isnan().all()
    assert {str(warning.message).partition(" ")[0] for warning in recwarn} == {"std():"}
    assert {warning.filename for warning in recwarn} == {__file__}
    assert len(recwarn) <= 3
    assert "degrees of freedom" not in capfd.readouterr().err
