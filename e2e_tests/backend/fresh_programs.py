"""The state in which tests that count the programs of a loop begin."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
import torch_ltc
from torch_ltc._backend import bindings


@pytest.fixture(autouse=True)
def without_programs() -> Iterator[None]:
    """Each test starts without programs and without varying numbers."""
    torch.lazy.empty_cache()
    with torch_ltc.config(varying_numbers="off"):
        (torch.ones(1, device="lazy") + 1).cpu()
    bindings().clear_program_cache()
    with torch_ltc.config(tier="compile", varying_sizes="auto", cache=False):
        yield
