"""./dev release: builds a wheel for several Pythons and tests it in root file systems.

Each root file system is a minimal Debian created by debootstrap, with only Python and
pip. The wheel is installed there together with torch; the doctor must report no
problem, and the digits example must train. Needs root.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from environment import PYTHON, TORCH
from steps import ROOT, STATE, StepFailed, once, run_logged, say

import build

FOLDER = STATE / "release"

#: Runs its remaining arguments in root file system $1, with folder $2 mounted at
#: /wheels, in a separate mount namespace.
IN_ROOT = """
set -e
root="$1"; wheels="$2"; shift 2
mount --make-rprivate /
mount --bind /proc "$root/proc"
mount --rbind /dev "$root/dev"
mkdir -p "$root/wheels"
mount --bind "$wheels" "$root/wheels"
exec chroot "$root" /usr/bin/env -i PATH=/usr/bin:/bin HOME=/root "$@"
"""


@dataclass(frozen=True)
class System:
    """A Debian release and the Python that it has."""

    suite: str
    python: str

    @property
    def root(self) -> Path:
        return FOLDER / self.suite

    @property
    def wheels(self) -> Path:
        """Packages that pip needs there, because it has no network."""
        return FOLDER / f"wheels-{self.python}"

    @property
    def headers(self) -> Path:
        return FOLDER / "headers" / f"python{self.python}"


#: bookworm's Python is that of development, whose module is always built.
SYSTEMS = (System("bookworm", "3.11"), System("trixie", "3.13"))


def _make_root(system: System) -> None:
    packages = f"python3,python3-venv,libpython{system.python}-dev"
    command = [
        "debootstrap", "--variant=minbase", f"--include={packages}",
        system.suite, str(system.root),
    ]  # fmt: skip
    shutil.rmtree(system.root, ignore_errors=True)
    run_logged(f"root-{system.suite}", command, "it needs root and debootstrap")


def _copy_headers(system: System) -> None:
    """Into a separate folder: the other headers belong to another system."""
    include = system.root / "usr" / "include"
    for folder in include.rglob(f"python{system.python}"):
        target = system.headers.parent / folder.relative_to(include)
        shutil.copytree(folder, target, dirs_exist_ok=True)


def _download(system: System) -> None:
    """torch and the dependencies of torch and of the wheel."""
    command = [
        str(PYTHON), "-m", "pip", "download", "--only-binary=:all:",
        f"--python-version={system.python}", f"--dest={system.wheels}",
        TORCH, "rich", "protobuf", "numpy", "scikit-learn",
    ]  # fmt: skip
    run_logged(f"download-{system.python}", command, "pip must reach its index")


def _run_in(system: System, *command: str) -> str:
    answer = subprocess.run(
        ["unshare", "-m", "sh", "-c", IN_ROOT, "sh", str(system.root),
         str(system.wheels), *command],
        capture_output=True, text=True,
    )  # fmt: skip
    if answer.returncode:
        raise StepFailed(
            f"in {system.suite}: {' '.join(command)} failed "
            f"({answer.returncode}):\n{answer.stdout}\n{answer.stderr}"
        )
    return answer.stdout


def _try(system: System, wheel: Path) -> str:
    """Installs and trains. Returns the row of the table."""
    say(f"trying {wheel.name} in {system.suite} ...")
    shutil.copy2(wheel, system.wheels)
    shutil.copy2(ROOT / "examples" / "train_digits.py", system.root / "root")
    shutil.rmtree(system.root / "v", ignore_errors=True)
    _run_in(system, "python3", "-m", "venv", "/v")
    install = ["/v/bin/pip", "install", "-q", "--no-index", "--find-links=/wheels"]
    _run_in(system, *install, TORCH, "numpy", "scikit-learn")
    started = time.monotonic()
    _run_in(system, *install, f"/wheels/{wheel.name}")
    seconds = time.monotonic() - started
    _run_in(system, "/v/bin/python", "-m", "torch_ltc.doctor")
    report = _run_in(system, "/v/bin/python", "/root/train_digits.py")
    accuracy = re.search(r"test accuracy\D+([\d.]+)%", report)
    if not accuracy or float(accuracy[1]) < 97:
        raise StepFailed(
            f"in {system.suite} the digits example didn't learn:\n{report}"
        )
    glibc = _run_in(system, "ldd", "--version").split("\n")[0].split()[-1]
    return (
        f"| Debian {system.suite} | {system.python} | {glibc} | {seconds:.0f} s "
        f"| {accuracy[1]} % |"
    )


def release() -> None:
    """The wheel, its checks (`dist/checks.md`) and its digest, in dist/."""
    if os.geteuid() or not shutil.which("debootstrap"):
        raise StepFailed(
            "step 'release' needs root and debootstrap\n"
            "  what to do: apt-get install debootstrap, and run as root"
        )
    FOLDER.mkdir(parents=True, exist_ok=True)
    for system in SYSTEMS:
        once(f"root-{system.suite}", [system.python], lambda s=system: _make_root(s))
        once(f"wheels-{system.python}", [TORCH], lambda s=system: _download(s))
        _copy_headers(system)
    own = f"{sys.version_info.major}.{sys.version_info.minor}"
    others = [system.headers for system in SYSTEMS if system.python != own]
    made = build.wheel(others)
    rows = [_try(system, made) for system in SYSTEMS]
    megabytes = made.stat().st_size / 1e6
    table = "\n".join(
        [
            f"`{made.name}`, {megabytes:.1f} MB",
            "",
            "| system | Python | glibc | install beside torch | digits |",
            "| --- | --- | --- | --- | --- |",
            *rows,
        ]
    )
    (made.parent / "checks.md").write_text(table + "\n")
    digest = hashlib.sha256(made.read_bytes()).hexdigest()
    (made.parent / "SHA256SUMS").write_text(f"{digest}  {made.name}\n")
    print(table)
