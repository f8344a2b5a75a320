"""Several threads train at once, each with its own graph and steps."""

from __future__ import annotations

import threading

import pytest
import torch
import torch_ltc
from torch import nn
from torch.nn import functional as F
from training.running import Outcome, assert_follows

MODELS = 4
STEPS = 15


def _train(number: int, device: str, state: dict) -> Outcome:
    """Trains a model. It has no dropout, as all threads share the default generator."""
    model = nn.Sequential(nn.Linear(8, 8 + number), nn.Tanh(), nn.Linear(8 + number, 3))
    model.load_state_dict(state)
    model.to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    outcome = Outcome()
    x = torch.linspace(-1, 1, 64).reshape(8, 8)
    for step in range(STEPS):
        optimizer.zero_grad()
        batch = (x * (step + 1 + number)).to(device)
        loss = F.cross_entropy(model(batch), torch.arange(8).to(device) % 3)
        loss.backward()
        optimizer.step()
        outcome.losses.append(loss.detach())
    outcome.losses = [loss.cpu() for loss in outcome.losses]
    outcome.parameters = {n: v.cpu() for n, v in model.state_dict().items()}
    return outcome


@pytest.mark.parametrize("attempt", range(3))
def test_four_threads_train_four_models(attempt: int) -> None:
    torch.manual_seed(attempt)
    states = [
        nn.Sequential(nn.Linear(8, 8 + n), nn.Tanh(), nn.Linear(8 + n, 3)).state_dict()
        for n in range(MODELS)
    ]
    expected = [_train(n, "cpu", states[n]) for n in range(MODELS)]
    outcomes: dict[int, Outcome] = {}
    errors = []
    barrier = threading.Barrier(MODELS)

    def work(number: int) -> None:
        try:
            barrier.wait()
            outcomes[number] = _train(number, "lazy", states[number])
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(MODELS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors, errors
    for number in range(MODELS):
        assert_follows(outcomes[number], expected[number])


def test_a_step_ends_the_calling_threads_graph_only() -> None:
    """mark_step in one thread must not cut another thread's trace."""
    mine = torch.ones(3, device="lazy") + 1

    def other() -> None:
        y = torch.ones(3, device="lazy") * 5
        torch_ltc.mark_step(wait=True)
        assert y[0].item() == 5

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    assert "add" in torch_ltc.debug.dump(mine, stage="ir")
    assert mine.tolist() == [2.0] * 3


def test_tensor_handed_to_another_thread() -> None:
    x = torch.arange(6, device="lazy").float()
    y = x * 2
    results = []
    thread = threading.Thread(target=lambda: results.append((y + 1).tolist()))
    thread.start()
    thread.join()
    assert results == [[1.0, 3.0, 5.0, 7.0, 9.0, 11.0]]
    assert y.tolist() == [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]
