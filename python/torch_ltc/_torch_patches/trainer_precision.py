"""Makes the Trainer of Transformers accept `bf16=True` on device lazy.

Transformers (5.23) rejects `bf16=True` unless it finds a GPU of a kind that it lists, or
`use_cpu=True`, which would train on the CPU. Accelerate's autocast in bfloat16 supports
device lazy.
"""

from __future__ import annotations

import functools
from types import ModuleType

import torch

from torch_ltc._torch_patches.accelerate_processes import chooses_lazy


def _is_on_lazy() -> bool:
    from accelerate.utils import parse_choice_from_env

    name = parse_choice_from_env("ACCELERATE_TORCH_DEVICE", default="")
    return chooses_lazy(torch.device(name) if name else None)


def install(module: ModuleType) -> None:
    original = module.is_torch_bf16_gpu_available

    @functools.wraps(original)
    def is_torch_bf16_gpu_available() -> bool:
        if original():
            return True
        # Transformers may be installed without Accelerate.
        return module.is_accelerate_available() and _is_on_lazy()

    module.is_torch_bf16_gpu_available = is_torch_bf16_gpu_available  # type: ignore[attr-defined]
