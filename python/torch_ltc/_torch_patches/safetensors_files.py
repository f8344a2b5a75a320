"""Makes the safetensors library, which has a list of torch's devices, accept
`device="lazy"`."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import torch


class _LazyPart:
    """A tensor in a file, whose slices are moved to device lazy as they are read."""

    def __init__(self, part: Any) -> None:
        self._part = part

    def __getitem__(self, index: Any) -> torch.Tensor:
        return self._part[index].to("lazy")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._part, name)


class _LazyFile:
    """An open file whose tensors are moved to device lazy as they are read."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def __enter__(self) -> _LazyFile:
        self._file.__enter__()
        return self

    def __exit__(self, *error: Any) -> Any:
        return self._file.__exit__(*error)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def get_tensor(self, name: str) -> torch.Tensor:
        return self._file.get_tensor(name).to("lazy")

    def get_tensors(self, *names: Any) -> dict[str, torch.Tensor]:
        tensors = self._file.get_tensors(*names)
        return {name: tensor.to("lazy") for name, tensor in tensors.items()}

    def get_slice(self, name: str) -> _LazyPart:
        return _LazyPart(self._file.get_slice(name))


def _wrap_open(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original, updated=())
    def safe_open(
        filename: Any, framework: Any, device: Any = "cpu", **kwargs: Any
    ) -> Any:
        is_name = isinstance(device, (str, torch.device))
        if not is_name or str(device).partition(":")[0] != "lazy":
            return original(filename, framework, device=device, **kwargs)
        if torch.device(device).index not in (None, 0):
            raise RuntimeError(
                f"There is one lazy device, 'lazy:0', but got '{device}'."
            )
        return _LazyFile(original(filename, framework, device="cpu", **kwargs))

    return safe_open


def install(module: ModuleType) -> None:
    original = module.safe_open
    replaced = _wrap_open(original)
    for other in (module, sys.modules.get("safetensors.torch")):
        if other is not None and getattr(other, "safe_open", None) is original:
            other.safe_open = replaced  # type: ignore[attr-defined]
