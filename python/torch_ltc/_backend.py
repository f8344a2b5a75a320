"""Loads the bindings and registers device "lazy" with PyTorch, or reports why this fails.

Nothing here raises during `import torch`: a problem is stored as one sentence
(`unavailable_reason`) and raised when this package first needs device "lazy".
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import threading
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from torch_ltc.version import REQUIRED_TORCH, VERSION

_lock = threading.RLock()
_first_tensor_lock = threading.RLock()
_bindings: ModuleType | None = None
_reason: str | None = None
_is_ready_for_tensors = False


class BackendUnavailable(RuntimeError):
    """Raised if device "lazy" can't be used in this process; the text says why."""


def torch_version_problem(installed: str) -> str:
    """Returns a sentence if `installed` isn't the torch version of this build, else ""."""
    if installed.split("+")[0] == REQUIRED_TORCH:
        return ""
    return (
        f"torch_ltc {VERSION} only works with torch {REQUIRED_TORCH}, but torch "
        f"{installed} is installed, so device 'lazy' is off; run "
        f"'pip install torch=={REQUIRED_TORCH}' to use it, or 'pip install torch_ltc "
        f"torch=={installed.split('+')[0]}' to get the wheel for that torch."
    )


def _load() -> str:
    """Imports and initializes the bindings; returns a sentence with the problem, or ""."""
    global _bindings
    import torch

    problem = torch_version_problem(torch.__version__)
    if problem:
        return problem
    try:
        bindings = importlib.import_module("torch_ltc._C")
    except ModuleNotFoundError as error:
        if error.name != "torch_ltc._C":
            raise
        return (
            "torch_ltc's compiled part (torch_ltc/_C) is missing, so device "
            "'lazy' is off; run './dev build' in the source folder, or install "
            "the wheel."
        )
    except ImportError as error:
        return (
            f"torch_ltc's compiled part can't be loaded ({error}), so device "
            "'lazy' is off; 'python -m torch_ltc.doctor' says what is missing."
        )
    from torch_ltc._diagnostics import messages

    bindings.set_log_hook(messages.log_hook)
    bindings.initialize()
    _bindings = bindings
    return ""


def _connect() -> None:
    """Performs the registrations in Python, after those in C++."""
    from torch_ltc import _torch_patches, device_module
    from torch_ltc._torch_patches import naming

    device_module.install()
    _torch_patches.install_at_import()
    bindings().set_first_tensor_hook(_before_first_tensor)
    bindings().set_backend_finder(_find_backend)
    naming.refresh()
    if bindings().config_get("dump"):  # TORCH_LTC_DUMP: writes pages at exit
        atexit.register(_write_dump_pages)


def _before_first_tensor() -> None:
    """Installs what only lazy tensors need; returns when everything is installed. Each
    thread that creates a lazy tensor meanwhile calls this function, too."""
    global _is_ready_for_tensors
    # A thread that waits for the lock releases the GIL, which the lock's owner needs. This
    # isn't the lock of `load`, which could deadlock: its owner may be importing this
    # package.
    with _first_tensor_lock:
        if _is_ready_for_tensors:
            return
        _is_ready_for_tensors = True  # for lazy tensors that the calls below create
        from torch_ltc import _torch_patches
        from torch_ltc._decompositions import registration

        registration.install()
        _torch_patches.install_at_first_tensor()


def _find_backend(name: str) -> None:
    """Registers the installed backend `name`, so that TORCH_LTC_BACKEND can name it."""
    from torch_ltc._backends.registry import find_installed

    find_installed(name)


def _write_dump_pages() -> None:
    from pathlib import Path

    from torch_ltc.dump_page import write_pages

    folder = bindings().config_get("dump")
    if folder:
        with contextlib.suppress(ValueError):  # no dump, or a reported failure
            write_pages(Path(folder))


@contextlib.contextmanager
def _without_collections() -> Iterator[None]:
    """Switches the garbage collector off in a `with` block: during `import torch`, it would
    search torch's objects, which takes a sixth of the time of this package's import."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def load() -> bool:
    """Registers the backend once per process; returns whether it is usable."""
    global _reason
    with _lock:
        if _reason is None:
            _reason = ""  # modules that are imported below may call `load` again
            try:
                with _without_collections():
                    _reason = _load()
                    if not _reason:
                        _connect()
            except Exception as error:
                _reason = f"torch_ltc could not be initialized: {error}"
        return _bindings is not None and not _reason


def unavailable_reason() -> str:
    """Returns the reason why device "lazy" can't be used, or "" if it can."""
    load()
    return _reason or ""


def bindings() -> Any:
    """Returns the initialized module `torch_ltc._C`. Raises BackendUnavailable if device
    "lazy" can't be used."""
    if _bindings is not None:
        return _bindings
    if not load():
        raise BackendUnavailable(_reason)
    return _bindings
