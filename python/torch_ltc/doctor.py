"""Reports in plain words what is installed and whether it is compatible.

    python -m torch_ltc.doctor [--json]

The exit code is 0 if device "lazy" can be used, and 1 otherwise. Each check is
independent, so that a problem doesn't hide the next. `--json` prints a JSON object:
"version", "ready", and "findings", a list of objects with "check", "ok", "fatal", "text".
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from torch_ltc.version import REQUIRED_TORCH, VERSION

# The input of a small program (a product and a sum) that is traced, compiled and run.
_PROBE = (3.0, 4.0)


@dataclass
class Finding:
    """One line of the report. A problem affects the exit code only if `fatal` is set."""

    ok: bool
    what: str
    text: str
    fatal: bool = True


def _python() -> Finding:
    version = platform.python_version()
    ok = sys.version_info[:2] >= (3, 10)
    remedy = "" if ok else "; torch_ltc needs 3.10 or newer"
    return Finding(ok, "Python", f"{version} at {sys.executable}{remedy}")


def _torch() -> Finding:
    try:
        installed = importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        text = f"not installed; run 'pip install torch=={REQUIRED_TORCH}'"
        return Finding(False, "torch", text)
    from torch_ltc._backend import torch_version_problem

    problem = torch_version_problem(installed)
    return Finding(not problem, "torch", problem or f"{installed}, as needed")


def _entry_point() -> Finding:
    import torch

    names = [e.value for e in importlib.metadata.entry_points(group="torch.backends")]
    if "torch_ltc._autoload:register" in names:
        if not torch._is_device_backend_autoload_enabled():
            text = (
                "installed, but TORCH_DEVICE_BACKEND_AUTOLOAD keeps torch from "
                "using it: programs must 'import torch_ltc'"
            )
            return Finding(False, "autoload", text, fatal=False)
        return Finding(True, "autoload", "'import torch' makes device 'lazy' known")
    text = (
        "the package isn't installed (it is only on the path), so programs must "
        "'import torch_ltc' themselves; './dev build' or 'pip install' of the "
        "wheel installs it"
    )
    return Finding(False, "autoload", text, fatal=False)


def _backend() -> Finding:
    from torch_ltc import _backend

    reason = _backend.unavailable_reason()
    if reason:
        return Finding(False, "backend", reason)
    info = _backend.bindings().build_info()
    if info["torch"].split("+")[0] != REQUIRED_TORCH:
        text = (
            f"compiled against torch {info['torch']}, but this package is for "
            f"{REQUIRED_TORCH}; build again"
        )
        return Finding(False, "backend", text)
    text = f"torch_ltc {info['version']}, built by {info['compiler']}"
    return Finding(True, "backend", text)


def _libraries() -> Finding:
    from torch_ltc._backend import bindings

    info = bindings().build_info()
    text = f"LLVM {info['llvm']}, oneDNN {info['onednn']}, protobuf {info['protobuf']}"
    return Finding(True, "libraries", text)


def _compiler() -> Finding:
    from torch_ltc._backend import bindings

    return Finding(True, "compiler", f"loads from {bindings().load_compiler()}")


def _cpu() -> Finding:
    from torch_ltc._backend import bindings

    info = bindings().build_info()
    features = info["cpu_features"].split(",")
    known = ("avx512f", "avx2", "sve", "neon")
    vector = next((name for name in known if f"+{name}" in features), "")
    if not vector and platform.machine() == "aarch64":
        vector = "neon"  # each AArch64 processor supports it
    text = f"{info['cpu_name']}, vectors: {vector or 'SSE only, so expect low speed'}"
    return Finding(bool(vector), "CPU", text, fatal=False)


def _threads() -> Finding:
    import torch

    available = len(os.sched_getaffinity(0))
    used = torch.get_num_threads()
    text = f"{used} of {available} processors (torch.set_num_threads changes it)"
    if used > available:
        text += "; more threads than processors make every step slower"
    return Finding(used <= available, "threads", text, fatal=False)


def _cache() -> Finding:
    from torch_ltc._backend import bindings
    from torch_ltc._diagnostics.report import bytes_text

    info = bindings().cache_info(open=True)
    if not info["directory"]:
        text = "in memory only: each process compiles again (config.cache)"
        return Finding(True, "cache", text, fatal=False)
    if not info["writable"]:
        text = f"{info['directory']} can't be written ({info['problem']}), so each process compiles again; set TORCH_LTC_CACHE_DIR to a writable folder"
        return Finding(False, "cache", text, fatal=False)
    limit = bytes_text(info["max_bytes"]) if info["max_bytes"] else "no limit"
    text = f"{info['directory']}, {bytes_text(info['bytes'])} of {limit}"
    return Finding(True, "cache", text)


def _temporary_folder() -> Finding:
    with tempfile.NamedTemporaryFile() as file:
        folder = Path(file.name).parent
    return Finding(True, "temporary", f"{folder} can be written", fatal=False)


def _program() -> Finding:
    import torch

    from torch_ltc import config
    from torch_ltc.metrics import metrics

    rejected = metrics()["compile_failures"]
    with config(tier="compile", cache=False):
        x = torch.tensor(_PROBE, device="lazy")
        result = (x * x).sum().item()
    expected = sum(value * value for value in _PROBE)
    if result != expected:
        text = f"a small program returned {result} instead of {expected}"
        return Finding(False, "a program", text)
    if metrics()["compile_failures"] != rejected:
        text = "a small program couldn't be compiled: see the warning above"
        return Finding(False, "a program", text)
    return Finding(True, "a program", "traced, compiled and run with the right result")


_ALWAYS: list[Callable[[], Finding]] = [_python, _torch, _entry_point, _backend]
_WITH_BACKEND: list[Callable[[], Finding]] = [
    _libraries, _compiler, _cpu, _threads, _cache, _temporary_folder, _program,
]  # fmt: skip


def _run(check: Callable[[], Finding]) -> Finding:
    try:
        return check()
    except Exception as error:  # a check that can't even run is a finding
        name = check.__name__.strip("_").replace("_", " ")
        return Finding(False, name, f"{error}")


def examine() -> list[Finding]:
    """Runs the checks and returns their findings. Checks that need the backend only run if
    it can be used."""
    findings = [_run(check) for check in _ALWAYS]
    if all(f.ok or not f.fatal for f in findings):
        findings += [_run(check) for check in _WITH_BACKEND]
    return findings


def _write_json(findings: list[Finding], ready: bool) -> None:
    rows = [
        {"check": f.what, "ok": f.ok, "fatal": f.fatal, "text": f.text}
        for f in findings
    ]
    report = {"version": VERSION, "ready": ready, "findings": rows}
    print(json.dumps(report, indent=2))


def _write_text(findings: list[Finding], failed: list[Finding]) -> None:
    print(f"torch_ltc {VERSION}")
    for finding in findings:
        mark = "ok  " if finding.ok else ("FAIL" if finding.fatal else "note")
        print(f"  {mark}  {finding.what + ':':<12} {finding.text}")
    if failed:
        print(f"Device 'lazy' can't be used: {failed[0].what}: {failed[0].text}")
    else:
        print("Device 'lazy' is ready.")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m torch_ltc.doctor",
        description="Checks what is installed and whether it is compatible.",
    )
    parser.add_argument("--json", action="store_true", help="print a JSON object")
    options = parser.parse_args(arguments)
    findings = examine()
    failed = [f for f in findings if f.fatal and not f.ok]
    if options.json:
        _write_json(findings, not failed)
    else:
        _write_text(findings, failed)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
