"""Calls functions when modules of other packages are imported."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any

Hook = Callable[[ModuleType], None]


class _Loader(importlib.abc.Loader):
    """Loads a module with its original loader, then calls the hook."""

    def __init__(self, loader: Any, hook: Hook) -> None:
        self.loader, self.hook = loader, hook

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        return self.loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__.loader = module.__loader__ = self.loader
        self.loader.exec_module(module)
        self.hook(module)


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self, hooks: Mapping[str, Hook]) -> None:
        self.hooks = hooks

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        hook = self.hooks.get(name)
        if hook is None:
            return None
        for finder in sys.meta_path:
            if not isinstance(finder, _Finder):
                spec = finder.find_spec(name, path, target)
                if spec and spec.loader:
                    spec.loader = _Loader(spec.loader, hook)
                    return spec
        return None


def install(hooks: Mapping[str, Hook]) -> None:
    """Calls each function in `hooks` with its module when the module is imported; at once
    if the module is already imported."""
    sys.meta_path.insert(0, _Finder(hooks))
    for name, hook in hooks.items():
        if name in sys.modules:
            hook(sys.modules[name])
