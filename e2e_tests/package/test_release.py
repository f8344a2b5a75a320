"""./dev release: archives are reproducible, a wheel that can't be published is rejected
with the reason, and the version is written in one place."""

from __future__ import annotations

import importlib
import os
import subprocess
import tarfile
import zipfile
from pathlib import Path
from types import ModuleType

import pytest
import torch_ltc
from torch_ltc._backend import bindings

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def archives(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "tools" / "dev"))
    return importlib.import_module("release_archives")


def test_source_archives_do_not_depend_on_order_time_and_user(
    archives: ModuleType, tmp_path: Path
) -> None:
    folder = tmp_path / "torch_ltc-1"
    folder.mkdir()
    files = [folder / name for name in ("b.py", "a.py", "dev")]
    for number, path in enumerate(files):
        path.write_text(path.name)
        path.chmod(0o775 if path.name == "dev" else 0o664)
        os.utime(path, (number, number))
    made = []
    for order in (files, files[::-1]):
        with tarfile.open(tmp_path / "made.tar.gz", "w:gz") as archive:
            for path in order:
                archive.add(path, path.relative_to(tmp_path))
                path.touch()
        made.append(archives._normalized(tmp_path / "made.tar.gz"))
    assert made[0] == made[1]
    (tmp_path / "made.tar.gz").write_bytes(made[0])
    with tarfile.open(tmp_path / "made.tar.gz") as archive:
        rows = [(m.name, m.mode, m.uname) for m in archive.getmembers()]
    names = [("a.py", 0o644), ("b.py", 0o644), ("dev", 0o755)]
    assert rows == [(f"torch_ltc-1/{name}", mode, "") for name, mode in names]


def _wheel(
    folder: Path, library: str, source: str, place: str = "torch_ltc/lib"
) -> Path:
    (folder / "made.c").write_text(source)
    built = folder / library
    command = ["cc", "-shared", "-fPIC", "-o", built, folder / "made.c"]
    subprocess.run(command, check=True)
    with zipfile.ZipFile(folder / "made.whl", "w") as archive:
        archive.write(built, f"{place}/{library}")
    return folder / "made.whl"


@pytest.mark.parametrize(
    ("library", "source", "problem"),
    [
        ("libltc_runtime.so", "int ltcRun(void) { return 0; }", ""),
        ("libltc_runtime.so", "int LLVMAdd(void) { return 0; }", "exports LLVMAdd"),
        (
            "libtorch_ltc_backend.so",
            "int _ZN4mlir3addEv(void) { return 0; }",
            "exports _ZN4mlir3addEv",
        ),
        ("libtorch_ltc_backend.so", "int _ZN9torch_ltc3addEv;", ""),
        (
            "libltc_runtime.so",
            "unsigned arc4random(void); int ltcDraw(void) { return arc4random(); }",
            "needs glibc (2, 36)",
        ),
        (
            "libltc_mlir_lowering.so",
            f'const char *ltcFile = "{ROOT}/src/arena.cc";',
            f"contains the path {ROOT}",
        ),
        (
            "libtorch_ltc_backend.so",
            f'const char *file = "{ROOT}/ltc_backend/ops/random.cpp";',
            f"contains the path {ROOT}",
        ),
    ],
)
def test_wheels_that_cannot_be_published(
    archives: ModuleType, tmp_path: Path, library: str, source: str, problem: str
) -> None:
    problems = archives.problems_of(_wheel(tmp_path, library, source))
    assert len(problems) == bool(problem), problems
    assert problem in "".join(problems)


def test_a_wheel_contains_no_library_of_the_system(
    archives: ModuleType, tmp_path: Path
) -> None:
    wheel = _wheel(tmp_path, "libprotobuf-lite-1.so", "int x;", "torch_ltc.libs")
    problems = archives.problems_of(wheel)
    assert problems == ["it needs libprotobuf-lite-1.so of the system"]


def test_headers_of_another_python_serve_both_processors(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "tools" / "dev"))
    aarch64 = importlib.import_module("aarch64")
    monkeypatch.setattr(aarch64, "FOLDER", tmp_path / "aarch64")
    for name in ("python3.13/Python.h", "x86_64-linux-gnu/python3.13/pyconfig.h"):
        file = tmp_path / "usr" / name
        file.parent.mkdir(parents=True)
        file.write_text(name)
    folder = aarch64._headers(tmp_path / "usr/python3.13")
    assert folder.name == "python3.13"  # CMake reads Python's version from the name
    assert (folder / "Python.h").exists()
    assert (folder.parent / "aarch64-linux-gnu/python3.13/pyconfig.h").exists()


def test_a_version_begins_a_section(
    archives: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("VERSION_FILE", "CHANGELOG"):
        copy = tmp_path / getattr(archives, name).name
        copy.write_text(getattr(archives, name).read_text())
        monkeypatch.setattr(archives, name, copy)
    monkeypatch.setattr(archives, "DIST", tmp_path)
    archives.CHANGELOG.write_text(
        "# C\n\n## Unreleased\n\n- New.\n\n## 0.1.0\n\n- Old.\n"
    )
    for _ in range(2):  # the second call changes nothing
        archives.set_version("7.8.9rc1")
        assert archives.version() == "7.8.9rc1"
        text = archives.CHANGELOG.read_text()
        assert text.endswith(
            "## Unreleased\n\n## 7.8.9rc1\n\n- New.\n\n## 0.1.0\n\n- Old.\n"
        )
    archives.write_notes()
    notes = (tmp_path / "NOTES.md").read_text()
    assert notes == "# torch_ltc 7.8.9rc1\n\n- New.\n"


def test_the_version_is_version_py_s() -> None:
    assert bindings().build_info()["version"] == torch_ltc.__version__
    # CMake and setuptools must not repeat the version.
    for name in ("CMakeLists.txt", "pyproject.toml", "setup.py"):
        assert torch_ltc.__version__ not in (ROOT / name).read_text(), name


@pytest.mark.parametrize("name", ["_C", "libtorch_ltc_backend.so"])
def test_libraries_search_no_path_of_the_build(name: str) -> None:
    """The libraries' search paths are relative, even before the wheel is packed. A build ID
    depends on these paths: with absolute ones, the same sources would give different bytes
    in another folder."""
    package = Path(torch_ltc.__file__).parent
    library = bindings().__file__ if name == "_C" else package / "lib" / name
    command = ["readelf", "-d", "-W", str(library)]
    dynamic = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    paths = [line for line in dynamic.splitlines() if "PATH)" in line]
    assert len(paths) == 1
    searched = paths[0].partition("[")[2].rstrip("]").split(":")
    assert searched and all(path.startswith("$ORIGIN") for path in searched)
