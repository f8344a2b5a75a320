"""Errors and profiles name the lines and modules of this process's trace, even if another
process compiled the program."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch
import torch_ltc
from subprocesses import run_python

#: Expressions whose commands detect invalid inputs and fail.
FAILURES = {
    "index": "x[i]",
    "division": "i // (i - i)",
}


def program(expression: str, blank_lines: int, source_info: bool) -> str:
    """Returns a program that prints its error; `blank_lines` blank lines come before the
    failing line."""
    return (
        "import torch, torch_ltc\n"
        f"torch_ltc.config.source_info = {source_info}\n"
        "x = torch.ones(3, 3, device='lazy')\n"
        "i = torch.tensor([7], device='lazy')\n"
        "torch_ltc.mark_step()\n" + "\n" * blank_lines + f"y = {expression}\n"
        "try:\n"
        "    (y * 2).tolist()\n"
        "    torch_ltc.wait_device_ops()\n"
        "except (IndexError, RuntimeError) as error:\n"
        "    print(torch_ltc.compile_log()[-1]['origin'], str(error))\n"
    )


@pytest.mark.parametrize("failure", FAILURES)
def test_a_program_from_the_disk_names_this_script(
    failure: str, tmp_path: Path
) -> None:
    def error_at(blank_lines: int, source_info: bool, origin: str) -> str:
        text = program(FAILURES[failure], blank_lines, source_info)
        run = run_python(text, TORCH_LTC_CACHE_DIR=str(tmp_path))
        assert run.stdout.startswith(origin), run.stdout
        return run.stdout

    for blank_lines, source_info, origin in (
        (0, False, "compiled"),  # compiled without lines
        (5, True, "disk"),
        (9, True, "disk"),
    ):
        text = error_at(blank_lines, source_info, origin)
        lines = re.findall(r"\(at <?string>?:(\d+)\)", text)
        if source_info:
            assert str(6 + blank_lines) in lines, text
            assert set(lines) <= {str(6 + blank_lines), str(8 + blank_lines)}, text
    # Without source_info, the error names no line rather than a wrong one.
    assert "source_info" in error_at(2, False, "disk")


def test_two_lines_of_one_program() -> None:
    table = torch.ones(4, 2, device="lazy")
    index = torch.tensor([9], device="lazy")
    torch_ltc.mark_step()
    with torch_ltc.config(source_info=True):
        texts = []
        for choice in range(2):
            with pytest.raises(IndexError, match="out of range") as caught:
                if choice:
                    (table.index_select(0, index) * 2).cpu()
                else:
                    (table.index_select(0, index) * 2).cpu()
            texts.append(str(caught.value))
    first, second = (
        int(re.search(r"\(at test_lines.py:(\d+)\)", text).group(1)) for text in texts
    )
    assert first == second + 2


def test_profiles_have_lines_and_modules_of_programs_from_the_disk(
    tmp_path: Path,
) -> None:
    text = (
        "import json, torch, torch_ltc\n"
        "torch_ltc.config.source_info = True\n"
        "net = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Tanh()).to('lazy')\n"
        "x = torch.ones(2, 4, device='lazy')\n"
        "torch_ltc.mark_step()\n"
        "{blank}with torch_ltc.config(profile_commands=True):\n"
        "    net(x).tolist()\n"
        "entry = torch_ltc.compile_log()[-1]\n"
        "commands = torch_ltc.debug.commands(entry['program'])\n"
        "print(json.dumps([entry['origin'], commands]))\n"
    )
    outputs = [
        run_python(text.format(blank=blank), TORCH_LTC_CACHE_DIR=str(tmp_path)).stdout
        for blank in ("", "\n\n\n")
    ]
    assert "compiled" in outputs[0] and "disk" in outputs[1]
    assert "<string>:7" in outputs[0] and "<string>:10" in outputs[1]
    assert '"0' in outputs[1], "modules as well"


@pytest.mark.parametrize(
    "file",
    ["<ipython-input-3-0f1e>", "<python-input-7>", "<doctest page[2]>", "<stdin>"],
)
def test_cells_and_shells_have_lines(file: str) -> None:
    """Ops of a notebook's cell, of a shell and of a doctest are reported with their lines,
    although their code isn't in a file."""
    text = "\n\nx.sum().item()"
    torch_ltc.reset_metrics()
    exec(compile(text, file, "exec"), {"x": torch.ones(3, device="lazy") + 1})
    assert [row["location"] for row in torch_ltc.syncs()] == [f"{file}:3"]
