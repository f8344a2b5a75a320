"""Writes through views that refer to an element more than once have exactly eager's
results."""

from __future__ import annotations

import pytest
import torch

INF, NAN = float("inf"), float("nan")


def _row_of_copies(x: torch.Tensor) -> None:
    x.expand(2, 3)[1].fill_(5)


def _column_of_copies(x: torch.Tensor) -> None:
    x.view(3, 1).expand(3, 4)[:, 2].copy_(torch.cat([x[1:], x[:1]]))


def _expanded_by_nothing(x: torch.Tensor) -> None:
    x.expand(1, 1, 3).fill_(0)


def _nothing_of_copies(x: torch.Tensor) -> None:
    first, _ = x.expand(2, 3).split([0, 2])
    first.fill_(1)


def _windows_with_gaps(x: torch.Tensor) -> None:
    x.unfold(0, 1, 2).fill_(0)


def _window(x: torch.Tensor) -> None:
    x.unfold(0, 1, 1)[1].fill_(1)


def _rows_that_share_memory(x: torch.Tensor) -> None:
    first, _ = x.as_strided((2, 2), (0, 2)).unbind()
    first.fill_(1)


def _rows_that_overlap(x: torch.Tensor) -> None:
    x.as_strided((2, 2), (1, 1))[0].copy_(x.as_strided((2,), (1,), 1).clone())


def _written_twice(x: torch.Tensor) -> None:
    rows = x.as_strided((3, 2), (0, 1), 1)
    rows[2].fill_(0)
    rows[0, :1].fill_(1)


def _rows_in_place_that_overlap(x: torch.Tensor) -> None:
    x.as_strided_((2, 2), (1, 1))
    x[0].copy_(x[1].clone())


WRITES = [
    _rows_in_place_that_overlap,
    _row_of_copies,
    _column_of_copies,
    _expanded_by_nothing,
    _nothing_of_copies,
    _windows_with_gaps,
    _window,
    _rows_that_share_memory,
    _rows_that_overlap,
    _written_twice,
]
VALUES = {
    torch.float64: [1.0, INF, -0.0],
    torch.float32: [1e8, INF, NAN],
    torch.bfloat16: [3.0, -INF, 0.0],
    torch.float8_e5m2: [3.0, -1.0, 0.0],
    torch.complex64: [1 + 2j, 3 - 1j, -0.0],
    torch.int64: [2**60, 0, -3],
    torch.uint64: [2**60, 1, 7],
    torch.uint16: [60000, 0, 7],
    torch.uint8: [255, 0, 7],
    torch.bool: [True, False, True],
}


@pytest.mark.parametrize("dtype", VALUES, ids=str)
@pytest.mark.parametrize("write", WRITES)
def test_write(write, dtype: torch.dtype) -> None:
    eager = torch.tensor(VALUES[dtype], dtype=dtype)
    lazy = eager.to("lazy")
    write(eager)
    write(lazy)
    bits = [x.cpu().contiguous().view(torch.uint8) for x in (lazy, eager)]
    assert torch.equal(*bits)
