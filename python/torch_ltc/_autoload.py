"""Target of the `torch.backends` entry point.

This is a separate module because `import torch_ltc` imports torch, which calls the entry
point while `torch_ltc/__init__.py` is still being executed.
"""

from __future__ import annotations

import logging


def register() -> None:
    """Registers device "lazy". PyTorch calls this function at the end of `import torch`. An
    exception would make that import fail, so none may escape."""
    try:
        from torch_ltc import _backend

        if not _backend.load():
            logging.getLogger("torch_ltc").warning(_backend.unavailable_reason())
    except Exception as error:
        logging.getLogger("torch_ltc").warning(
            "torch_ltc could not be loaded, device 'lazy' is off: %s", error
        )
