"""Makes Accelerate, and thereby the Trainer of Transformers, support several processes.

Accelerate (1.15) creates a process group only for the devices that it lists. On device
lazy, each process would train alone, without an error. This patch makes Accelerate create
the CPU's group, Gloo; each process keeps device lazy.
"""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any

import torch

_NAME = "lazy"


def chooses_lazy(device: torch.device | None) -> bool:
    """Whether Accelerate uses device lazy if the environment names `device`, or none."""
    device = device or torch.accelerator.current_accelerator()
    return device is not None and device.type == _NAME


def install(module: ModuleType) -> None:
    state = module.PartialState
    prepare = state._prepare_backend

    @functools.wraps(prepare)
    def prepare_backend(
        self: Any,
        cpu: bool = False,
        sagemaker_dp: bool = False,
        backend: str | None = None,
    ) -> tuple[str | None, Any]:
        name, kind = prepare(self, cpu, sagemaker_dp, backend)
        alone = module.DistributedType.NO
        if cpu or kind != alone or not chooses_lazy(self.device):
            return name, kind
        # With cpu=True, Accelerate detects whether a launcher has started more processes.
        name, kind = prepare(self, True, sagemaker_dp, backend)
        if kind != alone:
            self.device = torch.device(_NAME)
        return name, kind

    state._prepare_backend = prepare_backend
