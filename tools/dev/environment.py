"""Installs system packages and creates the virtual environments."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from steps import ROOT, StepFailed, forget, once, run_logged, say

VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"


@dataclass(frozen=True)
class Peer:
    """A project that tests use. It has a separate environment, because it contains another
    LLVM, or packages that would conflict with ours."""

    name: str
    packages: tuple[str, ...]
    #: The environment variable that passes the peer's Python to the tests.
    variable: str
    pip_options: tuple[str, ...] = ()

    @property
    def folder(self) -> Path:
        return ROOT / f".venv-{self.name}"

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"


# e2e_tests/peers.py searches the same folders, so that pytest finds the peers without
# ./dev, too. --no-deps: torch-mlir's parser needs neither torch nor numpy.
TORCH_MLIR = Peer(
    "torch-mlir", ("torch-mlir==20261001",), "TORCH_LTC_PARSER_PYTHON", ("--no-deps",)
)
#: './dev test' installs torch-mlir. Tests of a peer that isn't installed are skipped.
PEERS = (
    TORCH_MLIR,
    Peer(
        "iree",
        ("iree-base-compiler==3.13.0", "iree-base-runtime==3.13.0"),
        "TORCH_LTC_IREE_PYTHON",
    ),
    Peer("jax", ("jax==0.10.2", "jaxlib==0.10.2"), "TORCH_LTC_JAX_PYTHON"),
)

# Required packages of Debian 12: clang, g++ for the sanitizers, LLVM and MLIR 22 with
# the dependencies of their CMake files, protobuf, GoogleTest.
PACKAGES = [
    "ccache",
    "clang-22",
    "g++",
    "git",
    "libcurl4-openssl-dev",
    "libedit-dev",
    "libgtest-dev",
    "libmlir-22-dev",
    "libprotobuf-dev",
    "libxml2-dev",
    "libzstd-dev",
    "lld-22",
    "llvm-22-dev",
    "llvm-22-tools",
    "mlir-22-tools",
    "protobuf-compiler",
    "zlib1g-dev",
]

TORCH = "torch==2.13.0"

PIP_ADVICE = (
    "is the package index reachable and the disk not full? Then call again; "
    "'rm -r .venv' starts from scratch"
)


def _installed(package: str) -> bool:
    query = ["dpkg-query", "-W", "-f=${db:Status-Status}", package]
    answer = subprocess.run(query, capture_output=True, text=True)
    return answer.returncode == 0 and answer.stdout == "installed"


def _missing_packages() -> list[str]:
    if not shutil.which("dpkg-query"):
        return []
    missing = [package for package in PACKAGES if not _installed(package)]
    # The files are checked, not the packages: a Python that isn't Debian's has its own
    # headers and modules.
    if not Path(sysconfig.get_path("include"), "Python.h").exists():
        missing.append("python3-dev")
    probe = [sys.executable, "-c", "import ensurepip, venv"]
    if subprocess.run(probe, capture_output=True).returncode:
        missing.append("python3-venv")
    return missing


def system_packages() -> None:
    """Installs missing system packages with apt, as root or through sudo."""
    if not shutil.which("dpkg-query"):
        say(
            "this isn't Debian, so system packages can't be checked; needed are "
            "the equivalents of: " + " ".join(PACKAGES)
        )
        return
    missing = _missing_packages()
    if not missing:
        return
    command = ["apt-get", "install", "-y", "--no-install-recommends", *missing]
    by_hand = "apt-get update && " + " ".join(command)
    prefix: list[str] = []
    if os.geteuid() != 0:
        sudo = shutil.which("sudo")
        if (
            not sudo
            or subprocess.run([sudo, "-n", "true"], capture_output=True).returncode
        ):
            raise StepFailed(
                "step 'system packages' needs root: "
                f"{', '.join(missing)} must be installed and this user can't.\n"
                f"  what to do: run as root: {by_hand}"
            )
        prefix = [sudo, "-n"]
    say(f"system packages: installing {' '.join(missing)} ...")
    advice = f"look at the lines above; by hand: {by_hand}"
    quiet = {"DEBIAN_FRONTEND": "noninteractive"}
    # sudo drops the environment, so env sets the variable in the command.
    front = [*prefix, "env", "DEBIAN_FRONTEND=noninteractive"]
    run_logged("system-packages", [*front, "apt-get", "update"], advice, quiet)
    run_logged("system-packages", [*front, *command], advice, quiet, append=True)


def make_venv(folder: Path, name: str) -> None:
    # --clear: a folder left by an interrupted call may be incomplete.
    command = [sys.executable, "-m", "venv", "--clear", str(folder)]
    advice = "install python3-venv, or name another Python: PYTHON=... ./dev build"
    run_logged(name, command, advice)


def _requirements(name: str, file: str) -> None:
    """Installs the pinned packages of a file; constraints.txt keeps torch unchanged."""
    command = [
        str(PYTHON), "-m", "pip", "install", "--disable-pip-version-check",
        "-r", str(ROOT / file), "-c", str(ROOT / "constraints.txt"),
    ]  # fmt: skip
    once(name, [ROOT / file], lambda: run_logged(name, command, PIP_ADVICE))


def virtual_environment() -> None:
    """Creates `.venv` and installs what the build needs: first torch, then the other
    packages with torch pinned."""
    if not PYTHON.exists():
        forget("virtual-environment")
    identity = [sys.version, os.path.realpath(sys.executable), str(ROOT)]

    def create() -> None:
        make_venv(VENV, "virtual-environment")
        for packages in ("torch", "requirements", "requirements-test"):
            forget(packages)

    once("virtual-environment", identity, create)
    pip = [str(PYTHON), "-m", "pip", "install", "--disable-pip-version-check"]
    once("torch", [TORCH], lambda: run_logged("torch", [*pip, TORCH], PIP_ADVICE))
    _requirements("requirements", "requirements.txt")


def test_packages() -> None:
    """Installs the additional packages of tests, checks and benchmarks."""
    _requirements("requirements-test", "requirements-test.txt")


def prepare() -> None:
    """Installs system packages and `.venv` at the same time, because each uses one
    processor; one after the other if Python's module venv is missing."""
    if "python3-venv" in _missing_packages():
        system_packages()
        virtual_environment()
        return
    with ThreadPoolExecutor(max_workers=1) as beside:
        packages = beside.submit(system_packages)
        virtual_environment()
        packages.result()


def peer_environment(peer: Peer) -> None:
    """Creates the environment of a peer."""
    if not peer.python.exists():
        forget(peer.name)

    def create() -> None:
        make_venv(peer.folder, peer.name)
        pip = [str(peer.python), "-m", "pip", "install", "--disable-pip-version-check"]
        advice = "is the package index reachable? Then call again"
        command = [*pip, *peer.pip_options, *peer.packages]
        run_logged(peer.name, command, advice, append=True)

    once(peer.name, [*peer.packages, sys.version, str(ROOT)], create)


def environment() -> dict[str, str]:
    """Returns the variables for everything that runs in the virtual environment."""
    return {
        "PATH": f"{VENV / 'bin'}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
        "VIRTUAL_ENV": str(VENV),
        "CCACHE_DIR": os.environ.get("CCACHE_DIR", str(ROOT / ".dev" / "ccache")),
    }


def processors() -> int:
    return len(os.sched_getaffinity(0))


def build_jobs() -> int:
    """Returns the number of jobs: one for each processor, limited by memory, because
    compiling a file that includes MLIR takes 1.5 GB."""
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return max(1, min(processors(), int(pages / 1.8e9)))
