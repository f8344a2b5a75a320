"""Which programs stay in memory."""

from __future__ import annotations

import torch
import torch_ltc
from counting import counting


def _step(x: torch.Tensor) -> torch.Tensor:
    y = (x + 1).tanh()
    torch_ltc.mark_step()
    return y


def test_small_programs_of_many_sizes_stay_in_memory() -> None:
    """The programs of a loop over many sizes, such as the decoding of a text, aren't
    compiled. They have a limit of their own, by their number of ops."""
    inputs = [torch.rand(size, device="lazy") for size in range(1, 400)]
    with torch_ltc.config(tier="auto"):
        _ = [_step(x) for x in inputs]
        with counting() as counts:
            values = [_step(x) for x in inputs]
    assert counts.program_memory_hits == len(inputs)
    for x, y in zip(inputs, values, strict=True):
        torch.testing.assert_close(y.cpu(), (x.cpu() + 1).tanh())


def test_small_programs_do_not_replace_compiled_ones() -> None:
    x = torch.rand(500, device="lazy")
    with torch_ltc.config(tier="compile"):
        _step(x)
    with torch_ltc.config(tier="auto"):
        for size in range(1, 400):
            _step(torch.rand(size, device="lazy"))
        with counting() as counts:
            _step(x)
    assert counts.program_memory_hits == 1
