"""Metadata of tensors agrees with eager in all variants of each op.

Each run uses the first and the smallest sample of each entry, row-major and transposed;
`--full` uses the first three and the smallest, in all layouts.
"""

from __future__ import annotations

import pytest
import torch
from sweeps import metadata, opinfo
from sweeps.exclusions import is_excluded


def _ids() -> list:
    entries = opinfo.entries(torch.float32)
    named = [(op, opinfo.entry_name(op)) for op in entries]
    return [pytest.param(op, id=name) for op, name in named if not is_excluded(name)]


@pytest.mark.parametrize("op", _ids())
def test_metadata(op, request: pytest.FixtureRequest) -> None:
    gradient = op.supports_autograd and torch.float32 in op.supported_backward_dtypes("cpu")  # fmt: skip
    is_full = request.config.getoption("--full")
    layouts = tuple(metadata.LAYOUTS) if is_full else ("plain", "transposed")
    limit = 3 if is_full else 1
    found = list(metadata.differences(op, torch.float32, limit, gradient, layouts))
    opinfo.settle()
    assert not found, "\n".join(found)
