"""Configures, builds and installs the project."""

from __future__ import annotations

import platform
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import aarch64
import environment
import release_archives
import release_places
import sources
from environment import PYTHON, VENV
from steps import ROOT, StepFailed, digest, exclusive, forget, once, run_logged, say

BUILD = ROOT / "build"
PACKAGE = ROOT / "python" / "torch_ltc"

# Prevents `import torch` in the build's Python from loading a half-built backend.
NO_AUTOLOAD = {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}


def _torch_cmake_path() -> str:
    code = "import importlib.util as u; print(u.find_spec('torch').submodule_search_locations[0])"
    answer = subprocess.run(
        [str(PYTHON), "-c", code], capture_output=True, text=True, check=True
    )
    return answer.stdout.strip() + "/share/cmake"


def base_command(folder: Path, tests: bool) -> list[str]:
    """Returns the part of CMake's command that all builds share, including builds for
    another processor."""
    return [
        str(VENV / "bin" / "cmake"),
        "-G", "Ninja", "-S", str(ROOT), "-B", str(folder),
        "-DCMAKE_BUILD_TYPE=Release",
        f"-DCMAKE_MAKE_PROGRAM={VENV / 'bin' / 'ninja'}",
        f"-DPython_EXECUTABLE={PYTHON}",
        f"-DTORCH_LTC_BUILD_TESTS={'ON' if tests else 'OFF'}",
    ]  # fmt: skip


def configure_command(tests: bool = True, folder: Path = BUILD) -> list[str]:
    prefixes = [_torch_cmake_path(), str(VENV)]  # the environment contains oneDNN
    return [
        *base_command(folder, tests),
        f"-DCMAKE_PREFIX_PATH={';'.join(prefixes)}",
    ]


def configure(
    name: str = "configure", folder: Path = BUILD, options: Sequence[str] = ()
) -> None:
    if not (folder / "build.ninja").exists():
        forget(name)
    command = [*configure_command(folder=folder), *options]
    advice = f"the lines above list what CMake is missing; 'rm -r {folder.name}' starts from scratch"
    variables = environment.environment() | NO_AUTOLOAD
    packages = ROOT / "requirements.txt"
    once(
        name,
        [*command, packages],
        lambda: run_logged(name, command, advice, variables),
    )


def ninja(*targets: str, name: str = "build", folder: Path = BUILD) -> None:
    """Builds targets; prints nothing if there is nothing to do."""
    command = [str(VENV / "bin" / "ninja"), "-C", str(folder)]
    variables = environment.environment() | NO_AUTOLOAD
    dry = subprocess.run(
        [*command, "-n", *targets], capture_output=True, text=True, cwd=ROOT
    )
    if "no work to do" in dry.stdout:
        return
    jobs = environment.build_jobs()
    say(f"{name}: ninja with {jobs} jobs (log: .dev/logs/{name}.log) ...")
    advice = "look for the first 'error:' in the log; './dev build' resumes there"
    # Ninja stops at the first error; -k 0 would hide it among others.
    run_logged(name, [*command, f"-j{jobs}", *targets], advice, variables)
    say(f"{name}: done")


def link_libraries() -> None:
    """Links the build's libraries into the source package. Changes of Python sources take
    effect when they are saved, changes of C++ sources when they are built."""
    built = BUILD / "torch_ltc"
    modules = sorted(built.glob("_C*.so")) + sorted((built / "lib").glob("_C*.so"))
    if not modules:
        raise StepFailed(
            "step 'install' failed: the build didn't produce the module torch_ltc/_C.\n"
            "  what to do: './dev build' with TORCH_LTC_BUILD_BACKEND=ON (the default)"
        )
    for link, target in [
        (PACKAGE / modules[0].name, modules[0]),
        (PACKAGE / "lib", built / "lib"),
    ]:
        relative = Path(*[".."] * 2, target.relative_to(ROOT))
        if link.is_symlink() and link.readlink() == relative:
            continue
        if link.is_symlink() or link.exists():
            link.unlink()
        link.symlink_to(relative)


def _install() -> None:
    link_libraries()
    command = [
        str(PYTHON), "-m", "pip", "install", "--disable-pip-version-check",
        "--no-build-isolation", "--no-deps", "--no-index", "-e", ".",
    ]  # fmt: skip
    advice = "'rm -r .venv' starts from scratch"
    inputs = [ROOT / "setup.py", ROOT / "pyproject.toml", PACKAGE / "version.py"]
    stamp = digest([str(PYTHON.stat().st_ino)])
    once(
        "install",
        [*inputs, stamp],
        lambda: run_logged("install", command, advice, NO_AUTOLOAD),
    )


def _compile_python() -> None:
    """Compiles the package to bytecode: `import torch` imports the package, and would
    compile it each time where Python can't write bytecode."""
    command = [str(PYTHON), "-m", "compileall", "-q", str(PACKAGE)]
    run_logged("compileall", command, "a module has a syntax error", NO_AUTOLOAD)


def prepare_environment(tests: bool = False) -> None:
    with exclusive("setup"):
        environment.prepare()
        if tests:
            environment.test_packages()


def build(tests: bool = False) -> None:
    """Builds and installs the package; with `tests`, also builds the tests and the
    compiler's programs. Finished steps aren't repeated."""
    prepare_environment(tests)
    with exclusive("build"):
        configure()
        ninja("all" if tests else "package")
        _install()
        _compile_python()


#: Libraries in the packages on which the wheel depends.
OTHER_WHEELS_LIBRARIES = ("libtorch*.so", "libc10.so", "libgomp.so.1")


def _repair(made: Path, variables: Mapping[str, str]) -> None:
    """Tags the wheel with the oldest glibc that it supports. auditwheel would also add
    system libraries that the wheel needs, but it needs none."""
    command = [
        str(PYTHON), "-m", "auditwheel", "repair", "-w", "dist",
        *(f"--exclude={name}" for name in OTHER_WHEELS_LIBRARIES), str(made),
    ]  # fmt: skip
    run_logged("repair", command, "see auditwheel's messages in the log", variables)
    made.unlink()


def _make_wheel(name: str, machine: str, variables: Mapping[str, str]) -> Path:
    """Makes setup.py build and pack the libraries of a configured build folder; returns
    the wheel."""
    folder = ROOT / "dist"
    folder.mkdir(exist_ok=True)
    for old in folder.glob(f"torch_ltc-*{machine}.whl"):
        old.unlink()
    command = [
        str(PYTHON), "-m", "pip", "wheel", "--disable-pip-version-check",
        "--no-build-isolation", "--no-deps", "--no-index", "-w", "dist", ".",
    ]  # fmt: skip
    # setup.py uses the same folder for all processors, so wheels are made one after the
    # other.
    with exclusive("setuptools"):
        run_logged(name, command, "see setup.py's messages in the log", variables)
    _repair(next(folder.glob(f"torch_ltc-*{machine}.whl")), variables)
    return next(folder.glob(f"torch_ltc-*{machine}.whl"))


def _wheel_variables() -> dict[str, str]:
    date = release_archives.source_date()
    return environment.environment() | NO_AUTOLOAD | {"SOURCE_DATE_EPOCH": date}


def wheel(python_headers: Sequence[Path] = ()) -> Path:
    """Builds a wheel in dist/, with extension modules for the environment's Python and for
    the Pythons of these headers; returns the wheel."""
    build()
    headers = ";".join(str(path) for path in python_headers)
    configure = [
        *configure_command(),
        f"-DTORCH_LTC_PYTHON_HEADERS={headers}",
        f"-DTORCH_LTC_PROTOBUF_SOURCE={sources.PROTOBUF.fetch()}",
    ]
    variables = _wheel_variables()
    machine = platform.machine()

    def make() -> None:
        run_logged("wheel-configure", configure, "see what CMake misses", variables)
        for old in (BUILD / "wheel").glob("_C*.so"):
            old.unlink()
        _make_wheel("wheel", machine, variables)

    if not list((ROOT / "dist").glob(f"torch_ltc-*{machine}.whl")):
        forget("wheel")
    contents = [
        path
        for pattern in ("*.py*", "*.proto", "*.so", "lib/*.so*")
        for path in sorted(PACKAGE.glob(pattern))
    ]
    inputs = [ROOT / "setup.py", ROOT / "pyproject.toml", *configure, *contents]
    once("wheel", inputs, make)
    return _report_wheel(next((ROOT / "dist").glob(f"torch_ltc-*{machine}.whl")))


def aarch64_wheel(python_headers: Sequence[Path] = ()) -> Path:
    """Builds AArch64's wheel in dist/ (aarch64.py), and installs it in AArch64's root file
    system; returns the wheel."""
    prepare_environment()
    variables = _wheel_variables() | aarch64.VARIABLES
    with exclusive("aarch64"):
        aarch64.prepare()
        command = [
            *base_command(aarch64.BUILD, tests=False),
            *aarch64.options(python_headers),
        ]
        run_logged("aarch64-configure", command, "see what CMake misses", variables)
        say("aarch64: building (log: .dev/logs/aarch64-wheel.log) ...")
        made = _make_wheel("aarch64-wheel", "aarch64", variables)
        release_archives.check_wheel(made)
        release_places.install_emulated(made)
        return _report_wheel(made)


def _report_wheel(made: Path) -> Path:
    print(made.relative_to(ROOT))
    sys.stdout.flush()
    return made
