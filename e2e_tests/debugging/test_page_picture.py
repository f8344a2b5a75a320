"""The pages of a dump are rendered completely in a headless browser, without network."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
import torch
import torch_ltc
from debugging.browser import Browser, browser, find_browser
from torch import nn

WIDTH = 1400


class Attention(nn.Module):
    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.inner = nn.Linear(width, 3 * width)
        self.outer = nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        query, key, value = self.inner(self.norm(x)).chunk(3, dim=-1)
        weights = (query @ key.transpose(-2, -1)).softmax(-1)
        return x + self.outer(weights @ value)


@pytest.fixture(scope="module")
def dumps(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("dumps")
    options = {"source_info": True, "profile_commands": True}
    with torch_ltc.debug.dump_to(folder), torch_ltc.config(**options):
        model = nn.Sequential(nn.Embedding(20, 16), Attention(), nn.Linear(16, 20))
        model.to("lazy")
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
        tokens = torch.arange(2 * 9).view(2, 9).to("lazy")
        for _ in range(2):
            optimizer.zero_grad()
            scores = model(tokens[:, :-1]).flatten(0, 1)
            nn.functional.cross_entropy(scores, tokens[:, 1:].flatten()).backward()
            optimizer.step()
    return folder


@pytest.fixture(scope="module")
def view(tmp_path_factory):
    executable = find_browser()
    if executable is None:
        pytest.skip("no Chromium is installed")
    with browser(executable, tmp_path_factory.mktemp("profile")) as running:
        yield running


def program_page(dumps: Path) -> Path:
    return max(dumps.glob("*/index.html"), key=lambda path: path.stat().st_size)


#: JavaScript that returns left, top, right and bottom of each selected element.
BOXES = """[...document.querySelectorAll(%r)].map(element => {
  const box = element.getBoundingClientRect();
  return [box.left, box.top, box.right, box.bottom].map(Math.round) })"""


def test_pages_are_drawn_without_network(dumps: Path, view: Browser) -> None:
    drawing = program_page(dumps).with_name("graph.svg")
    for page in (dumps / "index.html", drawing):
        picture = open_alone(view, page)
        ink = (picture - picture[0, 0]).abs().sum(-1) > 60
        assert 0.001 < ink.float().mean() < 0.5
        assert ink.any(0).float().mean() > 0.2 and ink.any(1).float().mean() > 0.05


def open_alone(view: Browser, page: Path, whole: bool = False) -> torch.Tensor:
    """Opens a page and returns its picture. Fails if the page requests another file or
    logs a message."""
    view.open(page, WIDTH)
    assert not view.messages, "neither warnings nor errors"
    assert view.requests == [page.resolve().as_uri()]
    return view.picture(whole).int()


def test_each_part_of_a_page_has_ink(dumps: Path, view: Browser) -> None:
    picture = open_alone(view, program_page(dumps), whole=True)
    headings = view.evaluate(BOXES % "h2")
    assert len(headings) >= 9
    bottoms = [box[1] for box in headings[1:]] + [len(picture)]
    for (left, _, right, top), bottom in zip(headings, bottoms):
        part = picture[top + 4 : bottom, left:right]
        assert ((part - 255).abs().sum(-1) > 60).sum() > 100

    (left, top, right, bottom), *_ = view.evaluate(BOXES % "svg")
    assert right - left > 900 and bottom - top > 200
    colors = (picture[top:bottom, left:right] << torch.tensor([16, 8, 0])).sum(-1)
    assert len(colors.unique()) > 5, "rectangles of several colors"


def test_nothing_is_cut_off_or_overlaps(dumps: Path, view: Browser) -> None:
    for width in (WIDTH, 900):
        view.open(program_page(dumps), width)
        assert view.evaluate("document.documentElement.scrollWidth") <= width
        # Each row is below the previous row.
        for rows in view.evaluate(
            "[...document.querySelectorAll('table')].map(table => "
            + (BOXES % "tr").replace("document", "table")
            + ")"
        ):
            shown = [box for box in rows if box[3] > box[1]]
            assert all(a[3] <= b[1] + 1 for a, b in itertools.pairwise(shown))
        assert (
            view.evaluate(
                "[...document.querySelectorAll('td,th')].filter(cell => "
                "cell.scrollWidth > cell.clientWidth + 1).map(cell => cell.innerText)"
            )
            == []
        )


def test_a_link_leads_to_its_command(dumps: Path, view: Browser) -> None:
    view.open(program_page(dumps), WIDTH)
    view.evaluate("document.querySelector('#times ~ table a').click()")
    command = view.evaluate("document.querySelector('tr:target').id")
    assert command.startswith("command-")
    box = "document.querySelector('tr:target').getBoundingClientRect()"
    # After scrolling, the row may begin half a pixel above the visible part.
    assert -1 < view.evaluate(f"{box}.top") < 1000, "scrolled into sight"
    background = "getComputedStyle(document.querySelector('tr:target')).backgroundColor"
    assert view.evaluate(background) == "rgb(255, 243, 191)", "and marked"
