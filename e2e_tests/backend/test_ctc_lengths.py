"""The lengths of a CTC loss may be on the CPU, as with other devices."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F


@pytest.mark.parametrize("lengths_on", ["cpu", "lazy"])
@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_lengths(lengths_on, reduction) -> None:
    scores = torch.randn(6, 2, 5)
    targets = torch.tensor([[1, 2], [2, 3]])
    lengths = torch.tensor([6, 5]), torch.tensor([2, 1])
    results = {}
    for device in ("cpu", "lazy"):
        x = scores.clone().to(device).requires_grad_()
        place = lengths_on if device == "lazy" else "cpu"
        loss = F.ctc_loss(
            x.log_softmax(2),
            targets.to(device),
            *(values.to(place) for values in lengths),
            reduction=reduction,
        )
        loss.backward()
        results[device] = loss.detach().cpu(), x.grad.cpu()
    torch.testing.assert_close(results["lazy"], results["cpu"])
