"""The doctor reports a working installation, and problems with a remedy."""

from __future__ import annotations

import json
import re

import pytest
from subprocesses import run_python
from torch_ltc._backend import bindings

DOCTOR = "from torch_ltc import doctor; raise SystemExit(doctor.main())"


def test_a_working_installation() -> None:
    result = run_python(DOCTOR)
    assert result.returncode == 0
    assert "Device 'lazy' is ready." in result.stdout
    for word in ("torch", "LLVM", "oneDNN", "CPU", "threads", "cache", "compiler"):
        assert word in result.stdout, word
    assert "FAIL" not in result.stdout


def test_as_a_module() -> None:
    program = """
        import runpy
        runpy.run_module("torch_ltc.doctor", run_name="__main__")
    """
    assert "is ready" in run_python(program).stdout


def test_unwritable_cache_is_a_note(tmp_path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    result = run_python(DOCTOR, TORCH_LTC_CACHE_DIR=str(blocked / "cache"))
    assert result.returncode == 0
    assert str(blocked) in result.stdout
    assert "TORCH_LTC_CACHE_DIR" in result.stdout


def test_missing_bindings_fail_with_a_remedy() -> None:
    program = """
        import sys
        class Reject:
            def find_spec(self, name, path=None, target=None):
                if name == "torch_ltc._C":
                    raise ImportError("libMLIR.so.22.1: cannot open shared object file")
        sys.meta_path.insert(0, Reject())
        from torch_ltc import doctor
        raise SystemExit(doctor.main())
    """
    result = run_python(program, check=False)
    assert result.returncode == 1
    assert "libMLIR.so.22.1" in result.stdout
    assert "FAIL" in result.stdout


@pytest.mark.parametrize("value", ["0", "false"])
def test_autoload_switched_off_is_reported(value: str) -> None:
    result = run_python(DOCTOR, TORCH_DEVICE_BACKEND_AUTOLOAD=value)
    assert result.returncode == 0
    assert "TORCH_DEVICE_BACKEND_AUTOLOAD" in result.stdout


def test_report_for_other_programs() -> None:
    program = "from torch_ltc import doctor; raise SystemExit(doctor.main(['--json']))"
    report = json.loads(run_python(program).stdout)
    assert report["version"] and report["ready"] is True
    rows = {row["check"]: row for row in report["findings"]}
    assert rows["backend"]["ok"] and rows["backend"]["fatal"]
    assert "LLVM" in rows["libraries"]["text"]


def run_package(*arguments: str, module: str = "torch_ltc", **environment: str):
    program = f"""
        import runpy, sys
        sys.argv[1:] = {list(arguments)}
        runpy.run_module({module!r}, run_name="__main__")
    """
    return run_python(program, check=False, **environment)


def test_package_as_a_command(tmp_path) -> None:
    result = run_package("--json", TORCH_LTC_CACHE_DIR=str(tmp_path / "cache"))
    row = json.loads(result.stdout)
    assert result.returncode == 0
    assert row["devices"] == ["lazy:0"]
    assert row["cache"] == str(tmp_path / "cache")
    text = run_package(TORCH_LTC_CACHE_DIR=str(tmp_path / "cache")).stdout
    assert f"cache: {tmp_path / 'cache'}" in text.splitlines()


def test_help_lists_each_environment_variable() -> None:
    text = run_package("--help").stdout
    for option in bindings().config_options():
        assert f"\n  {option['environment']}=" in text, option["name"]


def test_each_listed_command_runs() -> None:
    text = run_package("--help").stdout
    commands = re.findall(r"python -m (torch_ltc\.\w+)", text)
    assert "torch_ltc.doctor" in commands
    for module in commands:
        result = run_package("--help", module=module)
        assert result.returncode == 0 and "usage" in result.stdout, module


def test_the_program_is_compiled() -> None:
    """A broken code generator is detected, whatever tier the environment selects."""
    program = """
        import torch_ltc
        from torch_ltc import doctor
        doctor.examine()
        assert torch_ltc.metrics()["compilations"] == 1, torch_ltc.compile_log()
        assert torch_ltc.config.tier == "interpret"
    """
    result = run_python(program, TORCH_LTC_TIER="interpret")
    assert result.returncode == 0, result.stderr
