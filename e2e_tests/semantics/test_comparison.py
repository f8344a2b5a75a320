"""The tests' comparisons fail for each difference that they are meant to detect."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from comparison import assert_close, assert_same, largest

X = torch.arange(6.0).reshape(2, 3)

#: Pairs of results that differ.
DIFFERENT: dict[str, tuple[Any, Any]] = {
    "value": (X, X + 0.1),
    "NaN": (X / 0, X),
    "integer": (torch.tensor(10**6), torch.tensor(10**6 + 1)),
    "dtype": (X, X.double()),
    "size": (X, X[:1]),
    "layout": (X, X.to_sparse()),
    "number": (1.0, 1.0 + 1e-9),
    "count": ([X], [X, X]),
    "key": ({"a": X}, {"b": X}),
    "nested value": ([X, (X,)], [X, (X * 2,)]),
}
#: Pairs whose values are equal, but not their metadata.
OTHER_METADATA = {
    "strides": (X, X.t().contiguous().t()),
    "offset": (X[1], X[1].clone()),
    "requires_grad": (X, X.clone().requires_grad_()),
    "conjugate bit": (X.cfloat().conj(), X.cfloat()),
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_differences_are_reported(name: str) -> None:
    for check in (assert_close, assert_same):
        check(DIFFERENT[name][1], DIFFERENT[name][1])
        with pytest.raises(AssertionError):
            check(*DIFFERENT[name])


@pytest.mark.parametrize("name", OTHER_METADATA)
def test_other_metadata_is_reported(name: str) -> None:
    assert_close(*OTHER_METADATA[name])
    with pytest.raises(AssertionError):
        assert_same(*OTHER_METADATA[name])


def test_tolerances() -> None:
    assert_close([X, torch.tensor(3)], [X + 0.1, torch.tensor(3)], rtol=0, atol=0.2)
    with pytest.raises(AssertionError, match=r"loss\[1\]"):
        assert_close([X, torch.tensor(3)], [X, torch.tensor(4)], 1, 1, "loss")
    with pytest.raises(AssertionError):
        assert_close(X / 0, X / 0)
    assert_close(X / 0, X / 0, equal_nan=True)
    assert largest(torch.tensor([-3.0, torch.inf, 2.0]), 1e-3) == 3
    assert largest(torch.zeros(0), 1e-3) == 1e-3
