"""After the error of a failed op has been raised, the tensor that the op would have written
still has its old value, as in eager."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import torch
import torch_ltc
from torch import Tensor

Write = Callable[[Tensor, Tensor], object]

#: Writes to a tensor of three elements; the index is out of bounds.
WRITES: dict[str, Write] = {
    "index": lambda x, i: x.index_put_((i,), x[:1]),
    "item": lambda x, i: x.__setitem__(i, 1.0),
    "scatter": lambda x, i: x.scatter_(0, i, 5.0),
    "index_add": lambda x, i: x.index_add_(0, i, x[:1]),
    "index_copy": lambda x, i: x.index_copy_(0, i, x[:1]),
    "index_fill": lambda x, i: x.index_fill_(0, i, 2.0),
    "put": lambda x, i: x.put_(i, x[:1]),
}


@pytest.fixture(params=["compile", "interpret"], autouse=True)
def _tier(request: pytest.FixtureRequest) -> Iterator[None]:
    with torch_ltc.config(tier=request.param):
        yield


@pytest.mark.parametrize("is_read", [True, False])
@pytest.mark.parametrize("name", WRITES)
def test_value_from_before_the_step(name: str, is_read: bool) -> None:
    x, i = torch.arange(3.0, device="lazy"), torch.tensor([5], device="lazy")
    torch_ltc.mark_step()
    if is_read:
        x.cpu()
    with pytest.raises((IndexError, RuntimeError)):
        WRITES[name](x, i)
        x.cpu()
    assert x.tolist() == [0, 1, 2]
    x += 1
    assert x.tolist() == [1, 2, 3]


@pytest.mark.parametrize("name", WRITES)
def test_earlier_writes_of_the_step(name: str) -> None:
    x, i = torch.arange(3.0, device="lazy"), torch.tensor([5], device="lazy")
    torch_ltc.mark_step()
    x += 1
    y = x * 2
    with pytest.raises((IndexError, RuntimeError)):
        WRITES[name](y, i)
        WRITES[name](x, i)
        y.cpu()
    assert x.tolist() == [1, 2, 3]
    assert y.tolist() == [2, 4, 6]


def test_division_by_zero() -> None:
    x = torch.full((3,), 7, device="lazy")
    torch_ltc.mark_step()
    x += 1
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        x.remainder_(torch.zeros_like(x))
        x.cpu()
    assert x.tolist() == [8, 8, 8]
