"""Builds of the runtime with sanitizers, and their tests."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import environment
from steps import ROOT, StepFailed, exclusive, say

import build


@dataclass(frozen=True)
class Sanitizer:
    name: str
    about: str
    #: Options of its runtime.
    options: dict[str, str]
    tests: tuple[str, ...]

    @property
    def folder(self) -> Path:
        return ROOT / f"build-{self.name}"


_SUPPRESSIONS = ROOT / "tools" / "dev" / "sanitize_suppressions"

#: The subset that is part of the checks of every change.
SAMPLE = ("BoundsCheckTest", "ExecutableTest", "HostCallTest", "VerifierTest")
TESTS = (
    *SAMPLE, "AttentionTest", "CacheTest", "CacheTrustTest", "ConvolutionTest",
    "KernelTest", "MatmulTest", "MutationTest", "ProcessorContentionTest",
    "StatusTest",
)  # fmt: skip

SANITIZERS = (
    Sanitizer(
        "address",
        "AddressSanitizer and UndefinedBehaviorSanitizer",
        {
            # LLVM's allocators mark memory where they are inlined into our code, but
            # not elsewhere.
            "ASAN_OPTIONS": "allow_user_poisoning=0",
            "UBSAN_OPTIONS": "print_stacktrace=1",
        },
        (*TESTS, "ThreadsTest"),
    ),
    Sanitizer(
        "thread",
        "ThreadSanitizer",
        {
            "TSAN_OPTIONS": f"suppressions={_SUPPRESSIONS / 'thread.txt'}"
            ":ignore_noninstrumented_modules=1"
        },
        # ThreadsTest counts the threads of the process, and the sanitizer adds one.
        TESTS,
    ),
)


def _run_tests(sanitizer: Sanitizer, tests: Sequence[str]) -> int:
    build.configure(
        f"configure-{sanitizer.name}",
        sanitizer.folder,
        # g++, because its sanitizers are installed, and so that the build with g++ is
        # tested.
        ["-DCMAKE_CXX_COMPILER=g++", f"-DTORCH_LTC_SANITIZE={sanitizer.name}"],
    )
    build.ninja(*tests, name=f"build-{sanitizer.name}", folder=sanitizer.folder)
    variables = {**os.environ, **environment.environment(), **sanitizer.options}
    code = 0
    for name in tests:
        say(f"{sanitizer.about}: {name}")
        program = str(sanitizer.folder / "bin" / name)
        code |= subprocess.run([program], cwd=ROOT, env=variables).returncode
    return code


def sanitize(arguments: Sequence[str]) -> int:
    """`address`, `thread` (both if neither), `--sample`."""
    known = {sanitizer.name: sanitizer for sanitizer in SANITIZERS}
    names = [name for name in arguments if name != "--sample"]
    for name in names:
        if name not in known:
            raise StepFailed(
                f"there is no sanitizer '{name}'; there are: {', '.join(known)}"
            )
    build.prepare_environment()
    code = 0
    with exclusive("sanitize"):
        for sanitizer in (known[name] for name in names or known):
            tests = SAMPLE if "--sample" in arguments else sanitizer.tests
            code |= _run_tests(sanitizer, tests)
    return 1 if code else 0
