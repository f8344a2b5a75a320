"""Ops of wrapper subclasses on device lazy: the tensor inside a result is a functional
wrapper, as users hold it, and has eager's values."""

from __future__ import annotations

import pytest
import torch
from sweeps.exclusions import is_excluded
from sweeps.opinfo import entries, entry_name
from sweeps.wrapper_subclasses import Wrapper, failures

PARTS = 8


@pytest.mark.parametrize("part", range(PARTS))
def test_ops(part):
    ops = [op for op in entries(torch.float32) if not is_excluded(entry_name(op))]
    wrong = {entry_name(op): list(failures(op, 2)) for op in ops[part::PARTS]}
    assert not any(wrong.values()), {k: v for k, v in wrong.items() if v}


def test_an_optimizer_over_wrappers():
    """Its parameters are wrappers, which it updates in place."""

    def train(device: str) -> list[torch.Tensor]:
        torch.manual_seed(1)
        start = torch.randn(4, 3).to(device)
        weight = torch.nn.Parameter(Wrapper(start))
        optimizer = torch.optim.Adam([weight], lr=0.1, foreach=True)
        for _ in range(3):
            weight.grad = Wrapper(weight.detach().inner * 2)
            optimizer.step()
        assert weight.inner.untyped_storage().data_ptr() == (
            start.untyped_storage().data_ptr()
        )
        return [weight.detach().inner.cpu(), start.cpu()]

    for ours, eager in zip(train("lazy"), train("cpu"), strict=True):
        torch.testing.assert_close(ours, eager)
