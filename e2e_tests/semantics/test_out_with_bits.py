"""`out=` may be a negative or conjugate view: what is read from it are the op's results."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from comparison import compare

#: The results have sizes (3,).
OPS: dict[str, Callable[[torch.Tensor, torch.Tensor], object]] = {
    "ones": lambda x, out: torch.ones(3, out=out),
    "arange": lambda x, out: torch.arange(1, 4, out=out),
    "add": lambda x, out: torch.add(x, 1, out=out),
    "itself": lambda x, out: torch.add(out, x, out=out),
    "softmax": lambda x, out: torch.softmax(x, 0, out=out),
    "masked_select": lambda x, out: torch.masked_select(x, x.real > -9, out=out),
    "mm": lambda x, out: torch.mv(x.expand(3, 3), x, out=out),
    "svdvals": lambda x, out: torch.linalg.solve(torch.eye(3).to(x), x, out=out),
    "resized": lambda x, out: torch.narrow_copy(x, 0, 1, 2, out=out),
    "draw": lambda x, out: torch.normal(x.real, 1.0, out=out),
}


@pytest.mark.parametrize("name", OPS)
@pytest.mark.parametrize("bits", ["neg", "conj", "both"])
def test_out(bits: str, name: str) -> None:
    def program(x: torch.Tensor) -> list[torch.Tensor]:
        memory = torch.zeros_like(x)
        view = torch._neg_view(memory) if bits != "conj" else memory
        view = view.conj() if bits != "neg" else view
        OPS[name](x, view)
        return [memory.clone(), view * 1, view.resolve_conj().resolve_neg()]

    x = torch.tensor([0.5, 1.0, -2.0])
    compare(program, x if bits == "neg" else torch.complex(x, x + 1))
