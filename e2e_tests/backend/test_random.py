"""Random numbers equal eager's for the same seed."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import torch_ltc
from comparison import assert_close
from counting import counting

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
    "log_normal_": lambda d: torch.empty(6, device=d).log_normal_(0, 0.5),
    "geometric_": lambda d: torch.empty(6, device=d).geometric_(0.4),
    "randint_like": lambda d: torch.randint_like(torch.empty(5, device=d), 2, 9),
    "poisson": lambda d: torch.poisson(torch.full((6,), 3.0, device=d)),
    "normal of tensors": lambda d: torch.normal(
        torch.arange(4.0, device=d), torch.full((4,), 0.5, device=d)
    ),
    "dropout all": lambda d: torch.nn.functional.dropout(torch.ones(4, device=d), 1.0),
    "dropout2d": lambda d: torch.nn.functional.dropout2d(
        torch.ones(2, 5, 3, 3, device=d), 0.4
    ),
    "multinomial": lambda d: torch.multinomial(torch.ones(8, device=d), 3),
    "multinomial with replacement": lambda d: torch.multinomial(
        torch.arange(1.0, 9.0, device=d), 12, replacement=True
    ),
    "multinomial of rows": lambda d: torch.multinomial(
        torch.arange(1.0, 13.0, device=d).reshape(2, 6), 4
    ),
    "kaiming": lambda d: torch.nn.init.kaiming_uniform_(torch.empty(4, 3, device=d)),
}


@pytest.mark.parametrize("name", DRAWS)
def test_same_numbers_as_eager(name: str) -> None:
    for _ in range(2):
        torch.manual_seed(7)
        expected = [DRAWS[name]("cpu"), torch.rand(2)]
        torch.manual_seed(7)
        got = [DRAWS[name]("lazy"), torch.rand(2)]
        assert_close(got[0], expected[0])
        assert_close(got[1], expected[1], rtol=0, atol=0)


@pytest.mark.parametrize("dtype", [torch.int8, torch.bool, torch.complex64], ids=str)
@pytest.mark.parametrize(
    "name", ["exponential_", "normal_", "log_normal_", "geometric_", "cauchy_"]
)
def test_nothing_is_drawn_for_an_empty_tensor(name: str, dtype: torch.dtype) -> None:
    """Eager doesn't check the dtype of an empty tensor."""
    given = (0.5,) if name == "geometric_" else ()
    results = []
    for device in ("cpu", "lazy"):
        torch.manual_seed(0)
        x = torch.empty(2, 0, dtype=dtype, device=device)
        try:
            assert getattr(x, name)(*given) is x
        except (RuntimeError, NotImplementedError) as error:
            results.append(str(error))
        else:
            results.append([*x.shape, torch.rand(1).item()])
    assert results[0] == results[1]


def _all_draws(device: str) -> list[torch.Tensor]:
    return [draw(device).cpu() for draw in DRAWS.values()]


@pytest.mark.parametrize("module", [torch, torch.lazy], ids=["torch", "torch.lazy"])
def test_state_round_trip(module) -> None:
    """A restored state gives the same numbers on either device, because the devices share a
    generator."""
    torch.manual_seed(5)
    torch.rand(3, device="lazy")
    state = module.get_rng_state()
    first = _all_draws("lazy")
    module.set_rng_state(state)
    again = _all_draws("lazy")
    module.set_rng_state(state)
    eager = _all_draws("cpu")
    for one, two, wanted in zip(first, again, eager):
        assert torch.equal(one, two)
        assert_close(one, wanted)


def test_fork_rng() -> None:
    torch.manual_seed(5)
    with torch.random.fork_rng():
        inside = torch.rand(4, device="lazy")
    outside = torch.rand(4, device="lazy")
    assert torch.equal(inside.cpu(), outside.cpu())


@pytest.mark.parametrize("name", DRAWS)
def test_no_recompilation(name: str) -> None:
    """Later steps that generate random numbers compile no program."""
    x = torch.ones(2, device="lazy")

    def step() -> torch.Tensor:
        result = DRAWS[name]("lazy").sum() * x
        torch_ltc.mark_step()
        return result

    for _ in range(2):
        step()
    with counting() as counts:
        results = [step().cpu() for _ in range(3)]
    assert counts.compilations + counts.program_disk_hits == 0
    assert all(r.isfinite().all() for r in results)


def test_generator_argument() -> None:
    first = torch.empty(4, device="lazy").normal_(
        generator=torch.Generator().manual_seed(3)
    )
    second = torch.empty(4).normal_(generator=torch.Generator().manual_seed(3))
    assert_close(first, second)


@pytest.mark.parametrize("tier", ["compile", "interpret"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_dropout_rounds_like_eager(dtype: torch.dtype, tier: str) -> None:
    """Kept elements equal eager's bitwise, for probabilities whose scale factor would be
    rounded differently in double precision."""

    def dropped(device: str, p: float) -> list[torch.Tensor]:
        torch.manual_seed(0)
        x = torch.linspace(-2, 3, 41, dtype=dtype).to(device).requires_grad_()
        y = torch.nn.functional.dropout(x, p)
        y.sum().backward()
        return [y.detach().cpu(), x.grad.cpu()]

    with torch_ltc.config(tier=tier):
        for p in (0.1, 0.49362960051650645, 0.3, 0.7, 0.17, 0.0337, 1 / 3):
            assert_close(dropped("lazy", p), dropped("cpu", p), rtol=0, atol=0)


def test_dropout_does_not_recompile() -> None:
    x = torch.randn(16).to("lazy").requires_grad_()
    for _ in range(5):
        torch.nn.functional.dropout(x, 0.5).sum().backward()
        torch_ltc.mark_step()
        x.grad = None
        torch_ltc.wait_device_ops()
    programs = [entry["program"] for entry in torch_ltc.step_log()[-3:]]
    assert len(set(programs)) == 1


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int64, torch.float32, torch.bool])
def test_bernoulli_is_drawn_in_the_type_of_out(dtype: torch.dtype) -> None:
    def run(device: str) -> torch.Tensor:
        torch.manual_seed(5)
        out = torch.empty(20, dtype=dtype, device=device)
        return torch.bernoulli(torch.full((20,), 0.5, device=device), out=out).cpu()

    assert torch.equal(run("lazy"), run("cpu"))


@pytest.mark.parametrize("count", [129, 311, 312, 313, 512, 4999])
@pytest.mark.parametrize(
    "dtype",
    [
        torch.bool,
        torch.float16,
        torch.bfloat16,
        torch.float32,
        torch.float64,
        torch.int32,
    ],
    ids=str,
)
def test_many_bernoulli_draws(dtype: torch.dtype, count: int) -> None:
    """The backend computes blocks of the generator's words. A block may begin at any of
    its 624 words, and the state must be torch's afterwards."""
    for before, p in (
        (0, 0.9),
        (1, 1e-3),
        (623, 0.5),
        (624, 0.0),
        (1000, 1.0),
        (5, 1 / 3),
    ):
        results = []
        for device in ("cpu", "lazy"):
            torch.manual_seed(count)
            torch.randint(0, 9, (before,))
            own = torch.Generator().manual_seed(before)
            numbers = [
                torch.empty(count, dtype=dtype, device=device).bernoulli_(p),
                torch.empty(count, dtype=dtype, device=device).bernoulli_(
                    p, generator=own
                ),
                torch.randn(3),
            ]
            results.append([x.cpu() for x in numbers])
            results[-1] += [torch.get_rng_state(), own.get_state()]
        for expected, result in zip(*results, strict=True):
            assert torch.equal(expected, result)


def test_bernoulli_draws_in_the_order_of_the_memory() -> None:
    def draw(device: str) -> torch.Tensor:
        torch.manual_seed(1)
        x = torch.ones(2, 5, 6, 7, device=device)
        x = x.contiguous(memory_format=torch.channels_last)
        dropped = torch.nn.functional.dropout(x, 0.3)
        return torch.cat([dropped.flatten(), torch.bernoulli(x[:, ::2], 0.5).flatten()])

    assert torch.equal(draw("lazy").cpu(), draw("cpu"))


@pytest.mark.skipif(
    "GenuineIntel" in Path("/proc/cpuinfo").read_text(),
    reason="torch draws with MKL on Intel's processors",
)
def test_many_bernoulli_draws_without_torchs_kernel() -> None:
    def draw() -> None:
        torch.empty(1000, device="lazy").bernoulli_(0.5)

    draw()
    with torch.profiler.profile() as profile:
        draw()
    names = [event.name for event in profile.events()]
    assert "aten::bernoulli_" not in names[names.index("aten::bernoulli") :]
