"""Checks of values in formulas: if eager would reject the values at the call, the step
that computes them fails with eager's error.

A compiled program only detects that a check fails. The step then runs with PyTorch's
kernels (`programs/compiled_program.cpp`), and the check's kernel raises the error.
"""

from __future__ import annotations

import torch
from torch import Tensor


def zero_if(is_valid: Tensor, message: str) -> Tensor:
    """Returns 0 (int64, rank 0), on which the op's result must depend. The step fails with
    `message` unless all elements of `is_valid` are true."""
    zero = torch.zeros((), dtype=torch.int64, device=is_valid.device)
    return torch.ops.aten._functional_assert_async.msg(is_valid.all(), message, zero)
