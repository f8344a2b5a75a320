"""Long chains of views: a tensor of which a loop makes a view in each step."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
import torch
import torch_ltc
from comparison import assert_close
from torch import Tensor

View = Callable[[Tensor], Tensor]

# Views of matrices; each returns a matrix.
VIEWS: list[View] = [
    lambda x: x[:],
    lambda x: x.detach() if not x.requires_grad else x.view_as(x),
    lambda x: x.view(x.shape),
    lambda x: x.t(),
    lambda x: x.unsqueeze(1).squeeze(1),
    lambda x: x.transpose(0, 1).t(),
    lambda x: x.unflatten(0, (1, x.size(0))).flatten(0, 1),
    lambda x: x.as_strided(x.size(), x.stride()),
    lambda x: x.unbind(0)[0].unsqueeze(0).expand_as(x[:1]) if x.size(0) == 1 else x[:],
    lambda x: x[1:] if x.size(0) > 3 else x[:],
    lambda x: x[:, ::2] if x.size(1) > 5 else x[:],
    lambda x: x.narrow(1, 1, x.size(1) - 1) if x.size(1) > 3 else x[:],
]


def _chain(x: Tensor, seed: int) -> list[Tensor]:
    choose = random.Random(seed)
    views = [x]
    for _ in range(40):
        views.append(choose.choice(VIEWS)(views[-1]))
    return views


@pytest.mark.parametrize("seed", range(12))
def test_writes_reach_all_views(seed: int) -> None:
    results = []
    for device in ("cpu", "lazy"):
        choose = random.Random(seed)
        base = torch.arange(96.0, device=device).reshape(8, 12).clone()
        views = _chain(base, seed)
        for factor in (2, 3, 5):
            choose.choice(views).mul_(factor)
            choose.choice(views)[0].add_(factor)
            if factor == 3 and device == "lazy":
                torch_ltc.mark_step()
        results.append([(view.cpu(), view.stride()) for view in (base, *views)])
    for (ours, strides), (eager, expected) in zip(*reversed(results), strict=True):
        assert_close(ours, eager, rtol=0, atol=0)
        assert strides == expected


@pytest.mark.parametrize("seed", range(12))
def test_gradients(seed: int) -> None:
    results = []
    for device in ("cpu", "lazy"):
        choose = random.Random(seed)
        leaf = torch.arange(96.0, device=device).reshape(8, 12).requires_grad_()
        views = _chain(leaf * 2, seed)
        written = choose.choice(views)
        written.mul_(written.detach().clone())
        choose.choice(views)[0].add_(leaf.sum())
        loss = sum((view.sin() * i).sum() for i, view in enumerate(views[::7]))
        loss.backward()
        results.append(leaf.grad.cpu())
    assert_close(results[1], results[0], rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x.detach(),
        lambda x: x[:],
        lambda x: x.view(-1).view(4, 6),
        lambda x: x.t().t(),
        torch.nn.Parameter,
    ],
    ids=["detach", "slice", "view", "t", "parameter"],
)
def test_a_step_traces_as_many_ops_after_many_steps(view: View) -> None:
    def traced(steps: int) -> int:
        nonlocal state
        before = torch_ltc.metrics()["traced_ops"]
        for _ in range(steps):
            state = view(state)
            state.data.add_(1)
            torch_ltc.mark_step()
        return torch_ltc.metrics()["traced_ops"] - before

    state = torch.zeros(4, 6, device="lazy")
    traced(20)
    assert traced(20) == pytest.approx(traced(20), rel=0.3)
    assert state.sum().item() == 60 * 24
