"""Prepares the build of the wheel for AArch64 on this machine: './dev wheel
--target=aarch64'.

Debian's arm64 packages are unpacked into a folder, which is both the cross compiler's
sysroot and the root in which qemu runs the wheel's tests. Nothing is installed but GCC's
cross compiler, which compiles oneDNN: clang would compile oneDNN's `#pragma omp` loops to
calls of LLVM's OpenMP runtime instead of PyTorch's libgomp.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import environment
import sources
from environment import PYTHON, TORCH, VENV
from steps import ROOT, STATE, StepFailed, once, run_logged

FOLDER = STATE / "aarch64"
SYSROOT = FOLDER / "root"
#: Python packages for AArch64: torch and what the tests need.
SITE = FOLDER / "site"
BUILD = ROOT / "build-aarch64"
#: Runs a program in SYSROOT.
IN_AARCH64 = ROOT / "tools" / "dev" / "in_aarch64.sh"
TOOLCHAIN = ROOT / "packaging" / "aarch64-linux.cmake"
#: The version of Debian 12's Python, which is in the sysroot.
OWN_PYTHON = "3.11"

PACKAGES = [
    "coreutils", "dash", "libc6-dev", "libcurl4-openssl-dev", "libedit-dev", "libgomp1", "libmlir-22-dev",
    "libprotobuf-dev", f"libpython{OWN_PYTHON}-dev", "libstdc++-12-dev", "libxml2-dev",
    "libzstd-dev", "llvm-22-dev", "llvm-22-tools", "mlir-22-tools", f"python{OWN_PYTHON}",
    "python3-venv", "zlib1g-dev",
]  # fmt: skip
COMPILER = "aarch64-linux-gnu-g++-12"

#: Packages that are installed without their dependencies: those of torch include gigabytes
#: of CUDA libraries that aren't called without a GPU. SITE_PACKAGES lists torch's other
#: dependencies, and what the tests and the wheel need.
WITHOUT_DEPENDENCIES = [TORCH, "nvidia-cuda-runtime==13.0.*"]
SITE_PACKAGES = [
    "filelock", "fsspec", "jinja2", "networkx", "numpy", "protobuf", "pytest",
    "pytest-timeout", "rich", "scikit-learn", "setuptools>=77", "sympy",
    "typing-extensions",
]  # fmt: skip


@dataclass(frozen=True)
class Processor:
    """A processor that qemu emulates, as Linux describes it in /proc/cpuinfo and /sys:
    PyTorch and LLVM read both."""

    features: str
    implementer: int
    variant: int
    part: int
    revision: int

    def cpuinfo(self, number: int) -> str:
        return (
            f"processor\t: {number}\nBogoMIPS\t: 50.00\nFeatures\t: {self.features}\n"
            f"CPU implementer\t: {self.implementer:#x}\nCPU architecture: 8\n"
            f"CPU variant\t: {self.variant:#x}\nCPU part\t: {self.part:#05x}\n"
            f"CPU revision\t: {self.revision}\n\n"
        )

    def midr(self) -> str:
        """Returns the value of the register that identifies the processor."""
        number = self.implementer << 24 | self.variant << 20 | 0xF << 16
        return f"{number | self.part << 4 | self.revision:#018x}\n"


#: The processors by qemu's names: one without SVE, one with SVE vectors of 512 bits.
PROCESSORS = {
    "neoverse-n1": Processor(
        "fp asimd evtstrm aes pmull sha1 sha2 crc32 atomics fphp asimdhp cpuid "
        "asimdrdm lrcpc dcpop asimddp",
        0x41, 3, 0xD0C, 1,
    ),
    "a64fx": Processor(
        "fp asimd evtstrm sha1 sha2 crc32 atomics fphp asimdhp cpuid asimdrdm fcma "
        "dcpop sve",
        0x46, 1, 0x001, 0,
    ),
}  # fmt: skip


def _cross_compiler() -> None:
    if shutil.which(COMPILER):
        return
    by_hand = "apt-get install g++-12-aarch64-linux-gnu"
    if os.geteuid():
        raise StepFailed(f"{COMPILER} is missing\n  what to do: run as root: {by_hand}")
    command = ["apt-get", "install", "-y", "--no-install-recommends"]
    run_logged("cross-compiler", [*command, by_hand.split()[-1]], by_hand)


def _apt_configuration() -> Path:
    """Writes a configuration with which apt downloads arm64 packages from this machine's
    package sources, and keeps a separate state; returns its path."""
    apt = FOLDER / "apt"
    for folder in ("state/lists/partial", "cache/archives/partial"):
        (apt / folder).mkdir(parents=True, exist_ok=True)
    (apt / "status").write_text("")
    configuration = apt / "apt.conf"
    configuration.write_text(
        f"""APT::Architecture "arm64";
APT::Architectures {{ "arm64"; }};
APT::Install-Recommends "false";
APT::Sandbox::User "root";
Dir::State "{apt}/state";
Dir::State::status "{apt}/status";
Dir::Cache "{apt}/cache";
Debug::NoLocking "true";
"""
    )
    return configuration


def _unpack(package: Path, root: Path) -> None:
    subprocess.run(["dpkg", "-x", str(package), str(root)], check=True)


def _make_links_relative(root: Path) -> None:
    """Makes absolute links in the sysroot relative, because absolute links would lead to
    this machine's files."""
    for link in root.rglob("*"):
        if link.is_symlink() and (target := link.readlink()).is_absolute():
            inside = root / target.relative_to("/")
            link.unlink()
            link.symlink_to(os.path.relpath(inside, link.parent))


def _describe_processors() -> None:
    """Writes the files that in_aarch64.sh mounts over /proc/cpuinfo and
    /sys/devices/system/cpu."""
    count = os.cpu_count() or 1
    for name, processor in PROCESSORS.items():
        folder = FOLDER / "processors" / name
        for number in range(count):
            identification = folder / f"cpu/cpu{number}/regs/identification"
            identification.mkdir(parents=True, exist_ok=True)
            (identification / "midr_el1").write_text(processor.midr())
        for file in ("possible", "present"):
            (folder / "cpu" / file).write_text(f"0-{count - 1}\n")
        text = "".join(map(processor.cpuinfo, range(count)))
        (folder / "cpuinfo").write_text(text)


def sysroot() -> None:
    """Unpacks Debian's arm64 packages and their dependencies into SYSROOT."""

    def make() -> None:
        variables = {"APT_CONFIG": str(_apt_configuration())}
        advice = "apt's mirror must have arm64's packages, and be reachable"
        run_logged("aarch64-root", ["apt-get", "update"], advice, variables)
        load = ["apt-get", "install", "-y", "--download-only", *PACKAGES]
        run_logged("aarch64-root", load, advice, variables, append=True)
        shutil.rmtree(SYSROOT, ignore_errors=True)
        SYSROOT.mkdir()
        for package in sorted((FOLDER / "apt/cache/archives").glob("*.deb")):
            _unpack(package, SYSROOT)
        _make_links_relative(SYSROOT)

    once("aarch64-root", [*PACKAGES, str(FOLDER)], make)


def _dynamic(library: Path, *options: str) -> str:
    command = ["nm", "-D", *options, str(library)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def _needed(library: Path) -> set[str]:
    command = ["readelf", "-d", "-W", str(library)]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    return set(re.findall(r"NEEDED.*\[([^]]+)", answer.stdout))


def _stub_library(path: Path, names: Iterable[str], version: str) -> None:
    """Makes a shared library whose functions, `names` with symbol version `version`, end
    the process."""
    code, script = path.with_suffix(".c"), path.with_suffix(".map")
    code.write_text("".join(f"void {n}(void) {{__builtin_trap();}}\n" for n in names))
    script.write_text(f"{version} {{ global: *; }};\n")
    command = [
        COMPILER.replace("g++", "gcc"), "-w", "-fno-builtin", "-nostdlib", "-shared",
        "-o", str(path), f"-Wl,-soname,{path.name}", f"-Wl,--version-script={script}",
        str(code),
    ]  # fmt: skip
    subprocess.run(command, check=True)
    code.unlink()
    script.unlink()


def _stub_cuda() -> None:
    """Replaces CUDA's libraries by stubs, except for the small library that registers
    kernels: PyPI's torch for AArch64 is built for CUDA and can't be loaded without them.
    Also removes their packages from torch's requirements."""
    (metadata,) = SITE.glob("torch-*.dist-info/METADATA")
    lines = metadata.read_text().splitlines(keepends=True)
    cuda = re.compile(r"Requires-Dist: (cuda|nvidia|triton)")
    metadata.write_text("".join(line for line in lines if not cuda.match(line)))
    folder = SITE / "nvidia" / "cu13" / "lib"
    libraries = sorted((SITE / "torch" / "lib").glob("*.so*"))
    present = [*libraries, *folder.glob("*.so*")]
    versioned: dict[str, set[str]] = {}
    unversioned: set[str] = set()
    for library in libraries:
        for line in _dynamic(library, "--undefined-only").splitlines():
            name, _, version = line.split()[-1].partition("@")
            if version:
                versioned.setdefault(version, set()).add(name)
            elif re.match(r"cu|nv|nccl|__cu|__nv", name):
                unversioned.add(name)
    for library in present:
        for line in _dynamic(library, "--defined-only").splitlines():
            unversioned.discard(line.split()[-1].partition("@")[0])
    known = {path.name for path in present}
    for pattern in ("usr/lib/aarch64-linux-gnu", "lib/aarch64-linux-gnu", "lib"):
        known |= {path.name for path in (SYSROOT / pattern).iterdir()}
    missing = sorted(set().union(*map(_needed, libraries)) - known)
    for name in missing:
        version = "NVSHMEM" if name.startswith("libnvshmem") else name
        names = versioned.get(version, set()) | unversioned
        _stub_library(folder / name, sorted(names), version)
        unversioned = set()  # only the first stub library has them


def site() -> None:
    """Installs torch and the tests' packages for AArch64 into SITE."""
    platforms = ("manylinux_2_28", "manylinux_2_27", "manylinux_2_17", "manylinux2014")
    install = [
        str(PYTHON), "-m", "pip", "install", "--disable-pip-version-check",
        "--only-binary=:all:", f"--python-version={OWN_PYTHON}", f"--target={SITE}",
        *(f"--platform={name}_aarch64" for name in platforms),
    ]  # fmt: skip
    advice = "is the package index reachable?"

    def make() -> None:
        shutil.rmtree(SITE, ignore_errors=True)
        run_logged("aarch64-site", [*install, *SITE_PACKAGES], advice)
        torch = [*install, "--no-deps", *WITHOUT_DEPENDENCIES]
        run_logged("aarch64-site", torch, advice, append=True)
        _stub_cuda()

    packages = [*SITE_PACKAGES, *WITHOUT_DEPENDENCIES]
    once("aarch64-site", [*install, *packages, str(FOLDER)], make)


def onednn() -> Path:
    """Builds oneDNN as a static library and returns its build folder. oneDNN generates code
    for SVE; for processors without SVE, the runtime has its own loops
    (runtime/lib/LoopKernels.h)."""
    source = sources.ONEDNN.fetch()
    folder = FOLDER / "onednn"
    compiler = [
        f"-DCMAKE_C_COMPILER={COMPILER.replace('g++', 'gcc')}",
        f"-DCMAKE_CXX_COMPILER={COMPILER}",
    ]
    configure = [
        str(VENV / "bin" / "cmake"), "-G", "Ninja", "-S", str(source), "-B", str(folder),
        f"-DCMAKE_MAKE_PROGRAM={VENV / 'bin' / 'ninja'}",
        "-DCMAKE_SYSTEM_NAME=Linux", "-DCMAKE_SYSTEM_PROCESSOR=aarch64", *compiler,
        "-DCMAKE_BUILD_TYPE=Release",
        # Errors contain paths of source files (__FILE__), which must not be this machine's.
        "-DCMAKE_CXX_FLAGS_RELEASE=-O2 -DNDEBUG -fvisibility=hidden "
        f"-ffile-prefix-map={source}/=",
        "-DCMAKE_CXX_COMPILER_LAUNCHER=ccache",
        "-DCMAKE_POSITION_INDEPENDENT_CODE=ON",
        "-DONEDNN_LIBRARY_TYPE=STATIC", "-DONEDNN_CPU_RUNTIME=OMP",
        "-DONEDNN_ENABLE_PRIMITIVE=CONVOLUTION;MATMUL;INNER_PRODUCT;REORDER",
        "-DONEDNN_ARCH_OPT_FLAGS=", "-DONEDNN_ENABLE_JIT_PROFILING=OFF",
        *(f"-DONEDNN_BUILD_{part}=OFF" for part in ("GRAPH", "EXAMPLES", "TESTS")),
    ]  # fmt: skip
    advice = "see the end of the log"

    def make() -> None:
        variables = environment.environment()
        run_logged("aarch64-onednn", configure, advice, variables)
        ninja = [str(VENV / "bin" / "ninja"), "-C", str(folder)]
        jobs = f"-j{environment.build_jobs()}"
        run_logged("aarch64-onednn", [*ninja, jobs], advice, variables, append=True)
        for include in (source / "include", folder / "include"):
            shutil.copytree(include, folder / "prefix/include", dirs_exist_ok=True)

    once("aarch64-onednn", configure, make)
    return folder


def prepare() -> None:
    _cross_compiler()
    sysroot()
    _describe_processors()
    site()


def _headers(folder: Path) -> Path:
    """Copies this machine's headers of another Python for the AArch64 build. AArch64's own
    headers would only differ in those macros of pyconfig.h that describe how Python was
    built, because both processors have the same types. Debian's pyconfig.h includes another
    pyconfig.h in a folder for the processor; this folder is copied as AArch64's."""
    target = FOLDER / "headers" / folder.name
    shutil.copytree(folder, target, dirs_exist_ok=True)
    architectures = folder.parent.glob(f"*-linux-gnu/{folder.name}")
    for architecture in architectures:
        copy = FOLDER / "headers" / "aarch64-linux-gnu" / folder.name
        shutil.copytree(architecture, copy, dirs_exist_ok=True)
    return target


def options(python_headers: Sequence[Path]) -> list[str]:
    """Returns CMake's arguments for AArch64, in addition to those that all builds share."""
    library = onednn()
    own = SYSROOT / "usr" / "include" / f"python{OWN_PYTHON}"
    others = [folder for folder in python_headers if folder.name != own.name]
    headers = [own, *map(_headers, others)]
    return [
        f"-DCMAKE_TOOLCHAIN_FILE={TOOLCHAIN}",
        f"-DLTC_SYSROOT={SYSROOT}",
        f"-DTORCH_LTC_TORCH_DIR={SITE / 'torch'}",
        f"-DTORCH_LTC_PYTHON_HEADERS={';'.join(map(str, headers))}",
        f"-DTORCH_LTC_PROTOBUF_SOURCE={sources.PROTOBUF.fetch()}",
        f"-DONEDNN_PREFIX={library / 'prefix'}",
        f"-DONEDNN_ARCHIVE={library / 'src' / 'libdnnl.a'}",
    ]


#: Environment variables that make setup.py build this folder instead of configuring a new
#: one, and tag the wheel for this platform.
VARIABLES = {
    "TORCH_LTC_BUILD": str(BUILD),
    "_PYTHON_HOST_PLATFORM": "linux-aarch64",
}
