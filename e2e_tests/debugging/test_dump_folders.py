"""Every program that runs while dumping is on has a folder in the dump."""

from __future__ import annotations

import json
import logging
import shutil
from pathlib import Path

import pytest
import torch
import torch_ltc
from subprocesses import run_python

FILES = {
    "ir.txt",
    "torch-raw.mlir",
    "torch.mlir",
    "linalg.mlir",
    "kernels.mlir",
    "llvm.ll",
    "asm.s",
    "graph.dot",
    "tensors.txt",
    "summary.txt",
}


def run_once(size: int) -> str:
    """Runs one program; returns its hash."""
    kept = (torch.ones(size, device="lazy") * 2).tanh()
    torch_ltc.mark_step(wait=True)
    assert kept.shape == (size,)
    return torch_ltc.step_log()[-1]["program"]


def folder_of(program: str, directory: Path) -> Path:
    found = [path for path in directory.iterdir() if path.name.endswith(program[:12])]
    assert len(found) == 1, f"{program[:12]} among {list(directory.iterdir())}"
    return found[0]


def test_a_program_from_memory_is_dumped(tmp_path: Path) -> None:
    program = run_once(101)
    compiled = torch_ltc.metrics()["compilations"]
    with torch_ltc.debug.dump_to(tmp_path):
        assert run_once(101) == program
    folder = folder_of(program, tmp_path)
    assert {path.name for path in folder.iterdir()} >= FILES
    assert "torch.aten.tanh" in (folder / "torch.mlir").read_text()
    assert "llvm" in (folder / "llvm.ll").read_text()
    assert torch_ltc.metrics()["compilations"] == compiled, "shown, not compiled"
    assert torch_ltc.debug.dump(-1, "torch-raw")  # the last step can still be dumped
    entry = [e for e in torch_ltc.compile_log() if e["program"] == program][-1]
    assert entry["dump_directory"] == str(folder)


def test_dumped_once_into_each_directory(tmp_path: Path) -> None:
    program = run_once(102)
    for name in ("a", "b"):
        with torch_ltc.debug.dump_to(tmp_path / name):
            run_once(102)
            written = (folder_of(program, tmp_path / name) / "ir.txt").stat()
            run_once(102)
        again = (folder_of(program, tmp_path / name) / "ir.txt").stat()
        assert again.st_mtime_ns == written.st_mtime_ns


def test_a_removed_folder_is_written_again(tmp_path: Path) -> None:
    with torch_ltc.debug.dump_to(tmp_path):
        program = run_once(103)
        shutil.rmtree(folder_of(program, tmp_path))
        run_once(103)
        assert (folder_of(program, tmp_path) / "summary.txt").exists()


def test_nothing_is_dumped_when_off(tmp_path: Path) -> None:
    with torch_ltc.debug.dump_to(tmp_path):
        pass
    run_once(104)
    assert not list(tmp_path.iterdir())


def test_an_interpreted_program_is_dumped(tmp_path: Path) -> None:
    with torch_ltc.config(tier="interpret"), torch_ltc.debug.dump_to(tmp_path):
        program = run_once(105)
    assert "aten::tanh" in (folder_of(program, tmp_path) / "ir.txt").read_text()


def test_a_folder_that_cannot_be_written_is_reported_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with torch_ltc.debug.dump_to(tmp_path / "gone"):
        # A file replaces the folder, so that no user, not even root, can write to the
        # folder.
        (tmp_path / "gone").rmdir()
        (tmp_path / "gone").write_text("")
        with caplog.at_level(logging.WARNING, logger="torch_ltc"):
            run_once(106)
            run_once(106)
    messages = [record for record in caplog.records if "dumped" in record.message]
    assert len(messages) == 1 and str(tmp_path) in messages[0].message


def test_a_program_from_the_disk_is_dumped(tmp_path: Path, own_cache: str) -> None:
    program = """
    import torch, torch_ltc, json
    kept = torch.ones(7, device="lazy").exp()
    torch_ltc.mark_step(wait=True)
    print(json.dumps(torch_ltc.compile_log()[-1]))
    """
    environment = {"TORCH_LTC_CACHE": "1"}
    run_python(program, **environment)
    dumped = run_python(program, TORCH_LTC_DUMP=str(tmp_path / "d"), **environment)
    entry = json.loads(dumped.stdout.splitlines()[-1])
    folder = folder_of(entry["program"], tmp_path / "d")
    assert "torch.aten.exp" in (folder / "torch.mlir").read_text()
    assert entry["dump_directory"] == str(folder)
