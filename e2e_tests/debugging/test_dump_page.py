"""The pages of a dump: complete, linked, self-contained; and replay."""

from __future__ import annotations

import re
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest
import torch
import torch_ltc
from torch import nn
from torch_ltc import dump_page, replay
from torch_ltc.dump_reading import Buffer, pack, read_dump

ROOT = Path(__file__).resolve().parents[2]


class Names(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(6, 5), nn.Tanh())
        self.head = nn.Linear(5, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.body(x))


@pytest.fixture(scope="module")
def dumps(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("dumps")
    options = {"source_info": True, "profile_commands": True}
    with torch_ltc.debug.dump_to(folder), torch_ltc.config(**options):
        model = Names().to("lazy")
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        inputs = torch.randn(4, 6).to("lazy")
        for _ in range(3):
            optimizer.zero_grad()
            model(inputs).square().mean().backward()
            optimizer.step()
    return folder


def programs(folder: Path) -> list[Path]:
    return sorted(path.parent for path in folder.glob("*/summary.txt"))


class Links(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.targets: set[str] = set()
        self.links: set[str] = set()
        self.outside: list[str] = []

    def handle_starttag(self, tag: str, attrs: list) -> None:
        values = dict(attrs)
        if values.get("id"):
            self.targets.add(values["id"])
        if tag in ("script", "link", "img", "iframe") or "src" in values:
            self.outside.append(tag)
        if link := values.get("href"):
            self.links.add(link)


def test_each_program_has_a_page_whose_links_lead_somewhere(dumps: Path) -> None:
    assert len(programs(dumps)) >= 2
    for folder in programs(dumps):
        text = (folder / "index.html").read_text()
        page = Links()
        page.feed(text)
        assert not page.outside and "http" not in text.replace("xmlns", "")
        missing = {k[1:] for k in page.links if k.startswith("#")} - page.targets
        assert not missing
        for part in ("modules", "lines", "commands", "buffers", "ops", "stages"):
            assert part in page.targets
    index = Links()
    index.feed((dumps / "index.html").read_text())
    assert {f"{path.name}/index.html" for path in programs(dumps)} <= index.links


def test_a_page_shows_the_step(dumps: Path) -> None:
    folder = max(programs(dumps), key=lambda p: len((p / "ir.txt").read_text()))
    text = (folder / "index.html").read_text()
    for sign in ("body", "head", "aten::tanh", "test_dump_page.py", "<svg", "<rect"):
        assert sign in text
    assert "Time of each command" in text and "matmul" in text
    dump = read_dump(folder)
    lines = {line for command in dump.commands for line in command.lines}
    assert any(line.startswith("test_dump_page.py:") for line in lines)
    assert all(
        buffer.bytes > 0 and buffer.first <= buffer.last for buffer in dump.buffers
    )
    assert "ltc-opt" in (folder / "README").read_text()


def test_packed_buffers_do_not_overlap() -> None:
    buffers = [Buffer(str(i), 1 + i * 7 % 5, i % 4, i % 4 + i % 3) for i in range(30)]
    placed = pack(buffers)
    for a, at in placed:
        for b, bt in placed:
            together = a.first <= b.last and b.first <= a.last
            if a is not b and together:
                assert at + a.bytes <= bt or bt + b.bytes <= at


def test_the_commands_of_the_readme_work(dumps: Path) -> None:
    folder = programs(dumps)[-1]
    commands = re.findall(r"^  ltc-opt (.*)$", (folder / "README").read_text(), re.M)
    assert len(commands) == 3
    for command in commands:
        tool = [str(ROOT / "build" / "bin" / "ltc-opt"), *command.split()]
        result = subprocess.run(tool, cwd=folder, capture_output=True, text=True)
        assert result.returncode == 0 and "func.func" in result.stdout, result.stderr


@pytest.mark.parametrize("stage", ["torch-raw", "torch", "linalg"])
def test_replay_of_a_dump(dumps: Path, stage: str, capsys) -> None:
    folder = programs(dumps)[-1]
    assert replay.main([str(folder), "--stage", stage, "--repeat", "3"]) == 0
    shown = capsys.readouterr().out
    assert "random, seed 0" in shown and "output 0" in shown and "median of 3" in shown
    assert re.search(r"mean -?\d", shown)


def test_replay_of_an_exported_program_gives_its_outputs(tmp_path: Path) -> None:
    model = nn.Linear(3, 2)
    x = torch.randn(4, 3)
    folder = torch_ltc.export(model, (x,)).save(tmp_path / "model")
    (result,) = replay.replay(folder)
    torch.testing.assert_close(result, model(x).detach())


def test_bad_folders_are_sentences(tmp_path: Path, capsys) -> None:
    assert replay.main([str(tmp_path)]) == 1
    assert "has no program.mlir" in capsys.readouterr().err
    assert dump_page.main([str(tmp_path)]) == 1
    assert "has no dumped program" in capsys.readouterr().err
    with pytest.raises(ValueError, match=r"no summary\.txt"):
        read_dump(tmp_path)
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(ValueError, match="Nothing can be dumped"),
        torch_ltc.debug.dump_to(tmp_path / "file" / "folder"),
    ):
        pass


def test_the_environment_variable_writes_pages(tmp_path: Path) -> None:
    from subprocesses import run_python

    program = """
    import torch
    print((torch.ones(3, device="lazy") * 2).sum().item())
    """
    run_python(program, TORCH_LTC_DUMP=str(tmp_path / "d"))
    assert (tmp_path / "d" / "index.html").exists()
