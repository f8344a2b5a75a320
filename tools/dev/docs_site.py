"""./dev docs: builds the documentation as a site with search, in `.dev/site`."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import environment
from environment import VENV
from steps import ROOT, exclusive, once, run_logged, say

FOLDER = VENV.with_name(".venv-docs")
REQUIREMENTS = ROOT / "requirements-docs.txt"


def _prepare() -> None:
    pip = [str(FOLDER / "bin" / "python"), "-m", "pip", "install"]
    advice = "is the package index reachable? Then call again"

    def create() -> None:
        environment.make_venv(FOLDER, "docs")
        run_logged("docs", [*pip, "-r", str(REQUIREMENTS)], advice, append=True)

    once("docs", [REQUIREMENTS, sys.version, str(ROOT)], create)


def docs(arguments: Sequence[str]) -> int:
    """Builds the site; returns an exit code. An invalid link or anchor is an error."""
    if arguments:
        say("usage: ./dev docs")
        return 2
    with exclusive("docs"):
        _prepare()
        command = [str(FOLDER / "bin" / "python"), "-m", "mkdocs", "build", "--strict"]
        advice = "the lines above name the page; links are relative to docs/"
        run_logged("site", command, advice, {"NO_MKDOCS_2_WARNING": "1"})
    say("open .dev/site/index.html; with search: python3 -m http.server -d .dev/site")
    return 0
