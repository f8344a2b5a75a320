"""Makes the Trainer of Transformers accept `bf16=True` on device lazy.

Transformers (5.23) rejects `bf16=True` unless it finds a GPU of a kind that it lists, or
`use_cpu=True`, which would train on the CPU. Accelerate's autocast in bfloat16 supports
device lazy.
"""

from __future__ import annotations

import functools
import os
from types import ModuleType

import torch

_NAME = "lazy"


def _is_on_lazy() -> bool:
    """Whether Accelerate will choose device lazy."""
    if name := os.environ.get("ACCELERATE_TORCH_DEVICE"):
        return torch.device(name).type == _NAME
    accelerator = torch.accelerator.current_accelerator()
    return accelerator is not None and accelerator.type == _NAME


def install(module: ModuleType) -> None:
    original = module.is_torch_bf16_gpu_available

    @functools.wraps(original)
    def is_torch_bf16_gpu_available() -> bool:
        return _is_on_lazy() or original()

    module.is_torch_bf16_gpu_available = is_torch_bf16_gpu_available  # type: ignore[attr-defined]
