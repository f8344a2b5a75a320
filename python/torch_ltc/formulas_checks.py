"""Values that eager refuses at the call, in formulas: the step that computes them ends
with eager's error.

A compiled program only sees that a check fails. The step is then run with PyTorch's
kernels (`programs/compiled_program.cpp`), and this op's is the one that raises.
"""

from __future__ import annotations

import torch
from torch import Tensor


def zero_if(is_valid: Tensor, message: str) -> Tensor:
    """0, on which the result has to depend; an error if not all of `is_valid` is
    true."""
    zero = torch.zeros((), dtype=torch.int64, device=is_valid.device)
    return torch.ops.aten._functional_assert_async.msg(is_valid.all(), message, zero)
