"""The stub file matches the bindings exactly."""

from __future__ import annotations

import ast
from pathlib import Path

import torch_ltc
from torch_ltc import _C


def _stub() -> ast.Module:
    path = Path(torch_ltc.__file__).with_name("_C.pyi")
    return ast.parse(path.read_text())


def test_functions() -> None:
    declared = {
        node.name
        for node in _stub().body
        if isinstance(node, ast.FunctionDef)
        or (isinstance(node, ast.ClassDef) and not node.bases)
    }
    offered = {
        name
        for name in dir(_C)
        if not name.startswith("_") and callable(getattr(_C, name))
    }
    assert declared == offered


def test_fields_of_records() -> None:
    fields = {
        node.name: {f.target.id for f in node.body if isinstance(f, ast.AnnAssign)}
        for node in _stub().body
        if isinstance(node, ast.ClassDef)
    }
    import torch

    (torch.ones(3, dtype=torch.int64, device="lazy") + 1).bincount()
    torch_ltc.mark_step(wait=True)
    for name, value in {
        "BuildInfo": _C.build_info(),
        "Option": _C.config_options()[0],
        "Timer": _C.timers()["execute"],
        "CallLogEntry": _C.fallback_log()[-1],
        "SyncEntry": _C.sync_log()[-1],
        "CompileEntry": _C.compile_log()[-1],
        "StepEntry": _C.step_log()[-1],
        "CacheInfo": _C.cache_info(),
    }.items():
        assert set(value) == fields[name], name
