"""torch.use_deterministic_algorithms(True) fills new memory and rejects ops as in eager."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from comparison import assert_close


@pytest.fixture(autouse=True)
def deterministic() -> Iterator[None]:
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)


DTYPES = [
    torch.float32, torch.float64, torch.bfloat16, torch.complex64, torch.bool,
    torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64,
]  # fmt: skip
MAKERS = {
    "empty": lambda d, t: torch.empty(2, 3, dtype=t, device=d),
    "empty_like": lambda d, t: torch.empty_like(torch.zeros(3, dtype=t, device=d)),
    "empty_strided": lambda d, t: torch.empty_strided((2, 2), (1, 2), dtype=t, device=d),
    "new_empty": lambda d, t: torch.zeros(1, dtype=t, device=d).new_empty(3),
    "empty_permuted": lambda d, t: torch.empty_permuted((2, 3), (1, 0), dtype=t, device=d),
}  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("make", MAKERS)
def test_new_memory_is_filled(make: str, dtype: torch.dtype) -> None:
    expected, result = (MAKERS[make](device, dtype) for device in ("cpu", "lazy"))
    assert_close(result, expected, equal_nan=True, rtol=0, atol=0)


@pytest.mark.parametrize("accumulate", [False, True])
@pytest.mark.parametrize("in_place", [False, True])
def test_put(accumulate: bool, in_place: bool) -> None:
    def run(device: str) -> list[float]:
        x, index = torch.zeros(3, device=device), torch.tensor([0], device=device)
        put = x.put_ if in_place else x.put
        return put(index, torch.ones(1, device=device), accumulate).tolist()

    if accumulate:
        assert run("lazy") == run("cpu")
        return
    for device in ("cpu", "lazy"):
        with pytest.raises(RuntimeError, match="put_ does not have a deterministic"):
            run(device)


def test_what_eager_computes() -> None:
    for device in ("cpu", "lazy"):
        x = torch.tensor([1.0, 2.0], device=device)
        assert torch.histc(x, bins=2).tolist() == [1.0, 1.0]
        assert x.cumsum(0).tolist() == [1.0, 3.0]
