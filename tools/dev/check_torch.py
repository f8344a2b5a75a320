"""./dev check-torch VERSION: reports what to check before supporting another torch.

Installs that version in a separate environment and compares both versions of everything on
which torch_ltc relies: schemas and kernels of the ops that torch_ltc registers, the names
of torch that it replaces, and the headers that it includes. The report is
`.dev/check-torch/VERSION/report.md`, with the differences line by line.
"""

from __future__ import annotations

import difflib
import json
import re
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import environment
from environment import PYTHON
from steps import ROOT, STATE, StepFailed, exclusive, once, run_logged, say

import build

HERE = Path(__file__).resolve().parent
INCLUDE = re.compile(r'#include [<"]((?:torch|ATen|c10)/[^>"]+)')
REGISTERED = """
import json, torch, torch_ltc
torch.ones(2, device="lazy").sum().item()
keys = ("Lazy", "AutogradLazy")
registered = torch._C._dispatch_get_registrations_for_dispatch_key
print(json.dumps(sorted({op for key in keys for op in registered(key)})))
"""


@dataclass
class Section:
    """A section of the report: a line for each entry, then the details of all entries."""

    title: str
    entries: list[str] = field(default_factory=list)
    details: list[str] = field(default_factory=list)

    def add(self, entry: str, detail: Iterable[str] = ()) -> None:
        self.entries.append(entry)
        self.details += [line.rstrip("\n") for line in detail]

    def text(self) -> str:
        lines = [f"## {self.title}: {len(self.entries)}", ""]
        lines += [f"- {entry}" for entry in self.entries] + [""]
        if self.details:
            lines += ["```diff", *self.details, "```", ""]
        return "\n".join(lines)


def included_headers() -> list[str]:
    files = [*ROOT.glob("ltc_backend/**/*.cpp"), *ROOT.glob("ltc_backend/**/*.h")]
    return sorted({h for file in files for h in INCLUDE.findall(file.read_text())})


def _output(*command: str) -> str:
    answer = subprocess.run(
        command,
        capture_output=True,
        text=True,
        env={**environment.environment(), "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"},
    )
    if answer.returncode:
        last = "\n".join(answer.stderr.splitlines()[-10:])
        raise StepFailed(f"{' '.join(command)} failed:\n{last}")
    return answer.stdout


def wanted() -> dict[str, list[str]]:
    """Returns everything in torch on which the installed package relies."""
    ops = json.loads(_output(str(PYTHON), "-c", REGISTERED))
    names = _output(str(PYTHON), str(HERE / "replaced_names.py"))
    return {
        "ops": [op for op in ops if not op.startswith("torch_ltc::")] + ["*"],
        "names": [line.partition(" ")[2] for line in names.splitlines()],
        "headers": included_headers(),
    }


def facts(python: Path, request: dict[str, list[str]]) -> dict[str, Any]:
    answer = subprocess.run(
        [str(python), str(HERE / "torch_facts.py")],
        input=json.dumps(request),
        capture_output=True,
        text=True,
    )
    if answer.returncode:
        raise StepFailed(f"{python} failed:\n{answer.stderr[-2000:]}")
    return json.loads(answer.stdout)


def _difference(name: str, old: str, new: str) -> list[str]:
    return list(
        difflib.unified_diff(
            old.splitlines(), new.splitlines(), f"{name} now", f"{name} then", "", "", 1
        )
    )


def _compare_ops(
    ours: dict[str, Any], theirs: dict[str, Any], registered: set[str]
) -> list[Section]:
    gone = Section("missing registered ops (build fails or op falls back)")
    schema = Section("registered ops with a different schema (op table, tracer)")
    kernels = Section("registered ops with kernels at other keys (may decompose now)")
    new = Section("new aten ops (run eagerly until the op table has them)")
    for op, old in ours["schemas"].items():
        if op not in registered or old is None:
            continue
        then = theirs["schemas"].get(op)
        if then is None:
            gone.add(f"`{op}`")
        elif then != old:
            schema.add(f"`{op}`", [f"-{old}", f"+{then}"])
        elif theirs["kernels"][op] != ours["kernels"][op]:
            before, after = set(ours["kernels"][op]), set(theirs["kernels"][op])
            changes = [f"-{k}" for k in sorted(before - after)]
            changes += [f"+{k}" for k in sorted(after - before)]
            kernels.add(f"`{op}`: {' '.join(changes)}")
    known = ours["schemas"]
    for op, text in theirs["schemas"].items():
        if text and op not in known and ".out" not in op and not op.endswith("_out"):
            new.add(f"`{text}`")
    return [gone, schema, kernels, new]


def _compare_texts(
    ours: dict[str, str | None],
    theirs: dict[str, str | None],
    gone: Section,
    changed: Section,
) -> list[Section]:
    for name, old in ours.items():
        then = theirs.get(name)
        if old is None or then == old:
            continue
        shown = name.replace(" ", ".")
        if then is None:
            gone.add(f"`{shown}`")
        else:
            changed.add(f"`{shown}`", _difference(shown, old, then))
    return [gone, changed]


def compare(
    ours: dict[str, Any], theirs: dict[str, Any], registered: Iterable[str]
) -> list[Section]:
    """Returns the report's sections, the most urgent first."""
    ops = _compare_ops(ours, theirs, set(registered))
    names = _compare_texts(
        ours["names"],
        theirs["names"],
        Section("missing replaced names (import fails or a patch has no effect)"),
        Section("replaced names with a different source (review the patch)"),
    )
    headers = _compare_texts(
        ours["headers"],
        theirs["headers"],
        Section("missing included headers (build fails)"),
        Section("changed included headers"),
    )
    return [ops[0], names[0], headers[0], ops[1], ops[2], names[1], headers[1], ops[3]]


def _other_environment(version: str) -> Path:
    folder = STATE / "check-torch" / version
    python = folder / "venv" / "bin" / "python"

    def create() -> None:
        command = [sys.executable, "-m", "venv", "--clear", str(folder / "venv")]
        run_logged("check-torch", command, "install python3-venv")
        pip = [str(python), "-m", "pip", "install", "--disable-pip-version-check"]
        advice = (
            f"does the package index have torch {version}, and are 6 GB of disk free?"
        )
        packages = [f"torch=={version}", "numpy"]
        run_logged("check-torch", [*pip, *packages], advice, append=True)

    once(f"check-torch-{version}", [version, sys.version, str(ROOT)], create)
    return python


def check_torch(arguments: Sequence[str]) -> int:
    if len(arguments) != 1 or arguments[0].startswith("-"):
        say("usage: ./dev check-torch VERSION, e.g. 2.14.1")
        return 2
    version = arguments[0]
    build.build()
    with exclusive("check-torch"):
        other = _other_environment(version)
    request = wanted()
    ours, theirs = facts(PYTHON, request), facts(other, request)
    sections = compare(ours, theirs, request["ops"])
    report = STATE / "check-torch" / version / "report.md"
    title = f"# From torch {ours['version']} to {theirs['version']}\n\n"
    report.write_text(title + "\n".join(section.text() for section in sections))
    for section in sections:
        say(f"{len(section.entries):>4} {section.title}")
    say(f"report: {report.relative_to(ROOT)}")
    return 1 if any(section.entries for section in sections[:3]) else 0
