"""Names of PyTorch that are replaced where it has no registration (docs/limitations.md).

One module per area; its `install` replaces the area's names. Each replacement calls the
original unless a lazy tensor or device "lazy" is involved.
"""

from __future__ import annotations

import importlib

#: What programs use, or bind with `from torch... import`, before a lazy tensor exists.
AT_IMPORT = (
    "distributed",
    "autocast",
    "accelerator",
    "modules",
    "tied_parameters",
    "nested_tensors",
    "fake_tensors",
    "scripted",
    "custom_ops",
    "serialization",
    "safetensors_files",
    "storages",
    "interchange",
    "lazy_interface",
    "accelerate_processes",
    "lightning_accelerator",
    "transforms",
)

#: What only handles lazy tensors.
AT_FIRST_TENSOR = (
    "data_assignment",
    "device_names",
    "dispatch_modes",
    "saved_tensors",
    "higher_order",
    "optimizers",
    "distribution_checks",
)


def _install(names: tuple[str, ...]) -> None:
    for name in names:
        importlib.import_module(f"{__name__}.{name}").install()


def install_at_import() -> None:
    _install(AT_IMPORT)


def install_at_first_tensor() -> None:
    _install(AT_FIRST_TENSOR)
