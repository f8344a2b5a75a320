"""Builds the wheel: CMake builds the libraries, which are copied into the package.

Metadata is in pyproject.toml. In development ('./dev build') the package is installed
in editable form and uses links to the build folder's libraries.
"""

import importlib.metadata
import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext

ROOT = Path(__file__).resolve().parent
#: './dev wheel --target=aarch64' passes a folder that it has configured.
CONFIGURED = os.environ.get("TORCH_LTC_BUILD")
BUILD = Path(CONFIGURED) if CONFIGURED else ROOT / "build"

# Search paths of a library in <prefix>/lib/python3.X/site-packages/torch_ltc/lib: the
# only list of these (CMake's are those of the build tree).
LIBRARY_RPATH = ":".join(
    [
        "$ORIGIN",
        "$ORIGIN/../../torch/lib",
    ]
)
#: `wheel-libraries` are those of packaging/: compiler and runtime with LLVM inside.
TARGETS = ["wheel-libraries", "torch_ltc_backend", "other-bindings"]
if not CONFIGURED:
    TARGETS.append("_C")
#: binutils' strip only supports files for this machine's processor.
STRIP = "/usr/lib/llvm-22/bin/llvm-strip" if CONFIGURED else "strip"
MODULE_RPATH = "$ORIGIN/lib:$ORIGIN/../torch/lib"


def torch_folder():
    # Doesn't import torch, because that would load this backend.
    return importlib.util.find_spec("torch").submodule_search_locations[0]


def onednn_prefix():
    """Returns the folder that contains oneDNN's `include` and `lib`. In pip's isolated
    builds it isn't in the environment's prefix."""
    for file in importlib.metadata.files("onednn-devel-cpu-gomp") or ():
        if file.name == "dnnl.hpp":
            return file.locate().resolve().parents[1]
    raise RuntimeError("onednn-devel-cpu-gomp contains no dnnl.hpp")


def program_path():
    """Returns PATH with the environment's folder of programs in front: PATH only contains
    this folder if the environment is activated."""
    return sysconfig.get_path("scripts") + os.pathsep + os.environ.get("PATH", "")


def program(name):
    found = shutil.which(name, path=program_path())
    if found is None:
        raise RuntimeError(f"the build needs the program {name}: install it")
    return found


def other_bindings():
    """Returns the extension modules for additional Pythons, which CMake builds for './dev
    release'."""
    return sorted((BUILD / "wheel").glob("_C.cpython-*.so"))


class TagOfAllBindings(bdist_wheel):
    """Tags the wheel for every Python for which it contains an extension module."""

    def get_tag(self):
        python, abi, platform = super().get_tag()
        others = [path.name.split("-")[1] for path in other_bindings()]
        if others:
            own = set() if CONFIGURED else {python}
            python = ".".join(sorted({*own, *(f"cp{number}" for number in others)}))
            abi = "none"
        return python, abi, platform


class BuildWithCMake(build_ext):
    """Copies libraries into the package, except in editable mode."""

    def run(self):
        if self.editable_mode:
            return
        cmake = program("cmake")
        environment = {
            **os.environ,
            "PATH": program_path(),  # CMake looks for ninja
            "TORCH_DEVICE_BACKEND_AUTOLOAD": "0",
        }
        if not CONFIGURED:
            self.configure(cmake, environment)
        build = [cmake, "--build", str(BUILD), "--target", *TARGETS]
        subprocess.run(build, check=True, env=environment)
        self.collect(Path(self.build_lib) / "torch_ltc")

    def configure(self, cmake, environment):
        prefixes = [torch_folder() + "/share/cmake", sys.prefix]
        configure = [
            cmake, "-G", "Ninja", "-S", str(ROOT), "-B", str(BUILD),
            "-DCMAKE_BUILD_TYPE=Release",
            f"-DPython_EXECUTABLE={sys.executable}",
            f"-DCMAKE_PREFIX_PATH={';'.join(prefixes)}",
            f"-DONEDNN_PREFIX={onednn_prefix()}",
        ]  # fmt: skip
        if not (BUILD / "CMakeCache.txt").exists():
            configure.append("-DTORCH_LTC_BUILD_TESTS=OFF")
        subprocess.run(configure, check=True, env=environment)

    def collect(self, package):
        """Copies the built libraries; their search paths become relative."""
        built = BUILD / "torch_ltc"
        modules = list(built.glob("_C*.so")) or list(built.glob("lib/_C*.so"))
        modules += other_bindings()
        if not modules:
            raise RuntimeError(
                "CMake didn't build the module torch_ltc/_C: is TORCH_LTC_BUILD_BACKEND on?"
            )
        (package / "lib").mkdir(parents=True, exist_ok=True)
        wanted = [(module, package, MODULE_RPATH) for module in modules]
        libraries = [
            built / "lib" / "libtorch_ltc_backend.so",
            *sorted((BUILD / "wheel" / "lib").glob("lib*.so*")),
        ]
        wanted += [(library, package / "lib", LIBRARY_RPATH) for library in libraries]
        for library, folder, rpath in wanted:
            target = shutil.copy2(library, folder)
            subprocess.run([program(STRIP), "--strip-unneeded", target], check=True)
            subprocess.run(
                [program("patchelf"), "--set-rpath", rpath, target], check=True
            )

    def get_outputs(self):
        return []

    def get_output_mapping(self):
        return {}


setup(
    # No sources: the extension only makes the wheel platform-specific.
    ext_modules=[Extension("torch_ltc._C", sources=[])],
    cmdclass={"build_ext": BuildWithCMake, "bdist_wheel": TagOfAllBindings},
    # CMake manages build/ itself.
    options={"build": {"build_base": "build/setuptools"}},
)
