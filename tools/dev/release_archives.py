"""Handles the files that ./dev release publishes: checks the wheel, makes the source
distribution, notes and digests, and sets the version, which only version.py contains."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import re
import subprocess
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Sequence
from pathlib import Path

from environment import PYTHON, TORCH, VENV, make_venv
from steps import ROOT, STATE, StepFailed, once, run_logged, say

DIST = ROOT / "dist"
VERSION_FILE = ROOT / "python" / "torch_ltc" / "version.py"
CHANGELOG = ROOT / "CHANGELOG.md"
LARGEST_WHEEL = 60e6
#: The glibc of Ubuntu 22.04, the oldest supported system.
NEWEST_GLIBC = (2, 35)

#: The libraries that contain LLVM, MLIR and protobuf. They may only export names that start
#: with "ltc"; other libraries may not export what FOREIGN matches.
SELF_CONTAINED = ("libltc_runtime.so", "libltc_mlir_lowering.so")
FOREIGN = re.compile(r"\b_ZN?K?\d*(4llvm|4mlir|6google8protobuf)|\bLLVM\w|\bmlir[A-Z]")


def version() -> str:
    return re.search(r'^VERSION = "(.+)"', VERSION_FILE.read_text(), re.M)[1]


def set_version(new: str) -> None:
    """Writes the version to version.py, and begins its section of the changelog. Raises
    StepFailed for an invalid version."""
    if not re.fullmatch(r"\d+\.\d+\.\d+((a|b|rc)\d+)?", new):
        raise StepFailed(f"'{new}' isn't a version such as 0.2.0 or 0.2.0rc1")
    changes = CHANGELOG.read_text()
    if f"\n## {new}\n" in changes:
        return
    text = VERSION_FILE.read_text()
    VERSION_FILE.write_text(text.replace(f'"{version()}"', f'"{new}"', 1))
    heading = "\n## Unreleased\n"
    CHANGELOG.write_text(changes.replace(heading, f"{heading}\n## {new}\n", 1))


def write_notes() -> None:
    """Writes NOTES.md: what the changelog lists as unreleased, or else the version's
    section."""
    sections = re.split(r"^## (.+)\n", CHANGELOG.read_text(), flags=re.M)
    texts = dict(zip(sections[1::2], sections[2::2], strict=True))
    text = texts.get("Unreleased", "").strip() or texts.get(version(), "").strip()
    (DIST / "NOTES.md").write_text(f"# torch_ltc {version()}\n\n{text}\n")


def write_digests(files: Sequence[Path]) -> None:
    rows = (f"{hashlib.sha256(f.read_bytes()).hexdigest()}  {f.name}\n" for f in files)
    (DIST / "SHA256SUMS").write_text("".join(rows))


def source_date() -> str:
    """Returns the time of the last commit, which archives contain instead of the time of
    the build."""
    command = ["git", "log", "-1", "--format=%ct"]
    answer = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    return answer.stdout.strip() or str(int(VERSION_FILE.stat().st_mtime))


def _exports(library: Path) -> list[str]:
    command = ["nm", "-D", "--defined-only", "--format=posix", str(library)]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    return [line.split()[0] for line in answer.stdout.splitlines()]


def _glibc(library: Path) -> tuple[int, ...]:
    """Returns the newest glibc version among the symbols that a library uses."""
    command = ["readelf", "--version-info", "--wide", str(library)]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    found = re.findall(r"GLIBC_(\d+)\.(\d+)", answer.stdout)
    return max(((int(major), int(minor)) for major, minor in found), default=(0, 0))


def problems_of(wheel: Path) -> list[str]:
    """Returns the reasons why a wheel must not be published."""
    problems = []
    if wheel.stat().st_size > LARGEST_WHEEL:
        problems.append(f"it is larger than {LARGEST_WHEEL / 1e6:.0f} MB")
    with tempfile.TemporaryDirectory() as folder:
        zipfile.ZipFile(wheel).extractall(folder)
        libraries = [p for p in Path(folder).rglob("*.so*") if p.is_file()]
        for library in libraries:
            if library.parent.name == "torch_ltc.libs":
                problems.append(f"it needs {library.name} of the system")
                continue
            exports = _exports(library)
            # If a library contained this path, builds in other folders would have different
            # bytes.
            if bytes(ROOT) in library.read_bytes():
                problems.append(f"{library.name} contains the path {ROOT}")
            if library.name in SELF_CONTAINED:
                foreign = [s for s in exports if not s.startswith("ltc")]
            elif library.name.startswith(("libtorch_ltc", "_C")):
                foreign = [s for s in exports if FOREIGN.search(s)]
            else:
                continue
            if foreign:
                problems.append(f"{library.name} exports {', '.join(foreign[:3])}")
        for library in libraries:
            if (needed := _glibc(library)) > NEWEST_GLIBC:
                problems.append(f"{library.name} needs glibc {needed}")
    return problems


def check_wheel(wheel: Path) -> None:
    if problems := problems_of(wheel):
        raise StepFailed(f"{wheel.name} can't be published: " + "; ".join(problems))
    say(f"{wheel.name}: exports, size, glibc and paths are right")


def _normalized(archive: Path) -> bytes:
    """Returns the compressed tar archive with sorted members, and without the time and the
    user of the build."""
    date = int(source_date())
    plain = io.BytesIO()
    with (
        tarfile.open(archive) as old,
        tarfile.open(fileobj=plain, mode="w", format=tarfile.PAX_FORMAT) as new,
    ):
        for member in sorted(old.getmembers(), key=lambda member: member.name):
            data = old.extractfile(member) if member.isfile() else None
            member.mtime, member.uid, member.gid = date, 0, 0
            member.uname = member.gname = ""
            member.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
            member.pax_headers = {}
            new.addfile(member, data)
    return gzip.compress(plain.getvalue(), mtime=date)


def source_distribution() -> Path:
    """Builds dist/torch_ltc-VERSION.tar.gz, with the same bytes for the same sources."""
    DIST.mkdir(exist_ok=True)
    for old in DIST.glob("torch_ltc-*.tar.gz"):
        old.unlink()
    code = "import setuptools.build_meta as b; b.build_sdist('dist')"
    advice = "see setuptools' messages in the log"
    run_logged("source", [str(PYTHON), "-c", code], advice)
    (made,) = DIST.glob("torch_ltc-*.tar.gz")
    made.write_bytes(_normalized(made))
    say(f"{made.name}: {made.stat().st_size / 1e6:.1f} MB")
    return made


def check_source_distribution(archive: Path) -> None:
    """Builds and installs the source distribution in a separate environment."""
    folder = STATE / "release" / "source-venv"
    python = str(folder / "bin" / "python")
    pip = [python, "-m", "pip", "install", "--disable-pip-version-check"]
    advice = "see the end of the log"

    def try_it() -> None:
        started = time.monotonic()
        make_venv(folder, "source-venv")
        run_logged("source-packages", [*pip, TORCH], advice)
        run_logged(
            "source-packages",
            [*pip, "-r", "requirements.txt", "-c", "constraints.txt"],
            advice,
            append=True,
        )
        # Removes the environment of this folder from PATH: what is missing in the new
        # environment must not be found here.
        path = os.environ.get("PATH", os.defpath).replace(f"{VENV / 'bin'}:", "")
        install = [*pip, "--no-build-isolation", str(archive)]
        run_logged("source-install", install, advice, {"PATH": path})
        doctor = [python, "-m", "torch_ltc.doctor"]
        run_logged("source-doctor", doctor, advice)
        say(f"{archive.name}: built in {time.monotonic() - started:.0f} s")

    once("source-distribution", [archive], try_it)
