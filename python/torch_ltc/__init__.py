"""Device "lazy" for PyTorch: whole training steps compiled through MLIR.

After installation `device="lazy"` works without importing this package. The package
provides what isn't a tensor op: ends of steps, configuration, metrics, dumps.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

# torch is imported before our modules, because `import torch` calls back into this package
# at its end (_autoload), and the package must not be partially imported then.
import torch  # noqa: F401

from torch_ltc._backend import BackendUnavailable, unavailable_reason
from torch_ltc._torch_patches.naming import name_parameters
from torch_ltc.config import config
from torch_ltc.metrics import (
    compile_log,
    fallbacks,
    metrics,
    metrics_report,
    reset_metrics,
    step_log,
    syncs,
)
from torch_ltc.step import (
    add_step_closure,
    mark_step,
    sync,
    to_cpu,
    wait_device_ops,
    wait_for_compilations,
)
from torch_ltc.version import VERSION as __version__

# `import torch` imports this package, so modules that only some programs use are
# imported on first use.
if TYPE_CHECKING:
    from torch_ltc import debug
    from torch_ltc._backends.mlir_module import compile_mlir
    from torch_ltc._backends.registry import (
        BackendError,
        backends,
        register_backend,
        unregister_backend,
        use_backend,
    )
    from torch_ltc._capture.capture import CaptureMismatch, capture
    from torch_ltc._diagnostics.explanation import Explanation, explain
    from torch_ltc._export.export import ExportedProgram, export, export_step
    from torch_ltc.size_marks import mark_dynamic, mark_static

_MODULE_OF = {
    "BackendError": "_backends.registry",
    "CaptureMismatch": "_capture.capture",
    "Explanation": "_diagnostics.explanation",
    "ExportedProgram": "_export.export",
    "backends": "_backends.registry",
    "capture": "_capture.capture",
    "compile_mlir": "_backends.mlir_module",
    "debug": "debug",
    "mark_dynamic": "size_marks",
    "mark_static": "size_marks",
    "explain": "_diagnostics.explanation",
    "export": "_export.export",
    "export_step": "_export.export",
    "register_backend": "_backends.registry",
    "unregister_backend": "_backends.registry",
    "use_backend": "_backends.registry",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'torch_ltc' has no attribute '{name}'")
    module = importlib.import_module(f"torch_ltc.{_MODULE_OF[name]}")
    value = module if name == "debug" else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


__all__ = [
    "BackendError",
    "BackendUnavailable",
    "CaptureMismatch",
    "Explanation",
    "ExportedProgram",
    "__version__",
    "add_step_closure",
    "backends",
    "capture",
    "compile_log",
    "compile_mlir",
    "config",
    "debug",
    "explain",
    "export",
    "export_step",
    "fallbacks",
    "mark_dynamic",
    "mark_static",
    "mark_step",
    "metrics",
    "metrics_report",
    "name_parameters",
    "register_backend",
    "reset_metrics",
    "step_log",
    "sync",
    "syncs",
    "to_cpu",
    "unavailable_reason",
    "unregister_backend",
    "use_backend",
    "wait_device_ops",
    "wait_for_compilations",
]

# With TORCH_DEVICE_BACKEND_AUTOLOAD=0 this import registers the device.
unavailable_reason()
