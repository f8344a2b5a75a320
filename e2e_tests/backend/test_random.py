"""Random numbers are eager CPU's, for the same seed."""

from __future__ import annotations

import pytest
import torch
import torch_ltc

DRAWS = {
    "rand": lambda d: torch.rand(5, device=d),
    "randn": lambda d: torch.randn(2, 3, device=d),
    "randint": lambda d: torch.randint(0, 100, (7,), device=d),
    "randperm": lambda d: torch.randperm(9, device=d),
    "normal_": lambda d: torch.empty(6, device=d).normal_(1, 2),
    "uniform_": lambda d: torch.empty(6, device=d).uniform_(-1, 1),
    "exponential_": lambda d: torch.empty(6, device=d).exponential_(),
    "bernoulli_": lambda d: torch.empty(6, device=d).bernoulli_(0.3),
    "bernoulli of values": lambda d: torch.bernoulli(torch.full((6,), 0.5, device=d)),
    "rand_like": lambda d: torch.rand_like(torch.empty(4, device=d)),
    "randn_like": lambda d: torch.randn_like(torch.empty(4, device=d)),
    "dropout": lambda d: torch.nn.functional.dropout(torch.ones(20, device=d), 0.4),
    "dropout all": lambda d: torch.nn.functional.dropout(torch.ones(4, device=d), 1.0),
    "multinomial": lambda d: torch.multinomial(torch.ones(8, device=d), 3),
    "kaiming": lambda d: torch.nn.init.kaiming_uniform_(torch.empty(4, 3, device=d)),
}


@pytest.mark.parametrize("name", DRAWS)
def test_same_numbers_as_eager(name: str) -> None:
    for _ in range(2):
        torch.manual_seed(7)
        expected = [DRAWS[name]("cpu"), torch.rand(2)]
        torch.manual_seed(7)
        got = [DRAWS[name]("lazy"), torch.rand(2)]
        torch.testing.assert_close(got[0].cpu(), expected[0])
        torch.testing.assert_close(got[1], expected[1], rtol=0, atol=0)


def test_generator_argument() -> None:
    first = torch.empty(4, device="lazy").normal_(
        generator=torch.Generator().manual_seed(3)
    )
    second = torch.empty(4).normal_(generator=torch.Generator().manual_seed(3))
    torch.testing.assert_close(first.cpu(), second)


def test_dropout_does_not_recompile() -> None:
    x = torch.randn(16).to("lazy").requires_grad_()
    for _ in range(5):
        torch.nn.functional.dropout(x, 0.5).sum().backward()
        torch_ltc.mark_step()
        x.grad = None
        torch_ltc.wait_device_ops()
    programs = [entry["program"] for entry in torch_ltc.step_log()[-3:]]
    assert len(set(programs)) == 1
