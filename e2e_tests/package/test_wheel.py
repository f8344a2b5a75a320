"""A wheel that is unpacked into any folder finds its libraries and compiles programs."""

from __future__ import annotations

import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from subprocesses import run_python

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.full("reconfigures the build folder")
def test_compiles_where_it_is_unpacked(tmp_path) -> None:
    command = [
        sys.executable, "-m", "pip", "wheel", "--no-build-isolation", "--no-deps",
        "--no-index", "-w", str(tmp_path), str(ROOT),
    ]  # fmt: skip
    subprocess.run(command, check=True, capture_output=True)
    package = tmp_path / "unpacked"
    (wheel,) = tmp_path.glob("torch_ltc-*.whl")
    zipfile.ZipFile(wheel).extractall(package)
    program = f"""
        import sys
        sys.path.insert(0, {str(package)!r})
        import torch_ltc, torch
        assert torch_ltc.__file__.startswith({str(package)!r}), torch_ltc.__file__
        print((torch.arange(4.0, device="lazy") ** 2).sum().item())
        metrics = torch_ltc.metrics()
        assert metrics["compilations"] == 1, metrics
        assert metrics["compile_failures"] == 0, metrics
        assert torch_ltc.debug.dump(-1, "svg").count("<rect") > 2
    """
    result = run_python(
        program,
        TORCH_LTC_CACHE="0",
        TORCH_DEVICE_BACKEND_AUTOLOAD="0",
        LD_LIBRARY_PATH=f"{sys.prefix}/lib",  # oneDNN, a separate package
    )
    assert result.stdout == "14.0\n"


def test_contains_every_file_that_the_package_reads() -> None:
    setuptools = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"][
        "setuptools"
    ]
    top, packaged = ROOT / "python", set()
    for package in setuptools["packages"]:
        folder = top / package.replace(".", "/")
        for pattern in ["*.py", *setuptools["package-data"].get(package, [])]:
            packaged |= set(folder.glob(pattern))
    made = {"lib", "__pycache__"}
    files = {
        path
        for path in (top / "torch_ltc").rglob("*")
        if path.is_file() and path.suffix != ".so" and not made & set(path.parts)
    }
    assert files == packaged
