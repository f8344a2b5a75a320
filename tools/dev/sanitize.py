"""Makes builds with sanitizers and runs their tests: the runtime's GoogleTests, and
end-to-end tests of runtime, compiler and backend in Python."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import environment
from environment import PYTHON
from steps import ROOT, StepFailed, exclusive, say

import build


@dataclass(frozen=True)
class Sanitizer:
    name: str
    about: str
    #: Environment variables for the runtime's tests, and for tests in Python.
    options: Mapping[str, str]
    python_options: Mapping[str, str]
    #: The sanitizer's libraries. Python isn't linked with these, so they are preloaded.
    libraries: tuple[str, ...]
    #: Programs of the runtime's tests, and pytest's arguments in e2e_tests/.
    tests: tuple[str, ...]
    python_tests: tuple[str, ...]

    @property
    def folder(self) -> Path:
        return ROOT / f"build-{self.name}"


_SUPPRESSIONS = ROOT / "tools" / "dev" / "sanitize_suppressions"

#: The sample of the runtime's tests that './dev test' runs with sanitizers.
SAMPLE = ("BoundsCheckTest", "ExecutableTest", "HostCallTest", "VerifierTest")
TESTS = (
    *SAMPLE, "AttentionTest", "CacheTest", "CacheTrustTest", "ConvolutionTest",
    "KernelTest", "MatmulTest", "MutationTest", "ProcessorContentionTest",
    "StatusTest",
)  # fmt: skip

#: The libraries that Python loads.
_LIBRARIES = ("_C", "torch_ltc_backend", "ltc_runtime", "ltc_mlir_lowering")

SANITIZERS = (
    Sanitizer(
        "address",
        "AddressSanitizer and UndefinedBehaviorSanitizer",
        {
            # Disables poisoning by programs: LLVM's allocators poison memory where they are
            # inlined into our code, but not in LLVM's library.
            "ASAN_OPTIONS": "allow_user_poisoning=0",
            "UBSAN_OPTIONS": "print_stacktrace=1",
        },
        # Leaks aren't detected, because Python and torch release little memory at exit.
        {
            "ASAN_OPTIONS": "allow_user_poisoning=0:detect_leaks=0",
            "UBSAN_OPTIONS": "print_stacktrace=1",
        },
        ("libasan.so", "libubsan.so"),
        (*TESTS, "ThreadsTest"),
        ("backend", "capture", "semantics", "transforms", "training", "fuzz"),
    ),
    Sanitizer(
        "thread",
        "ThreadSanitizer",
        {
            "TSAN_OPTIONS": f"suppressions={_SUPPRESSIONS / 'thread.txt'}"
            ":ignore_noninstrumented_modules=1"
        },
        {"TSAN_OPTIONS": f"suppressions={_SUPPRESSIONS / 'thread_python.txt'}"},
        ("libtsan.so",),
        # Excludes ThreadsTest, which counts the threads of the process: the sanitizer adds
        # one.
        TESTS,
        (
            "backend/test_async.py", "backend/test_donation.py",
            "backend/test_first_tensor.py", "backend/test_head_start.py",
            "backend/test_reads.py", "backend/test_threads.py",
            "backend/test_tiers.py", "capture",
            # The excluded test expects one thread.
            "-k", "not test_small_new_programs_run_where_their_value_is_read "
            "and not test_programs_of_changing_sizes_take_bounded_memory",
        ),
    ),
)  # fmt: skip


def _build(sanitizer: Sanitizer, targets: Sequence[str]) -> None:
    build.configure(
        f"configure-{sanitizer.name}",
        sanitizer.folder,
        # Uses g++, because its sanitizers are installed; this also tests the build with
        # g++.
        ["-DCMAKE_CXX_COMPILER=g++", f"-DTORCH_LTC_SANITIZE={sanitizer.name}"],
    )
    build.ninja(*targets, name=f"build-{sanitizer.name}", folder=sanitizer.folder)


def _run_tests(sanitizer: Sanitizer, tests: Sequence[str]) -> int:
    _build(sanitizer, tests)
    variables = {**os.environ, **environment.environment(), **sanitizer.options}
    code = 0
    for name in tests:
        say(f"{sanitizer.about}: {name}")
        program = str(sanitizer.folder / "bin" / name)
        code |= subprocess.run([program], cwd=ROOT, env=variables).returncode
    return code


def _library(name: str) -> str:
    command = ["g++", f"-print-file-name={name}"]
    return subprocess.run(
        command, capture_output=True, text=True, check=True
    ).stdout.strip()


def _run_python_tests(sanitizer: Sanitizer) -> int:
    _build(sanitizer, _LIBRARIES)
    # The sanitizers look up the C++ library's functions when they are loaded, so this
    # library must be preloaded, too.
    libraries = (*sanitizer.libraries, "libstdc++.so")
    variables = {
        **os.environ,
        **environment.environment(),
        **sanitizer.python_options,
        "LD_PRELOAD": " ".join(_library(name) for name in libraries),
        "PYTHONPATH": str(sanitizer.folder),  # before the installed package
    }
    say(f"{sanitizer.about}: end-to-end tests")
    command = [str(PYTHON), "-m", "pytest", "-q", "-n", str(environment.processors())]
    return subprocess.run(
        [*command, *sanitizer.python_tests], cwd=ROOT / "e2e_tests", env=variables
    ).returncode


def sanitize(arguments: Sequence[str]) -> int:
    """Runs the tests with the sanitizers `address` and `thread`, or only the named one;
    returns an exit code. `--sample`: only a sample of the runtime's tests. `--python`: only
    the tests in Python."""
    known = {sanitizer.name: sanitizer for sanitizer in SANITIZERS}
    names = [name for name in arguments if name not in ("--sample", "--python")]
    for name in names:
        if name not in known:
            raise StepFailed(
                f"there is no sanitizer '{name}'; there are: {', '.join(known)}"
            )
    build.prepare_environment()
    code = 0
    with exclusive("sanitize"):
        for sanitizer in (known[name] for name in names or known):
            if "--python" not in arguments:
                tests = SAMPLE if "--sample" in arguments else sanitizer.tests
                code |= _run_tests(sanitizer, tests)
            if "--sample" not in arguments:
                code |= _run_python_tests(sanitizer)
    return 1 if code else 0
