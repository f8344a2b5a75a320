"""Head starts of steps whose sizes are new: ops of a trace run early if an earlier trace
had the same ops, and no result depends on it."""

from __future__ import annotations

import random
import threading

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
        yield


def traced_anew(run):
    """Returns `run` with a seed and an empty cache of traces. Without that, the second
    run would repeat the traces of the first one."""

    def seeded():
        with torch_ltc.config(reuse_traces=False):
            torch.ones(1, device="lazy").add(1).item()
        torch.manual_seed(0)
        random.seed(0)
        return run()

    return seeded


def encoder() -> nn.Module:
    layer = nn.TransformerEncoderLayer(32, 4, 64, 0.1, batch_first=True)
    return nn.TransformerEncoder(layer, 2).to("lazy")


def encoder_steps(steps: int = 24, act=None) -> list:
    """Trains on batches of random sizes, some of them whole, and returns losses and
    parameters. `act(step, net, optimizer, loss)` may do more in a step."""
    net, data = encoder(), torch.randn(8, 96, 32).to("lazy")
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    results = []
    for step in range(steps):
        batch, length = random.choice([5, 8]), random.randrange(9, 97)
        loss = net(data[:batch, :length]).square().mean()
        loss.backward()
        if act:
            results.append(act(step, net, optimizer, loss))
        else:
            optimizer.step()
            optimizer.zero_grad()
        results.append(loss.item())
    return results + [p.detach().cpu() for p in net.parameters()]


def test_training_with_new_sizes():
    """The batch's slice is an op in some of the steps only."""
    assert compare_with_head_starts(traced_anew(encoder_steps)) > 24 * 260 // 2


def test_accumulated_gradients():
    """Two skeletons begin with the same ops and alternate."""

    def act(step: int, net: nn.Module, optimizer, loss) -> None:
        if step % 2:
            optimizer.step()
            optimizer.zero_grad()

    run = traced_anew(lambda: encoder_steps(act=act))
    assert compare_with_head_starts(run) > 24 * 200 // 2


def test_steps_that_differ_late():
    """Traces differ from the expected one at their end, in the middle, and only in which
    values are kept."""
    kept = []

    def act(step: int, net: nn.Module, optimizer, loss) -> float | None:
        value = None
        if step % 7 == 3:
            nn.utils.clip_grad_norm_(net.parameters(), 0.1)
        if step % 7 == 4:
            value = net.layers[0].linear1.weight.grad.abs().max().item()
        if step % 7 == 5:
            kept.append(net.layers[1].linear1.bias.grad)
        if step % 7 == 6:
            kept.append(net.layers[0].norm1.weight.detach()[1:])
        optimizer.step()
        optimizer.zero_grad(set_to_none=step % 5 != 0)
        return value

    def run() -> list:
        kept.clear()
        return encoder_steps(40, act) + [value.cpu() for value in kept]

    assert compare_with_head_starts(traced_anew(run)) > 40 * 50


def test_operands_that_are_exchanged():
    """The same ops with other operands, the same data twice, and other scalars."""

    def run() -> list:
        weights = [torch.randn(64, 64).to("lazy") for _ in range(2)]
        results = []
        for step in range(24):
            value = torch.randn(100 + step, 64).to("lazy")
            first, second = weights if step % 6 < 4 else (weights[1], weights[1])
            for k in range(10):
                left = value if step % 6 != 5 or k != 7 else torch.relu(value)
                value = torch.tanh(left @ first) + (step % 3) * (left @ second)
            results.append(value.sum().item())
            if step % 4 == 3:
                weights.append(weights.pop(0) * 0.5)
        return results

    assert compare_with_head_starts(traced_anew(run)) > 200


def test_dropped_results():
    """Values that an earlier step kept are temporary in a later one, and vice versa."""

    def run() -> list:
        weight = torch.randn(128, 128).to("lazy")
        results, kept = [], []
        for step in range(24):
            value = torch.randn(64 + step, 128).to("lazy")
            for k in range(16):
                value = torch.sin(value @ weight)
                if k == step % 5:
                    kept = [value, value[1:]]
            results += [value.mean().item(), *(v.sum().item() for v in kept)]
        return results

    compare_with_head_starts(traced_anew(run))


def test_an_op_that_fails_at_a_new_size():
    table, weight = torch.randn(50, 256).to("lazy"), torch.randn(256, 256).to("lazy")
    errors = 0
    for step in range(16):
        rows = torch.full((40 + step,), 50 if step == 9 else step).to("lazy")
        with torch_ltc.config(head_start="on"), counting() as counts:
            value = F.embedding(rows, table)
            for _ in range(14):
                value = torch.tanh(value @ weight)
            if step == 9:
                with pytest.raises(IndexError, match="index out of range"):
                    value.sum().item()
                errors += 1
            else:
                assert value.sum().isfinite().item()
        if step in (8, 15):
            assert counts.early_ops > 0
    assert errors == 1


def test_threads():
    """Each thread has its own expectations; results don't depend on the others."""

    def run() -> list:
        results: dict[int, list] = {}

        def work(index: int) -> None:
            generator = torch.Generator().manual_seed(index)
            weight = torch.randn(128, 128, generator=generator).to("lazy")
            values = []
            for step in range(20):
                value = torch.randn(60 + step, 128, generator=generator).to("lazy")
                for _ in range(14 + index):
                    value = torch.tanh(value @ weight)
                values.append(value.sum().item())
            results[index] = values

        threads = [threading.Thread(target=work, args=(i,)) for i in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return [value for index in range(3) for value in results[index]]

    # Which buffers are donated may depend on the threads' order.
    with torch_ltc.config(head_start="off"):
        expected = traced_anew(run)()
    with torch_ltc.config(head_start="on"), counting() as counts:
        assert traced_anew(run)() == expected
    assert counts.early_ops > 100


def test_loops_that_need_no_head_starts():
    """After 32 steps that nothing waited for, traces are compared only when a step is
    awaited again."""
    weight = torch.randn(256, 256).to("lazy")

    def step(rows: int, read: bool = True) -> bool:
        with torch_ltc.config(head_start="on"), counting() as counts:
            value = torch.randn(rows, 256).to("lazy")
            for _ in range(14):
                value = torch.tanh(value @ weight)
            if read:
                value.sum().item()
            else:
                torch_ltc.mark_step()
        return counts.early_ops > 0

    assert [step(300 + i) for i in range(4)][3]
    for i in range(40):
        step(10 + i, read=False)
    torch.lazy.synchronize()
    assert [step(400 + i) for i in range(4)] == [False, False, False, True]
