"""Programs that join, write or unroll many parts have eager's values, and their compile
time is linear in the number of parts."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
import torch
import torch_ltc
from comparison import assert_close

Program = Callable[[str, int], torch.Tensor]


def _parts(device: str, count: int, *shape: int) -> list[torch.Tensor]:
    values = torch.arange(count * torch.Size(shape).numel()).float()
    return list(values.view(count, *shape).to(device).unbind(0))


def _cat_rows(device: str, count: int) -> torch.Tensor:
    return torch.cat([part * 2 for part in _parts(device, count, 2, 3)])


def _cat_columns(device: str, count: int) -> torch.Tensor:
    return torch.cat(_parts(device, count, 4, 3), 1)


def _cat_planes(device: str, count: int) -> torch.Tensor:
    return torch.cat([part.sin() for part in _parts(device, count, 2, 2, 3)], 1)


def _stack(device: str, count: int) -> torch.Tensor:
    return torch.stack([part + 1 for part in _parts(device, count, 8)]).sum(0)


def _stack_inside(device: str, count: int) -> torch.Tensor:
    return torch.stack(_parts(device, count, 4, 3), 1)


def _stack_last(device: str, count: int) -> torch.Tensor:
    return torch.stack([part * 3 for part in _parts(device, count, 4, 3)], -1)


def _write_elements(device: str, count: int) -> torch.Tensor:
    y = torch.zeros(count, dtype=torch.long, device=device)
    for i in range(count):
        y[i] = i % 10
    return y


def _write_rows(device: str, count: int) -> torch.Tensor:
    y = torch.full((count + 2, 8), 7.0, device=device)
    x = torch.arange(8.0, device=device)
    for i in range(count):
        y[i + 1] = x * i
    return y


def _write_columns(device: str, count: int) -> torch.Tensor:
    y = torch.arange(3.0 * (count + 1), device=device).view(3, count + 1) * 2
    for i in range(count):
        y[:, i] = y[:, i + 1] - i
    return y


def _write_again(device: str, count: int) -> torch.Tensor:
    y = torch.ones(6, 2, device=device)
    for i in range(count):
        y[i % 5 : i % 5 + 2] = torch.full((2, 2), float(i), device=device) + i
    return y


def _recur_in_memory(device: str, count: int) -> torch.Tensor:
    y = torch.ones(count + 1, 4, device=device)
    for i in range(count):
        y[i + 1] = (y[i] * 0.5).cos()
    return y


def _write_blocks(device: str, count: int) -> torch.Tensor:
    y = torch.zeros(count, count, device=device)
    for i in range(count - 1):
        y[i : i + 2, i : i + 2] = torch.full((2, 2), 1.0 + i, device=device)
    return y


def _unroll(device: str, count: int) -> torch.Tensor:
    h = torch.linspace(0, 1, 32, device=device).view(4, 8)
    w = torch.linspace(-0.5, 0.5, 64, device=device).view(8, 8)
    steps = []
    for _ in range(count):
        h = torch.tanh(h @ w)
        steps.append(h)
    return torch.stack(steps, 1)


def _chain(device: str, count: int) -> torch.Tensor:
    x = torch.linspace(0, 1, 24, device=device)
    for i in range(8 * count):
        x = (x * 0.9 + 0.1 * i).sin()
    return x


PROGRAMS: dict[str, Program] = {
    program.__name__.removeprefix("_"): program
    for program in (
        _cat_rows, _cat_columns, _cat_planes, _stack, _stack_inside, _stack_last,
        _write_elements, _write_rows, _write_columns, _write_again, _recur_in_memory,
        _write_blocks, _unroll, _chain,
    )
}  # fmt: skip


@pytest.mark.parametrize("count", [3, 9, 40])
@pytest.mark.parametrize("name", PROGRAMS)
def test_values(name: str, count: int) -> None:
    expected = PROGRAMS[name]("cpu", count)
    result = PROGRAMS[name]("lazy", count)
    torch_ltc.mark_step()
    assert_close(result, expected, rtol=1e-4, atol=1e-5)


def _seconds(name: str, count: int) -> float:
    """Returns the processor time to compile and run a program that no cache contains."""
    torch_ltc.wait_device_ops()
    with torch_ltc.config(cache=False):
        result = PROGRAMS[name]("lazy", count)
        begun = time.process_time()
        torch_ltc.mark_step(wait=True)
        del result
        return time.process_time() - begun


@pytest.mark.parametrize("name", PROGRAMS)
def test_compile_time_is_linear(name: str) -> None:
    """Compiling four times as many parts takes about four times as long (less than ten
    times, a margin for a busy machine). With a single kernel for all parts, it took 15 to
    60 times as long."""
    few, many = 48, 192
    _seconds(name, few - 1)  # loads the compiler
    short = min(_seconds(name, few), _seconds(name, few + 1))
    assert _seconds(name, many) < 10 * max(short, 0.1)


def _lengths_after_convolutions(device: str, batch: int, layers: int) -> torch.Tensor:
    """The lengths of a batch's signals after convolutions, as speech models compute them
    from a mask."""
    lengths = torch.ones(batch, 100 * batch, dtype=torch.long, device=device).sum(1)
    for layer in range(layers):
        lengths = torch.div(
            lengths - (2 + layer % 2), 1 + layer % 2, rounding_mode="floor"
        )
    return lengths


def test_compile_time_of_equal_elements_is_linear() -> None:
    """A chain of ops on a count, which is the same for each element of a kernel for all
    sizes. The loop vectorizer of LLVM took three times as long with each division."""

    def seconds(layers: int) -> float:
        torch_ltc.wait_device_ops()
        begun = time.process_time()
        with torch_ltc.config(cache=False, tier="compile"):
            for batch in (12, 13, 15):
                result = _lengths_after_convolutions("lazy", batch, layers)
                assert_close(result, _lengths_after_convolutions("cpu", batch, layers))
        return time.process_time() - begun

    seconds(3)  # loads the compiler
    short = seconds(4)
    assert seconds(12) < 10 * max(short, 0.1)
