"""torch.compile(backend="torch_ltc") gives eager's numbers, forward and backward."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch_ltc.dynamo_backend import compile_module
from training.running import optimizers, tasks


@pytest.fixture(autouse=True)
def fresh_dynamo():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


@pytest.mark.parametrize("name", ["perceptron", "lenet", "encoder"])
def test_training_follows_eager(name: str) -> None:
    task = tasks.TASKS["test"][name]
    losses = {}
    for backend in ("eager", compile_module):
        model = task.model().eval()  # without dropout
        compiled = torch.compile(model, backend=backend)
        optimizer = optimizers.ALL["adamw"](model.parameters())
        losses[str(backend)] = []
        for step in range(4):
            optimizer.zero_grad()
            loss = task.loss(compiled, task.batch(step))
            loss.backward()
            optimizer.step()
            losses[str(backend)].append(loss.detach())
    eager, ours = losses.values()
    torch.testing.assert_close(
        torch.stack(ours), torch.stack(eager), rtol=1e-4, atol=1e-6
    )


def test_dropout_draws_eagers_numbers_at_each_call() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        return nn.functional.dropout(x, 0.5) * 2

    compiled = torch.compile(f, backend=compile_module)
    x = torch.ones(4, 6, requires_grad=True)
    torch.manual_seed(3)
    first, second = compiled(x), compiled(x)
    assert not torch.equal(first, second)
    torch.manual_seed(3)
    torch.testing.assert_close(first, f(x))
    torch.testing.assert_close(second, f(x))
    (gradient,) = torch.autograd.grad(first.sum(), x)
    torch.testing.assert_close(gradient, first.detach())


def test_written_buffers_and_several_outputs() -> None:
    model = nn.BatchNorm1d(3)
    compiled = torch.compile(model, backend=compile_module)
    eager = nn.BatchNorm1d(3)
    x = torch.randn(8, 3)
    for _ in range(2):
        torch.testing.assert_close(compiled(x), eager(x), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(model.running_mean, eager.running_mean)
    assert model.num_batches_tracked == 2


def test_what_it_cannot_compile_is_a_sentence() -> None:
    compiled = torch.compile(
        lambda x: x * torch.normal(x, x), backend=compile_module, fullgraph=True
    )
    with pytest.raises(Exception, match=r"can't compile the random op aten\.normal"):
        compiled(torch.ones(3))
