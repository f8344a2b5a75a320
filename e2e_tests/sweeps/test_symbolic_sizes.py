"""Every entry of `op_db` can be captured with symbolic sizes (sweeps.symbolic_sizes)."""

from __future__ import annotations

import pytest
from sweeps import symbolic_sizes
from sweeps.opinfo import entry_name

#: Entries whose operands or kernels have no fake counterpart on the device.
EXEMPT = {
    "histogram": "runs eagerly: PyTorch has no Meta kernel",
    "sparse.sampled_addmm": "sparse",
}

NAMES = {entry_name(op): op for op in symbolic_sizes.entries()}


@pytest.mark.parametrize("name", sorted(NAMES))
def test_symbolic_sizes(name: str) -> None:
    if name in EXEMPT:
        pytest.skip(EXEMPT[name])
    assert symbolic_sizes.difference(NAMES[name]) == ""
