"""Ops of an interpreted program run while the rest of the step is traced: results,
errors, memory and random numbers are the same as if the run began at the step's end."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
import torch_ltc
from counting import counting
from early_runs import compare_with_head_starts
from torch import nn


@pytest.fixture(autouse=True)
def interpreted():
    with torch_ltc.config(tier="interpret"):
        # Empties the trace cache: after many different traces, such as those of other
        # tests, the cache adds few new ones, and uncached traces have no head starts.
        with torch_ltc.config(reuse_traces=False):
            torch.ones(1, device="lazy").add(1).item()
        yield


def model(device: str) -> nn.Module:
    torch.manual_seed(0)
    layers = [nn.Linear(64, 256), nn.ReLU(), nn.Dropout(0.1), nn.BatchNorm1d(256)]
    return nn.Sequential(*layers, nn.Linear(256, 256), nn.GELU(), nn.Linear(256, 8)).to(
        device
    )


def train(device: str, steps: int = 8, accumulate: int = 1, odd=None) -> list:
    """Returns losses and parameters. `odd(step, model)`, called in each step, does
    additional work in some of them."""
    net = model(device)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    results = []
    for step in range(steps):
        x = torch.randn(512, 64).to(device)
        y = torch.randint(8, (512,)).to(device)
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        if odd:
            results.append(odd(step, net))
        if step % accumulate == accumulate - 1:
            optimizer.step()
            optimizer.zero_grad()
        results.append(loss.item())
    return results + [p.detach().cpu() for p in net.parameters()]


def test_training_step():
    assert compare_with_head_starts(lambda: train("lazy")) > 50
    assert train("lazy")[:8] == pytest.approx(train("cpu")[:8], rel=1e-4)


@pytest.mark.parametrize("period", [2, 3])
def test_steps_that_alternate(period):
    assert compare_with_head_starts(lambda: train("lazy", 16, accumulate=period)) > 50


def test_a_step_that_differs():
    """Head starts don't change the results of a loop in which some steps differ from the
    expected trace."""

    def odd(step: int, net: nn.Module) -> float | None:
        if step == 5:
            return net[0].weight.grad.abs().max().item()
        if step == 6:
            net[3].eval()
        if step == 9:
            nn.utils.clip_grad_norm_(net.parameters(), 0.1)
        return None

    assert compare_with_head_starts(lambda: train("lazy", 14, odd=odd)) > 50


def test_values_that_are_kept():
    """Old parameters and intermediate results keep their values."""

    def run() -> list:
        net = model("lazy")
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
        kept = []
        for step in range(8):
            x = torch.randn(256, 64).to("lazy")
            old, view = net[0].weight.detach(), net[0].bias.detach()[1:]
            hidden = net[0](x)
            if step > 4:
                kept += [old.clone(), view, hidden]
            loss = net[1:](hidden).square().mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=step % 2 == 0)
            kept.append(loss.item())
        return [k.cpu() if isinstance(k, torch.Tensor) else k for k in kept]

    def seeded() -> list:
        torch.manual_seed(1)
        return run()

    assert compare_with_head_starts(seeded) > 50


def test_an_op_that_fails():
    """The error is raised once, where a run without a head start raises it."""
    table = torch.randn(100, 512, device="lazy")
    weight = torch.randn(512, 512, device="lazy")
    message = []
    for index in [3, 4, 5, 6, 8, 9, 100, 7]:
        rows = torch.full((64,), index).to("lazy")
        with torch_ltc.config(head_start="on"), counting() as counts:
            value = F.embedding(rows, table)
            for _ in range(12):
                value = torch.tanh(value @ weight)
            finite = torch.isfinite(value.sum())
            if index < 100:
                assert finite.item()
            else:
                with pytest.raises(IndexError, match="index out of range") as error:
                    finite.item()
                message.append(str(error.value))
        if index == 7:
            assert counts.early_ops > 0
    assert len(message) == 1


def test_data_that_is_replaced():
    """Head starts use the inputs of the current step; in one step, both inputs are the
    same tensor."""

    def run() -> list:
        torch.manual_seed(2)
        first, second = (torch.randn(256, 256).to("lazy") for _ in range(2))
        results = []
        for step in range(10):
            left, right = (first, first) if step == 7 else (first, second)
            value = left @ right
            for _ in range(14):
                value = torch.sin(value) @ right
            results.append(value.sum().item())
            first, second = second, torch.randn(256, 256).to("lazy")
        return results

    assert compare_with_head_starts(run) > 20


def test_loops_that_have_ended_make_room():
    """Head starts begin after as many steps in the 70th loop of a thread as in the first
    one."""
    weight = torch.randn(256, 256, device="lazy")

    def first_step_with_early_ops(loop: int) -> int | None:
        for step in range(6):
            with torch_ltc.config(head_start="on"), counting() as counts:
                value = torch.randn(100, 256).to("lazy")
                for k in range(14):
                    act = torch.sin if loop >> k & 1 else torch.cos
                    value = act(value @ weight)
                value.sum().item()
            if counts.early_ops:
                return step
        return None

    assert {first_step_with_early_ops(loop) for loop in range(70)} <= {2, 3}


def test_the_default_and_no_worker():
    assert torch_ltc.config.head_start == "auto"
    with torch_ltc.config(async_execution=False, head_start="on"), counting() as counts:
        train("lazy")
    assert counts.early_ops == 0
