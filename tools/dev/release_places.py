"""The places where ./dev release tries a wheel: minimal Debian root file systems with
nothing but Python and pip, interpreters of this machine, and an emulated AArch64 Debian."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import aarch64
import sources
from environment import TORCH
from steps import ROOT, STATE, StepFailed, once, run_logged, say

FOLDER = STATE / "release"
#: Packages for pip, which has no network access in a root file system.
WHEELS = FOLDER / "wheels"

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
class Place:
    """A system and a Python on it. Paths are those that programs in the place see."""

    system: str
    python: str

    #: The paths of the interpreter and of the folder of wheels.
    interpreter = "python3"
    wheels = "/wheels"

    @property
    def work(self) -> str:
        return "/root/trial"

    @property
    def work_here(self) -> Path:
        """The path of folder `work` for this process."""
        raise NotImplementedError

    @property
    def headers(self) -> Path:
        """The folder 'python3.N' that contains Python.h."""
        raise NotImplementedError

    def prepare(self) -> None:
        """Makes the place and its headers unless they exist."""

    def command(self, *arguments: str) -> list[str]:
        """Returns the command that runs `arguments` in the place, without the environment
        variables of this process."""
        raise NotImplementedError

    @property
    def venv_python(self) -> str:
        return f"{self.work}/venv/bin/python"

    def pip_install(self, *packages: str) -> None:
        """Installs packages, only from the folder of wheels."""
        pip = [self.venv_python, "-m", "pip", "install", "-q", "--no-cache-dir"]
        self.run(*pip, "--no-index", f"--find-links={self.wheels}", *packages)

    def make_environment(self, test_packages: Sequence[str]) -> None:
        """Creates a virtual environment with torch and the tests' packages."""
        self.run(self.interpreter, "-m", "venv", f"{self.work}/venv")
        self.pip_install(TORCH, *test_packages)

    def run(self, *arguments: str) -> str:
        """Runs a command in the place; returns its standard output. If the command fails,
        raises StepFailed with all output."""
        answer = subprocess.run(
            self.command(*arguments), capture_output=True, text=True, cwd="/"
        )
        if answer.returncode:
            raise StepFailed(
                f"on {self.system} with Python {self.python}: "
                f"{' '.join(arguments)} failed ({answer.returncode}):\n"
                f"{answer.stdout}\n{answer.stderr}"
            )
        return answer.stdout


@dataclass(frozen=True)
class Debian(Place):
    """A root file system made by debootstrap."""

    suite: str

    @property
    def root(self) -> Path:
        return FOLDER / self.suite

    @property
    def work_here(self) -> Path:
        return self.root / "root" / "trial"

    @property
    def headers(self) -> Path:
        # Python's headers are copied to a separate folder, because the compiler must not
        # find the system's other headers.
        return FOLDER / "headers" / f"python{self.python}"

    def _bootstrap(self) -> None:
        packages = f"python3,python3-venv,libpython{self.python}-dev"
        command = [
            "debootstrap", "--variant=minbase", f"--include={packages}",
            self.suite, str(self.root), sources.debian_mirror(),
        ]  # fmt: skip
        if not Path("/usr/share/debootstrap/scripts", self.suite).exists():
            command.append("/usr/share/debootstrap/scripts/sid")
        shutil.rmtree(self.root, ignore_errors=True)
        advice = "it needs root, and Debian's mirror must have this Python"
        run_logged(f"root-{self.suite}", command, advice)

    def prepare(self) -> None:
        once(f"root-{self.suite}", [self.python], self._bootstrap)
        include = self.root / "usr" / "include"
        for folder in include.rglob(f"python{self.python}"):
            target = self.headers.parent / folder.relative_to(include)
            shutil.copytree(folder, target, dirs_exist_ok=True)

    def command(self, *arguments: str) -> list[str]:
        return [
            "unshare", "-m", "sh", "-c", IN_ROOT, "sh", str(self.root), str(WHEELS),
            *arguments,
        ]  # fmt: skip


@dataclass(frozen=True)
class Interpreter(Place):
    """A Python of this machine, for versions that no release of Debian contains."""

    path: str
    include: str

    wheels = str(WHEELS)

    @property
    def interpreter(self) -> str:  # type: ignore[override]
        return self.path

    @property
    def work(self) -> str:
        return str(self.work_here)

    @property
    def work_here(self) -> Path:
        return FOLDER / f"trial-{self.python}"

    @property
    def headers(self) -> Path:
        return Path(self.include)

    def command(self, *arguments: str) -> list[str]:
        home = self.work_here / "home"
        return ["env", "-i", "PATH=/usr/bin:/bin", f"HOME={home}", *arguments]


@dataclass(frozen=True)
class Emulated(Place):
    """AArch64's root file system, whose programs qemu runs."""

    @property
    def work_here(self) -> Path:
        return aarch64.SYSROOT / "root" / "trial"

    @property
    def headers(self) -> Path:
        return aarch64.SYSROOT / "usr" / "include" / f"python{self.python}"

    def prepare(self) -> None:
        aarch64.prepare()

    def make_environment(self, test_packages: Sequence[str]) -> None:
        """Creates a virtual environment that uses the packages in /site, which contains
        torch without the gigabytes of CUDA that PyPI's torch requires. /site comes first,
        because torch requires a newer setuptools than venv installs."""
        self.run(self.interpreter, "-m", "venv", f"{self.work}/venv")
        packages = next((self.work_here / "venv").glob("lib/python*/site-packages"))
        first = "import sys; sys.path.insert(1, '/site')\n"
        (packages / "site.pth").write_text(first)

    def command(self, *arguments: str) -> list[str]:
        return [str(aarch64.IN_AARCH64), *arguments]


AARCH64 = Emulated("Debian 12, AArch64 (emulated)", aarch64.OWN_PYTHON)

#: forky isn't released yet, but is the only suite with Python 3.14.
DEBIANS = (
    Debian("Debian 12", "3.11", "bookworm"),
    Debian("Debian 13", "3.13", "trixie"),
    Debian("Debian testing", "3.14", "forky"),
)


def this_system() -> str:
    for line in Path("/etc/os-release").read_text().splitlines():
        if line.startswith("PRETTY_NAME="):
            return " ".join(line.partition("=")[2].strip('"').split()[::2][:2])
    return os.uname().sysname


def interpreter(path: str) -> Interpreter:
    code = "import sysconfig as s; print(s.get_python_version(), s.get_path('include'))"
    try:
        answer = subprocess.run(
            [path, "-c", code], capture_output=True, text=True, check=True
        ).stdout.split()
    except (OSError, subprocess.CalledProcessError) as error:
        raise StepFailed(f"--python={path} isn't a Python that runs: {error}") from None
    if not Path(answer[1], "Python.h").exists():
        raise StepFailed(f"--python={path}: {answer[1]} has no Python.h")
    return Interpreter(this_system(), answer[0], path, answer[1])


def download(
    python: Path, version: str, packages: Sequence[str], *options: str
) -> None:
    """Downloads packages and their dependencies for a version of Python into WHEELS."""
    command = [
        str(python), "-m", "pip", "download", "--only-binary=:all:",
        f"--python-version={version}", f"--dest={WHEELS}", f"--find-links={WHEELS}",
        *options, *packages,
    ]  # fmt: skip
    name = "-".join(["download", version, packages[0].partition("=")[0]])
    once(
        name,
        packages,
        lambda: run_logged(name, command, "pip must reach its index"),
    )


def copy_tests(place: Place) -> None:
    """Copies the examples and the tests into the place's work folder."""
    shutil.rmtree(place.work_here, ignore_errors=True)
    ignored = shutil.ignore_patterns("__pycache__")
    for name in ("e2e_tests", "examples"):
        shutil.copytree(ROOT / name, place.work_here / name, ignore=ignored)
    shutil.copy2(ROOT / "pyproject.toml", place.work_here)
    (place.work_here / "home").mkdir()


def install_emulated(wheel: Path) -> None:
    """Installs AArch64's wheel in its root file system for './dev test --full', and prints
    the doctor's report."""
    say(f"installing {wheel.name} under qemu ...")
    copy_tests(AARCH64)
    AARCH64.make_environment(())
    AARCH64.pip_install(f"{AARCH64.wheels}/{wheel.name}")
    print(AARCH64.run(AARCH64.venv_python, "-m", "torch_ltc.doctor"), end="")
