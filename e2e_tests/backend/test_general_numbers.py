"""Programs for all sizes have eager's results if numbers vary independently of the sizes:
pads that become crops, slices and diagonals of any length, sizes in any relative order."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import pytest
import torch
import torch.nn.functional as F
import torch_ltc
from comparison import assert_close
from torch_ltc._backend import bindings

SEEDS = 2
ROUNDS = 12

Make = Callable[..., torch.Tensor]


def _diagonal_scatter(make: Make, n: int, m: int, k: int) -> torch.Tensor:
    x = make(n, m)
    return x.diagonal_scatter(torch.zeros_like(x.diagonal(k - 20)), k - 20)


def _written_slices(make: Make, n: int, m: int, k: int) -> torch.Tensor:
    x = make(n, 3) + 1
    x[1:m].fill_(7.0)
    x[k:].mul_(2.0)
    return x


def _written_ends(make: Make, n: int, m: int, k: int) -> torch.Tensor:
    x = make(n, 3) + 1
    x[:m].fill_(7.0)
    x[-k:].mul_(2.0)
    return x


def _long_chain(make: Make, n: int, m: int, k: int) -> torch.Tensor:
    """Writes some rows twice; the order of the writes determines which remain."""
    x = make(n + m + 12, 3) + 1
    for i in range(10):
        x[i + k % n] = float(i)
    x[m : m + 4] = 9.0
    return x


def _masked_scatter(make: Make, n: int, m: int, k: int) -> torch.Tensor:
    x = make(n)
    source = make(m)
    return x.masked_scatter(torch.arange(n, device=x.device) < min(n, m) // 2, source)


def _written_part(make: Make, n: int, m: int, k: int) -> torch.Tensor:
    memory = make(n + k, m + k)
    torch.mul(make(n, m), 2, out=memory[k:, k:])
    return memory


def _written_box(make: Make, n: int, m: int, k: int) -> torch.Tensor:
    """Writes to a slice of a slice of a tensor."""
    image = make(2, n + k, m + k)
    image[:, k : k + n // 2 + 1, m:] = image.flip(0)[:, : n // 2 + 1, m:]
    return image * 2


def _written_rows(make: Make, n: int, m: int, k: int) -> torch.Tensor:
    buffer = make(200, 2)
    buffer[k : k + m] = make(m, 2)
    return buffer[: k + m] * 2 + buffer[n]


def _sum_of_parts(make: Make, n: int, m: int, k: int) -> torch.Tensor:
    parts = (make(n + m + k, 2) * 2).split([n, m, k])
    return torch.stack([part.sum(0) * (i + 1) for i, part in enumerate(parts)])


def _multiple(make: Make, n: int, m: int, k: int) -> torch.Tensor:
    return F.pad(make(m, n) + 1, (0, -n % 8)).view(m, -1, 8).sum(1)


def _halves(make: Make, n: int, m: int, k: int) -> torch.Tensor:
    first, second = (make(n + m, 3) * 2).tensor_split(2)
    return first.sum(0) - second.mean(0)


def _stepped_gradient(make: Make, n: int, m: int, k: int) -> torch.Tensor:
    x = make(n + 90, 2).requires_grad_()
    (x[m::3] * k).square().sum().backward()
    return x.grad


def _written_steps(make: Make, n: int, m: int, k: int) -> torch.Tensor:
    x = make(n + 90, 2)
    x[m::3] = float(k)
    x[::2] *= 2
    return x


#: Functions of three numbers, each of which needs few programs.
FEW_PROGRAMS: dict[str, Callable[[Make, int, int, int], torch.Tensor]] = {
    "steps": lambda make, n, m, k: make(n + 90, 2)[m::3] * k,
    "steps of a fixed size": lambda make, n, m, k: make(200, 2)[m : m + n : 3] + 1,
    "steps of gradients": _stepped_gradient,
    "written steps": _written_steps,
    "triangle": lambda make, n, m, k: make(n, m).tril(k - 40) * 2,
    "three sizes of a part": lambda make, n, m, k: (
        make(90000)[: n * m * (k // 9 + 2)].view(n, m, k // 9 + 2).sum(1)
    ),
    "three sizes": lambda make, n, m, k: make(n * m * k).view(n, m, k).sum(1),
    "inferred size": lambda make, n, m, k: make(n * m * k).view(n, m, -1).sum(1),
}


#: Functions of three numbers from 1 to 90, which are random in each round.
FUNCTIONS: dict[str, Callable[[Make, int, int, int], torch.Tensor]] = {
    "pad to a constant": lambda make, n, m, k: F.pad(make(m, n), (0, 20 - n)) * 2,
    "pad on the left": lambda make, n, m, k: F.pad(make(n, 3), (0, 0, 20 - n, k)) * 2,
    "pad to another size": lambda make, n, m, k: F.pad(make(3, n), (0, m - n)) * make(m),
    "pad by a number": lambda make, n, m, k: F.pad(make(m, n), (k - 2, 20 - k)) + 1,
    "diagonal": lambda make, n, m, k: make(n, m).diagonal(k - 20) * 2,
    "scattered diagonal": _diagonal_scatter,
    "long chain": _long_chain,
    "masked scatter": _masked_scatter,
    "main diagonal": lambda make, n, m, k: make(n, m).diagonal() * make(min(n, m)),
    "triangles": lambda make, n, m, k: make(n, m).triu(k - 20) + make(n, m).tril(20 - k),
    "positions in a triangle": lambda make, n, m, k: torch.triu_indices(
        n, m, k - 20, device=make(1).device
    ) * 2,
    "positions in a lower triangle": lambda make, n, m, k: torch.tril_indices(
        n, m, 20 - k, dtype=torch.int32, device=make(1).device
    ) * 2,
    "identity": lambda make, n, m, k: torch.eye(n, m, device=make(1).device) * 2,
    "even steps": lambda make, n, m, k: torch.linspace(k, m, n, device=make(1).device) * 2,
    "start": lambda make, n, m, k: make(n)[:m] * 2 + make(min(n, m)),
    "last": lambda make, n, m, k: make(n)[-m:] * 2,
    "narrow": lambda make, n, m, k: make(n + m).narrow(0, m, n) * make(n),
    "step": lambda make, n, m, k: make(n + m)[m::k] + 1,
    "roll": lambda make, n, m, k: make(n, 3).roll(k - 20, 0) * make(n, 1),
    "windows": lambda make, n, m, k: make(n + m, 2).unfold(0, m, k) * 2,
    "view by strides": lambda make, n, m, k: make(n * m + k).as_strided((n, m), (m, 1), k) * 2,
    "columns by strides": lambda make, n, m, k: make(n * m + k).as_strided((m, n), (1, m), k) * 2,
    "scattered by strides": lambda make, n, m, k: make(n * m + k).as_strided_scatter(
        make(n, m) + 1, (n, m), (m, 1), k
    ),
    "parts joined": lambda make, n, m, k: torch.cat([make(n, 2)[:m], make(n, 2)[m:] * 3]) + 1,
    "chunks": lambda make, n, m, k: torch.cat([c * 2 for c in make(n, 2).chunk(3)]),
    "selected": lambda make, n, m, k: make(n, m)[n // 2, m - 1] + make(n, m)[-1],
    "largest": lambda make, n, m, k: make(n + m).topk(m).values + 1,
    "range": lambda make, n, m, k: make(n + m)[torch.arange(m, n + m)] + 1,
    "outer": lambda make, n, m, k: make(n, 1) * make(m) + make(n, m).flip(0, 1),
    "repeated": lambda make, n, m, k: make(n).repeat(2, k) + make(k * n),
    "pooled": lambda make, n, m, k: F.max_pool1d(make(1, 2, n + 3), 3, 2, padding=1) * 2,
    "written slices": _written_slices,
    "written ends": _written_ends,
    "written part": _written_part,
    "written box": _written_box,
    "written rows": _written_rows,
    "parts of given lengths": _sum_of_parts,
    "padded to a multiple": _multiple,
    "halves": _halves,
    "moments": lambda make, n, m, k: make(n, m, k).std() + make(n + m).var(),
}  # fmt: skip


@pytest.fixture(autouse=True)
def options() -> Iterator[None]:
    torch_ltc.mark_step()
    bindings().clear_program_cache()
    with torch_ltc.config(varying_sizes="auto", tier="compile", cache=False):
        yield


def _make(device: str) -> Make:
    def make(*sizes: int) -> torch.Tensor:
        count = torch.Size(sizes).numel()
        result = torch.arange(float(count)).reshape(sizes).to(device)
        if device == "lazy":
            torch_ltc.mark_step()
        return result

    return make


@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize("varying_numbers", ["auto", "off"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_numbers(name: str, varying_numbers: str, seed: int) -> None:
    draw = random.Random(f"{name}{seed}")
    with torch_ltc.config(varying_numbers=varying_numbers):
        for _ in range(ROUNDS):
            most = draw.choice([6, 40, 90])
            numbers = [draw.randint(1, most) for _ in range(3)]
            try:
                expected = FUNCTIONS[name](_make("cpu"), *numbers)
            except (RuntimeError, IndexError):
                continue
            result = FUNCTIONS[name](_make("lazy"), *numbers).cpu()
            try:
                assert_close(result, expected)
            except AssertionError as error:
                raise AssertionError(f"{numbers}: {error}") from error
    torch_ltc.mark_step()


@pytest.mark.parametrize("name", FEW_PROGRAMS)
def test_few_programs(name: str) -> None:
    draw = random.Random(name)
    torch_ltc.reset_metrics()
    for _ in range(24):
        n, m, k = (draw.randint(2, 90) for _ in range(3))
        result = FEW_PROGRAMS[name](_make("lazy"), n, m, k).cpu()
        assert_close(result, FEW_PROGRAMS[name](_make("cpu"), n, m, k))
    assert torch_ltc.metrics()["compilations"] <= 4


def test_numbers_are_bound() -> None:
    """At least three of five of the functions above run as programs for all sizes."""
    bound = 0
    for name in ("pad by a number", "start", "roll", "view by strides", "outer"):
        torch_ltc.reset_metrics()
        test_numbers(name, "off", 0)
        bound += torch_ltc.metrics()["programs_bound"] > 0
    assert bound > 2
