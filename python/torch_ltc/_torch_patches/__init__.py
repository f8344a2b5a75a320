"""Replaces functions of PyTorch for which a backend can't register its own
(docs/limitations.md).

There is one module for each area; its `install` replaces the area's functions. Each
replacement calls the original unless a lazy tensor or device "lazy" is involved.
"""

from __future__ import annotations

import functools
import importlib
from types import ModuleType

import torch

from torch_ltc._torch_patches import import_hooks

#: Patches of names that programs use, or bind with `from torch... import`, before a lazy
#: tensor exists.
AT_IMPORT = (
    "distributed",
    "autocast",
    "accelerator",
    "modules",
    "tied_parameters",
    "nested_tensors",
    "subclasses",
    "saved_tensors",
    "fake_tensors",
    "scripted",
    "custom_ops",
    "serialization",
    "storages",
    "interchange",
    "transforms",
)

#: Patches of modules that `import torch` doesn't import. When the module is imported, the
#: patch is imported and its `install(module)` is called.
WHEN_IMPORTED = {
    "accelerate.state": "accelerate_processes",
    "lightning": "lightning_accelerator",
    "lightning_fabric": "lightning_accelerator",
    "pytorch_lightning": "lightning_accelerator",
    "safetensors": "safetensors_files",
    "torch._inductor.compile_fx": "inductor",
    "torch._lazy": "lazy_interface",
    "transformers.training_args": "trainer_precision",
}

#: Patches that only affect lazy tensors.
AT_FIRST_TENSOR = (
    "data_assignment",
    "exchanged_tensors",
    "device_names",
    "dispatch_modes",
    "higher_order",
    "optimizers",
    "distribution_checks",
)


def _install(names: tuple[str, ...]) -> None:
    for name in names:
        importlib.import_module(f"{__name__}.{name}").install()


def _install_in(patch: str, module: ModuleType) -> None:
    importlib.import_module(f"{__name__}.{patch}").install(module)


def install_at_import() -> None:
    _install(AT_IMPORT)
    hooks = {
        name: functools.partial(_install_in, patch)
        for name, patch in WHEN_IMPORTED.items()
    }
    import_hooks.install(hooks)
    # Imports `torch._lazy` on first use, because torch's test functions
    # (`torch.testing._utils`) use it without an import.
    torch._lazy_modules.add("_lazy")


def install_at_first_tensor() -> None:
    _install(AT_FIRST_TENSOR)
