"""Finds the names of globals and attributes that Python code reads, from its bytecode."""

from __future__ import annotations

import dis
import os
import sys
import sysconfig
from collections.abc import Iterator
from functools import lru_cache
from types import CodeType, FrameType
from typing import NamedTuple

import torch

_TORCH = os.path.dirname(os.path.abspath(torch.__file__)) + os.sep
_OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_STANDARD = sysconfig.get_paths()["stdlib"] + os.sep
_PACKAGES = sysconfig.get_paths()["purelib"] + os.sep
# Modules of the standard library that read attributes by name only from wrappers that they
# create.
_HARMLESS = ("functools.py", "contextlib.py", "enum.py", "typing.py", "abc.py")
_BY_NAME = {"getattr", "setattr", "hasattr", "delattr", "vars", "dir"}


@lru_cache(maxsize=4096)
def is_torch(filename: str) -> bool:
    """Whether a file belongs to torch or to this package, whose globals don't change."""
    return filename.startswith((_TORCH, _OURS))


@lru_cache(maxsize=4096)
def is_standard(filename: str) -> bool:
    """Whether a file belongs to the standard library. What its code does is attributed to
    the nearest caller outside the library."""
    if filename.startswith("<frozen "):
        return True
    return filename.startswith(_STANDARD) and not filename.startswith(_PACKAGES)


@lru_cache(maxsize=4096)
def is_opaque(filename: str) -> bool:
    """Whether a file's code may pass its arguments to C functions that read numbers: the
    standard library and NumPy."""
    numpy = sys.modules.get("numpy")
    return is_standard(filename) or (
        numpy is not None and filename.startswith(os.path.dirname(numpy.__file__))
    )


def acts_for_torch(frame: FrameType | None) -> bool:
    """Whether the nearest caller outside the standard library belongs to torch."""
    while frame is not None and is_standard(frame.f_code.co_filename):
        frame = frame.f_back
    return frame is not None and is_torch(frame.f_code.co_filename)


def user_line(frame: FrameType | None) -> str:
    """Returns the line of the nearest caller that belongs neither to torch nor to the
    standard library: "train.py:12"."""
    while frame is not None:
        name = frame.f_code.co_filename
        if not is_torch(name) and not is_standard(name):
            return f"{os.path.basename(name)}:{frame.f_lineno}"
        frame = frame.f_back
    return "an unknown line"


class Reads(NamedTuple):
    """The names in one code object, each with its first line."""

    #: Paths from a global: ("cfg", "scale").
    chains: dict[tuple[str, ...], int]
    #: Attributes that are read or written, and attributes that are only called.
    attributes: dict[str, int]
    methods: dict[str, int]
    #: Variables of enclosing functions.
    variables: dict[str, int]
    #: Modules that the code may import, as they are named in `import` statements.
    imports: set[str]
    #: The first line that may use an attribute whose name isn't in the code; 0 if there
    #: is none.
    by_name: int


def _instructions(code: CodeType) -> Iterator[tuple[dis.Instruction, int]]:
    line = code.co_firstlineno
    for instruction in dis.get_instructions(code):
        line = instruction.positions.lineno if instruction.positions else line
        yield instruction, line or code.co_firstlineno


def _is_method(instruction: dis.Instruction) -> bool:
    """Whether the attribute is loaded only to be called."""
    if instruction.opname == "LOAD_METHOD":
        return True
    return (
        instruction.opname == "LOAD_ATTR"
        and sys.version_info >= (3, 12)
        and bool((instruction.arg or 0) & 1)
    )


def _is_path(text: str) -> bool:
    return all(part.isidentifier() for part in text.split("."))


@lru_cache(maxsize=16384)
def reads(code: CodeType) -> Reads:
    chains: dict[tuple[str, ...], int] = {}
    attributes: dict[str, int] = {}
    methods: dict[str, int] = {}
    variables: dict[str, int] = {}
    imports: set[str] = set()
    chain: tuple[str, ...] = ()
    by_name, pending, has_constant = 0, False, False
    for instruction, line in _instructions(code):
        name, kind = instruction.argval, instruction.opname
        if kind in ("LOAD_GLOBAL", "LOAD_NAME", "STORE_GLOBAL", "DELETE_GLOBAL"):
            chain = (name,)
            chains.setdefault(chain, line)
            if name in _BY_NAME:
                pending, has_constant = True, False
            continue
        if kind in ("LOAD_ATTR", "LOAD_METHOD", "IMPORT_FROM", "LOAD_SUPER_ATTR"):
            if chain:
                chain = (*chain, name)
                chains.setdefault(chain, line)
            (methods if _is_method(instruction) else attributes).setdefault(name, line)
            if name == "__dict__":
                by_name = by_name or line
            continue
        if kind in ("LOAD_DEREF", "STORE_DEREF"):
            variables.setdefault(name, line)
        elif kind in ("STORE_ATTR", "DELETE_ATTR"):
            attributes.setdefault(name, line)
        elif kind == "IMPORT_NAME":
            imports.add(name)
        elif kind == "LOAD_CONST" and isinstance(name, str) and _is_path(name):
            for part in name.split("."):  # as operator.attrgetter reads it
                attributes.setdefault(part, line)
            imports.add(name)
            has_constant = True
        elif kind.startswith("CALL") and pending:
            if not has_constant:
                by_name = by_name or line
            pending = False
        chain = ()
    if code.co_filename.endswith(_HARMLESS):
        by_name = 0
    return Reads(chains, attributes, methods, variables, imports, by_name)


def compares_types(code: CodeType) -> bool:
    """Whether the user's code may ask whether a number's type is exactly int or float."""
    names = code.co_names
    return (
        "type" in names
        and ("int" in names or "float" in names)
        and not is_torch(code.co_filename)
        and not is_standard(code.co_filename)
    )
