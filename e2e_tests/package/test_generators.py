"""Device lazy uses CPU generators for random numbers, and torch.Generator("lazy") returns a
CPU generator."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch_ltc
from comparison import assert_close
from counting import counting

DRAWS: dict[str, Callable[[str, torch.Generator], torch.Tensor]] = {
    "rand": lambda d, g: torch.rand(5, device=d, generator=g),
    "randn": lambda d, g: torch.randn(5, device=d, generator=g),
    "randint": lambda d, g: torch.randint(9, (5,), device=d, generator=g),
    "randint, low": lambda d, g: torch.randint(3, 9, (5,), device=d, generator=g),
    "rand_like": lambda d, g: torch.rand_like(torch.ones(5, device=d), generator=g),
    "randn_like": lambda d, g: torch.randn_like(torch.ones(5, device=d), generator=g),
    "randint_like": lambda d, g: torch.randint_like(
        torch.ones(5, device=d), 9, generator=g
    ),
    "randint_like, low": lambda d, g: torch.randint_like(
        torch.ones(5, device=d), 3, 9, generator=g
    ),
    "randperm": lambda d, g: torch.randperm(9, device=d, generator=g),
    "normal": lambda d, g: torch.normal(torch.zeros(5, device=d), 1.0, generator=g),
    "bernoulli": lambda d, g: torch.full((9,), 0.5, device=d).bernoulli(generator=g),
    "multinomial": lambda d, g: torch.ones(9, device=d).multinomial(3, generator=g),
    "uniform_": lambda d, g: torch.zeros(5, device=d).uniform_(generator=g),
    "random_": lambda d, g: torch.zeros(5, device=d).random_(generator=g),
    "random_, to": lambda d, g: torch.zeros(5, device=d).random_(7, generator=g),
    "random_, from": lambda d, g: torch.zeros(5, device=d).random_(2, 7, generator=g),
    "random_, column": lambda d, g: torch.zeros(5, 2, device=d)[:, 0].random_(
        generator=g
    ),
    "exponential_": lambda d, g: torch.zeros(5, device=d).exponential_(generator=g),
    "cauchy_": lambda d, g: torch.zeros(5, device=d).cauchy_(generator=g),
    "log_normal_": lambda d, g: torch.zeros(5, device=d).log_normal_(generator=g),
    "geometric_": lambda d, g: torch.zeros(5, device=d).geometric_(0.5, generator=g),
}


@pytest.mark.parametrize("name", DRAWS)
@pytest.mark.parametrize("device", ["lazy", "cpu"])
def test_draws_what_the_cpu_draws(name: str, device: str) -> None:
    generator = torch.Generator(device=device).manual_seed(3)
    expected = DRAWS[name]("cpu", torch.Generator().manual_seed(3))
    with counting() as counts:
        drawn = DRAWS[name]("lazy", generator)
    assert counts.fallback_calls + counts.implicit_syncs == 0
    assert drawn.dtype == expected.dtype
    assert torch.equal(drawn.cpu(), expected)


@pytest.mark.parametrize("device", ["lazy", "lazy:0", torch.device("lazy", 0)])
def test_a_generator_of_lazy_is_one_of_the_cpu(device) -> None:
    for generator in (torch.Generator(device), torch.Generator(device=device)):
        assert isinstance(generator, torch.Generator)
        assert generator.device == torch.device("cpu")
        state = generator.get_state()
        drawn = torch.rand(3, generator=generator, device="lazy").cpu()
        generator.set_state(state)
        assert torch.equal(torch.rand(3, generator=generator), drawn)


def test_steps_that_draw_with_a_generator_are_replayed() -> None:
    results = {}
    for device in ("cpu", "lazy"):
        generator, x = torch.Generator().manual_seed(3), torch.ones(4, device=device)

        def step(
            x: torch.Tensor, generator: torch.Generator = generator
        ) -> torch.Tensor:
            noise = torch.randn(4, device=x.device, generator=generator)
            x = x + noise * torch.rand_like(x, generator=generator)
            return x + torch.randint_like(x, 9, generator=generator)

        with counting() as counts:
            run = torch_ltc.capture(step) if device == "lazy" else step
            results[device] = [run(x).cpu() for _ in range(6)]
    assert counts.replayed_steps == 4
    for lazy, cpu in zip(results["lazy"], results["cpu"]):
        assert_close(lazy, cpu)


def test_other_generators_are_as_they_were() -> None:
    assert torch.Generator().device.type == "cpu"
    assert torch.Generator(device="cpu").device.type == "cpu"
    with pytest.raises(TypeError):
        torch.Generator(1.5)
    with pytest.raises(RuntimeError):
        torch.Generator("mtia")
    with pytest.raises(RuntimeError, match="lambda"):
        torch.zeros(2, device="lazy").exponential_(-1.0, generator=torch.Generator())
