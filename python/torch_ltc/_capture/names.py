"""The names that the code of recorded calls reads: only objects with these names are
compared before a replay."""

from __future__ import annotations

from types import CodeType, SimpleNamespace
from typing import Any

import torch

from torch_ltc._capture.code import is_standard, is_torch, reads

# All attributes of torch.nn modules that a module's call may read by name.
_MODULE = frozenset(n for n in vars(torch.nn.Module()) if "state_dict" not in n)


class Names:
    """The names of everything that the code of recorded calls reads."""

    def __init__(self, codes: dict[CodeType, tuple[dict[str, Any], str]]) -> None:
        self.codes = codes
        #: Names of attributes (and, separately, of attributes that are only called) in the
        #: user's code and in all code.
        self.own: set[str] = set()
        self.own_methods: set[str] = set()
        self.all = set(_MODULE)
        self.all_methods: set[str] = set()
        self.by_name = ""
        for code, (_, line) in codes.items():
            found = reads(code)
            self.all |= found.attributes.keys()
            self.all_methods |= found.methods.keys()
            if not is_torch(code.co_filename):
                self.own |= found.attributes.keys()
                self.own_methods |= found.methods.keys()
                if found.by_name and not line.startswith("an unknown"):
                    self.by_name = self.by_name or line

    def wanted(self, owner: Any, name: Any, value: Any) -> bool:
        """Whether the code reads this entry of an object's namespace."""
        if type(name) is not str:
            return True
        is_library = type(owner).__module__.startswith("torch")
        if isinstance(owner, torch.nn.Module) or is_library:
            names, methods = self.all, self.all_methods
        else:
            names, methods = self.own, self.own_methods
        if name in names or (name in methods and callable(value)):
            return True
        if isinstance(owner, SimpleNamespace):  # `==` compares all attributes
            return True
        return bool(self.by_name) and not is_library

    def where(self, name: str) -> str:
        """Returns the line that reads an attribute or a global, for messages: the user's
        line if there is one."""
        library = ""
        for code, (_, line) in self.codes.items():
            found = reads(code)
            number = (
                found.attributes.get(name)
                or found.variables.get(name)
                or found.chains.get((name,))
            )
            if number is None:
                continue
            if not is_torch(code.co_filename) and not is_standard(code.co_filename):
                return f"{code.co_filename.rpartition('/')[2]}:{number}"
            library = library or line
        return library or "an unknown line"
