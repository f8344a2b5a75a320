"""The pages of a dump are complete, linked and self-contained; replay works."""

from __future__ import annotations

import re
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest
import torch
import torch_ltc
from comparison import assert_close
from torch import nn
from torch_ltc import dump_page, replay
from torch_ltc._diagnostics.dump_reading import Dump, Op, Plan, read_dump
from torch_ltc._diagnostics.graph_drawing import lay_out, read_dot, svg
from torch_ltc._diagnostics.program_page import page as page_of

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
        model(inputs).cpu()  # another program
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
        for part in (
            "modules",
            "lines",
            "commands",
            "times",
            "buffers",
            "ops",
            "stages",
        ):
            assert part in page.targets
    index = Links()
    index.feed((dumps / "index.html").read_text())
    assert {f"{path.name}/index.html" for path in programs(dumps)} <= index.links


def test_a_page_shows_the_step(dumps: Path) -> None:
    folder = max(programs(dumps), key=lambda p: len((p / "ir.txt").read_text()))
    text = (folder / "index.html").read_text()
    for sign in ("body", "head", "aten::tanh", "test_dump_page.py", "<svg", "<rect"):
        assert sign in text
    assert "The slowest:" in text and "matmul" in text
    dump = read_dump(folder)
    lines = {line for command in dump.commands for line in command.lines}
    assert any(line.startswith("test_dump_page.py:") for line in lines)
    assert all(buffer.first <= buffer.last for buffer in dump.plan.buffers)
    assert "ltc-opt" in (folder / "README").read_text()


def test_texts_are_escaped(tmp_path: Path) -> None:
    text = "<script>\"&'"
    dump = Dump(tmp_path, {"program": text, "line": text}, Plan(""))
    dump.ops = [Op(1, f"aten::{text}", text, f"a.py:{text}", f"m.{text}")]
    dump.tensors = [[text] * 6]

    class Tags(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list) -> None:
            assert tag != "script"
            assert all(name in KNOWN for name, _ in attrs), attrs

    KNOWN = {"charset", "class", "href", "id", "lang", "open"}
    Tags().feed(page_of(dump))
    drawing = svg(f'digraph {{\n  a [label="{text.replace(chr(34), "")}"]\n}}\n')
    assert ElementTree.fromstring(drawing).findtext(".//{*}title") == "<script>&'"


def test_templates_are_read_only_for_pages() -> None:
    from subprocesses import run_python

    program = """
    import sys, torch, torch_ltc.debug, torch_ltc.dump_page
    print("jinja2" in sys.modules)
    """
    assert run_python(program).stdout == "False\n"


PLACE = re.compile(r"#ltc.place<arena (\d+).*?bytes = (\d+), live = (\d+) to (\d+)>")


def test_a_notebook_shows_the_last_page_in_a_frame(dumps: Path) -> None:
    pages = dump_page.write_pages(str(dumps))
    frames = []

    class Frames(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list) -> None:
            frames.append((tag, dict(attrs)["srcdoc"]))

    Frames().feed(pages._repr_html_())
    assert frames == [("iframe", pages[-1].read_text())]


def test_the_drawn_arena_is_the_compiler_s(dumps: Path) -> None:
    assert any(read_dump(folder).plan.arena_bytes for folder in programs(dumps))
    for folder in programs(dumps):
        plan = read_dump(folder).plan
        drawn = [(b, offset) for b, offset in plan.offsets() if b.place == "arena"]
        written = {tuple(map(int, m)) for m in PLACE.findall(text_of(folder))}
        assert written == {(at, b.bytes, b.first, b.last) for b, at in drawn}
        assert f"torch_ltc.arena_bytes = {plan.arena_bytes} " in text_of(folder)
        assert str(plan.arena_bytes) in (folder / "summary.txt").read_text()
        for a, at in drawn:
            assert at + a.bytes <= plan.arena_bytes
            for b, bt in drawn:
                together = a.first <= b.last and b.first <= a.last
                if a is not b and together:
                    assert at + a.bytes <= bt or bt + b.bytes <= at


def text_of(folder: Path) -> str:
    return (folder / "kernels.mlir").read_text()


def test_rectangles_are_buffers_at_their_offsets(dumps: Path) -> None:
    folder = max(programs(dumps), key=lambda p: len((p / "ir.txt").read_text()))
    page = (folder / "index.html").read_text()
    rows = re.findall(
        r'<rect x="[\d.]+" y="([\d.]+)" width="[\d.]+" height="([\d.]+)"', page
    )
    placed = read_dump(folder).plan.offsets()
    assert len(rows) == len(placed) > 1
    top = max(offset + buffer.bytes for buffer, offset in placed)
    for (y, height), (buffer, offset) in zip(rows, placed):
        bottom = (320 - float(y) - float(height)) / 320 * top
        assert bottom == pytest.approx(offset, abs=top / 1000)
        if buffer.bytes > top / 100:
            assert float(height) / 320 * top == pytest.approx(buffer.bytes, rel=0.05)


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


def test_replay_on_the_saved_inputs(tmp_path: Path, capsys) -> None:
    weight, x = torch.randn(5, 4), torch.randn(3, 5)
    with torch_ltc.debug.dump_to(tmp_path, inputs=True):
        lazy_weight = weight.to("lazy")
        lazy_weight.sub_((x.to("lazy").t() @ (x.to("lazy") @ lazy_weight)) * 0.3)
        torch_ltc.mark_step()
    expected = weight - (x.t() @ (x @ weight)) * 0.3
    (folder,) = programs(tmp_path)
    for stage in ("torch-raw", "linalg"):
        (result,) = replay.replay(folder, stage)
        assert_close(result, expected)
    assert "inputs.pt" in capsys.readouterr().out


def test_inputs_are_saved_only_on_request(dumps: Path) -> None:
    assert not list(dumps.glob("*/inputs.pt"))


def test_the_drawing_has_every_op_apart_from_the_others(dumps: Path) -> None:
    folder = max(programs(dumps), key=lambda p: len((p / "ir.txt").read_text()))
    dot = (folder / "graph.dot").read_text()
    nodes = read_dot(dot)
    lay_out(nodes)
    assert len(nodes) == dot.count("[label=")
    places = [(node.row, node.place) for node in nodes.values()]
    for row, place in places:
        near = [p for r, p in places if r == row and abs(p - place) < 0.999]
        assert len(near) == 1
    for node in nodes.values():
        assert all(nodes[name].row < node.row for name in node.above)
    picture = (folder / "graph.svg").read_text()
    assert ElementTree.fromstring(picture).tag.endswith("svg")
    assert picture.count("<rect") == len(nodes) and "aten::tanh" in picture
    assert torch_ltc.debug.dump(-1, stage="svg").startswith("<svg")


def test_joins_and_checks_are_commands() -> None:
    table, weight = torch.randn(9, 16).to("lazy"), torch.randn(16, 16).to("lazy")
    ids = torch.tensor([1, 8, 3], device="lazy")
    kept = [(table[ids].tanh() @ weight), (table.sin() @ weight)]
    torch_ltc.mark_step(wait=True)
    plan = Plan(torch_ltc.debug.dump(-1, "plan"))
    kinds = [command.op for command in plan.commands]
    assert {"check_bounds", "join", "matmul", "kernel_call"} <= set(kinds)
    check = plan.commands[kinds.index("check_bounds")]
    (place,) = {plan.buffers[index].place for index in check.operands}
    assert place == "parameter" and not check.results, "a check isn't a copy"
    join = plan.commands[kinds.index("join")]
    assert set(join.operands) == set(join.results), "parts are written in the whole"
    assert join.bytes == plan.buffers[join.results[0]].bytes == 12 * 16 * 4
    assert len(kept) == 2


def test_times_are_those_of_the_page_s_commands(tmp_path: Path) -> None:
    """The page shows the times of the right commands, although the runtime has no command
    for a join whose parts are written in place."""
    table, weight = torch.randn(99, 64).to("lazy"), torch.randn(64, 64).to("lazy")
    with torch_ltc.debug.dump_to(tmp_path), torch_ltc.config(profile_commands=True):
        kept = [table.sin() @ weight, table.cos() @ weight]
        torch_ltc.mark_step(wait=True)
        assert len(kept) == 2
    (folder,) = programs(tmp_path)
    commands = read_dump(folder).commands
    (join,) = [c for c in commands if c.op == "join"]
    assert join.copies == 0
    timed = torch_ltc.debug.commands()
    names = [row["name"].split()[0] for row in timed]
    assert names[: len(commands) - 1] == [c.computes for c in commands if c is not join]
    page = (folder / "index.html").read_text()
    table = page.partition('<h2 id="commands"')[2].partition("<h2")[0]
    for number, command in enumerate(commands):
        row = table.partition(f'id="command-{number}"')[2].partition("</tr>")[0]
        assert (">0 us<" in row) == (command is join), row


def test_memory_is_the_plan_s() -> None:
    x = torch.randn(64, 64).to("lazy")
    with torch_ltc.config(source_info=True):
        result = ((x @ x).exp() @ (x @ x.t())).sum(0)
        torch_ltc.mark_step(wait=True)
    memory, plan = torch_ltc.debug.memory(-1), torch_ltc.debug.plan(-1)
    new = [row for row in plan["buffers"] if row["place"] in ("arena", "output")]
    alive = [row for row in new if row["first"] <= memory["command"] <= row["last"]]
    assert memory["peak_bytes"] == sum(row["bytes"] for row in alive)
    assert sum(memory["lines"].values()) == memory["peak_bytes"]
    assert all(line.startswith("test_dump_page.py:") for line in memory["lines"])
    arena = sum(row["bytes"] for row in alive if row["place"] == "arena")
    assert 0 < arena <= plan["arena_bytes"]
    assert result.shape == (64,)


def test_a_plan_of_constants_has_no_commands() -> None:
    x = torch.full((5,), 2.0, device="lazy")
    y = torch.tensor([1, 2, 3], device="lazy")
    torch_ltc.mark_step(wait=True)
    assert x.shape == (5,) and y.shape == (3,)
    assert torch_ltc.debug.memory(-1)["peak_bytes"] >= 0


def test_replay_of_an_exported_program_gives_its_outputs(tmp_path: Path) -> None:
    model = nn.Linear(3, 2)
    x = torch.randn(4, 3)
    folder = torch_ltc.export(model, (x,)).save(tmp_path / "model")
    (result,) = replay.replay(folder)
    assert_close(result, model(x))


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
