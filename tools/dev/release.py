"""./dev release [VERSION] [--python=PATH]... [--target=aarch64]: makes everything that a
release publishes, in dist/, and tries the wheel on systems like those of users.

The wheel supports the Pythons of the places (release_places.py). In each place it is
installed with pip alone, next to torch; the doctor must report no problem, the digits
example must learn, and a sample of the tests must pass. With --target, AArch64's wheel is
tried in the same way, under emulation. docs/installation.md gets the table of the results.
Needs root and debootstrap, and qemu for AArch64.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import release_archives
import release_places
from environment import PYTHON, TORCH
from release_places import FOLDER, WHEELS, Place
from steps import ROOT, StepFailed, say

import build

PAGE = ROOT / "docs" / "installation.md"
MARKS = ("<!-- results of ./dev release -->", "<!-- end of results -->")

#: Packages that the trials need in addition to the wheel and its dependencies. The last two
#: are dependencies of pytest on Python 3.10, which are listed because `pip download`
#: selects dependencies for the Python that runs it.
TEST_PACKAGES = (
    "numpy", "scikit-learn", "pytest", "pytest-timeout", "tomli", "exceptiongroup",
)  # fmt: skip

#: A sample of the tests that covers each layer: views, compiled kernels, library calls,
#: random numbers, interpreted programs, whole steps, the disk cache, errors, the package.
SAMPLE = (
    "backend/test_interpreted_views.py",
    "backend/test_linear.py",
    "backend/test_lstm_cell.py",
    "backend/test_random.py",
    "backend/test_views.py",
    "package/test_config.py",
    "package/test_doctor.py",
    "semantics/test_in_place.py",
    "training/test_disk_cache.py",
)
#: A smaller sample, because emulated tests take twenty times as long, and the first
#: compilations take minutes.
EMULATED_SAMPLE = ("backend/test_linear.py", "backend/test_views.py")

#: Other projects that contain an LLVM; the wheel is tried together with them only in the
#: first place.
NEIGHBORS = ("torch-mlir==20261001", "iree-base-compiler==3.13.0")
BESIDE_NEIGHBORS = """
import os
os.environ.update(TORCH_LTC_TIER="compile", TORCH_LTC_CACHE="0")
import torch
x = torch.arange(4.0, device="lazy")
assert (x * 2).sum().item() == 12
import torch_mlir.ir as theirs
from iree.compiler import ir
text = "func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> { return %x : tensor<4xf32> }"
for module in (theirs, ir):
    with module.Context():
        assert "tensor<4xf32>" in str(module.Module.parse(text))
assert (x.sin() ** 2 + x.cos() ** 2).sum().item() == 4
import torch_ltc
assert torch_ltc.metrics()["compilations"] == 2
"""

#: Measures what this package adds to `import torch`: resident memory in MB (the difference
#: of the medians of five processes) and processor time in ms (the minimum of five). Linux
#: maps the pages of a file that has just been written in larger pieces than those of a file
#: that was read, so the libraries are first dropped from the page cache.
IMPORT_COST = """
import importlib.util, os, pathlib, subprocess, sys
def measured(code, autoload):
    return float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
        check=True, env={**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": autoload}).stdout)
folder = pathlib.Path(importlib.util.find_spec("torch_ltc").submodule_search_locations[0])
for library in folder.rglob("*.so*"):
    with open(library, "rb") as file:
        os.fsync(file)
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
pages = "import torch; print(open('/proc/self/statm').read().split()[1])"
with_it, without = (sorted(measured(pages, on) for _ in range(5))[2] for on in "10")
seconds = ("import time, torch; start = time.process_time(); import torch_ltc._autoload;"
           "torch_ltc._autoload.register(); print(time.process_time() - start)")
took = min(measured(seconds, "0") for _ in range(5))
print(f"{(with_it - without) * 4096 / 2**20:.1f} MB, {took * 1e3:.0f} ms")
"""


def _learned(report: str) -> str:
    accuracy = re.search(r"test accuracy\D+([\d.]+)\s*%", report)
    if not accuracy or float(accuracy[1]) < 97:
        raise StepFailed(f"the digits example didn't learn:\n{report}")
    return accuracy[1]


def _try(place: Place, wheel: Path) -> str:
    """Installs the wheel, trains and runs tests in a place. Returns the place's row of the
    table. Raises StepFailed if a command fails or the example doesn't learn."""
    say(f"trying {wheel.name} on {place.system} with Python {place.python} ...")
    release_places.copy_tests(place)
    python, work = place.venv_python, place.work
    place.make_environment(TEST_PACKAGES)
    started = time.monotonic()
    place.pip_install(f"{place.wheels}/{wheel.name}")
    installing = time.monotonic() - started
    place.run(python, "-m", "torch_ltc.doctor")
    started = time.monotonic()
    accuracy = _learned(place.run(python, f"{work}/examples/train_digits.py"))
    training = time.monotonic() - started
    added = place.run(python, "-c", IMPORT_COST).strip()
    emulated = place is release_places.AARCH64
    sample = EMULATED_SAMPLE if emulated else SAMPLE
    files = [f"{work}/e2e_tests/{name}" for name in sample]
    report = place.run(python, "-m", "pytest", "-q", f"--rootdir={work}", *files)
    if place is release_places.DEBIANS[0]:
        place.pip_install("--no-deps", *NEIGHBORS)
        place.run(python, "-c", BESIDE_NEIGHBORS)
    passed = re.search(r"(\d+) passed", report)
    torch = place.run(python, "-c", "import torch; print(torch.__version__)").strip()
    libc = "import platform; print(platform.libc_ver()[1])"
    glibc = place.run(python, "-c", libc).strip()
    if not emulated:  # './dev test --full' uses the emulated environment
        shutil.rmtree(place.work_here / "venv")  # 5 GB with CUDA's packages
    row = (
        f"| {place.system} | {place.python} | {glibc} | {torch} | {installing:.0f} s "
        f"| {training:.0f} s, {accuracy} % | {passed[1] if passed else 0} passed "
        f"| {added} |"
    )
    say(row)  # printed now, because a later step may fail
    return row


def _write_results(wheels: Sequence[Path], rows: Sequence[str]) -> None:
    """Replaces the table of results in docs/installation.md."""
    sizes = (f"`{wheel.name}`, {wheel.stat().st_size / 1e6:.1f} MB" for wheel in wheels)
    table = "\n".join(
        [
            "; ".join(sizes),
            "",
            "| system | Python | glibc | torch | install with torch | digits | sample of tests | added to `import torch` |",
            "| --- | --- | --- | --- | --- | --- | --- | --- |",
            *rows,
        ]
    )
    before, _, rest = PAGE.read_text().partition(MARKS[0])
    after = rest.partition(MARKS[1])[2]
    PAGE.write_text(f"{before}{MARKS[0]}\n\n{table}\n\n{MARKS[1]}{after}")
    print(table)


def _places(pythons: Sequence[str]) -> list[Place]:
    others = [release_places.interpreter(path) for path in pythons]
    return [*release_places.DEBIANS, *others]


def _parsed(arguments: Sequence[str]) -> tuple[list[str], list[str], bool]:
    """Returns the version (in a list, which is empty if none is given), the paths of
    Pythons, and whether AArch64 is a target. Raises StepFailed for other arguments."""
    pythons = [a.partition("=")[2] for a in arguments if a.startswith("--python=")]
    versions = [a for a in arguments if not a.startswith("-")]
    aarch64 = arguments.count("--target=aarch64")
    if len(pythons) + len(versions) + aarch64 != len(arguments) or len(versions) > 1:
        raise StepFailed(
            "usage: ./dev release [VERSION] [--python=PATH]... [--target=aarch64]"
        )
    return versions, pythons, bool(aarch64)


def release(arguments: Sequence[str]) -> None:
    versions, pythons, aarch64 = _parsed(arguments)
    programs = {"debootstrap": "debootstrap"}
    if aarch64:
        programs["qemu-aarch64-static"] = "qemu-user-static"
    missing = [package for name, package in programs.items() if not shutil.which(name)]
    if os.geteuid() or missing:
        packages = " ".join(missing or programs.values())
        raise StepFailed(
            f"step 'release' needs root and {' and '.join(programs)}\n"
            f"  what to do: apt-get install {packages}, and run as root"
        )
    if versions:
        release_archives.set_version(versions[0])
    build.prepare_environment()  # its pip downloads the places' packages
    WHEELS.mkdir(parents=True, exist_ok=True)
    places = _places(pythons)
    packages = [TORCH, "jinja2", "protobuf", "rich", *TEST_PACKAGES]
    for place in places:
        place.prepare()
        release_places.download(PYTHON, place.python, packages)
    release_places.download(PYTHON, places[0].python, NEIGHBORS, "--no-deps")
    headers = [place.headers for place in places]
    # The module for the environment's Python is always built.
    own = f"python{sys.version_info.major}.{sys.version_info.minor}"
    wheel = build.wheel([folder for folder in headers if folder.name != own])
    release_archives.check_wheel(wheel)
    source = release_archives.source_distribution()
    release_archives.check_source_distribution(source)
    for old in WHEELS.glob("torch_ltc-*.whl"):
        old.unlink()
    shutil.copy2(wheel, WHEELS)
    wheels = [wheel]
    rows = [_try(place, wheel) for place in places]
    if aarch64:
        wheels.append(build.aarch64_wheel(headers))
        rows.append(_try(release_places.AARCH64, wheels[-1]))
    _write_results(wheels, rows)
    release_archives.write_notes()
    release_archives.write_digests([*wheels, source])
    say(f"released into {wheel.parent.relative_to(ROOT)}; logs in {FOLDER}")
