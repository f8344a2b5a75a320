"""Hook of MkDocs: generates pages of the site from the project's tables.

The options and metrics come from `config.def` and `metrics.def`. mlir-tblgen generates the
pages on the passes and the `ltc` dialect from their `.td` files.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
BACKEND = ROOT / "ltc_backend"
INCLUDE = ROOT / "mlir_lowering" / "include"
LLVM = Path("/usr/lib/llvm-22")

_STRING = r'"(?:[^"\\]|\\.)*"'
_ARGUMENT = re.compile(rf"\s*((?:{_STRING}\s*)+|[^,()\"]+)\s*(?:,|$)")
# The stages in order, each with the folder of its Passes.td.
_PASSES = {
    "Torch dialect": "Transforms",
    "Torch dialect for all sizes": "Symbolic",
    "Torch dialect to linalg": "Conversion/TorchToLinalg",
    "Torch dialect to TOSA": "Conversion/TorchToTosa",
    "Torch dialect to StableHLO": "Conversion/TorchToStablehlo",
    "Kernels": "Kernels",
    "Kernels to LLVM": "Codegen",
}


def rows(table: Path, macro: str) -> list[list[str]]:
    """Returns the arguments of each use of a macro; strings are joined and unquoted."""
    text = "\n".join(
        line
        for line in table.read_text().splitlines()
        if not line.lstrip().startswith(("//", "#"))
    )
    calls = re.findall(rf"\b{macro}\(((?:{_STRING}|[^()\"])*)\)", text)
    return [[_value(m[1]) for m in _ARGUMENT.finditer(call)] for call in calls]


def _value(argument: str) -> str:
    if not argument.startswith('"'):
        return argument.strip()
    parts = re.findall(_STRING, argument)
    return "".join(part[1:-1] for part in parts).replace('\\"', '"')


def _table(header: list[str], body: list[list[str]]) -> str:
    escaped = [[re.sub(r"([|*])", r"\\\1", cell) for cell in row] for row in body]
    lines = [header, ["---"] * len(header), *escaped]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines) + "\n"


def options() -> str:
    body = []
    for _, name, default, variable, other, effect, choices, text in rows(
        BACKEND / "config" / "config.def", "LTC_OPTION"
    ):
        variables = ", ".join(f"`{name}`" for name in (variable, other) if name)
        allowed = ", ".join(f"`{word}`" for word in choices.split("|") if word)
        text += f" One of {allowed}." if allowed else ""
        shown = f"`{default}`" if default else "empty"
        body.append([f"`{name}`", shown, variables, effect.lower(), text])
    header = ["option", "default", "environment variable", "affects", "meaning"]
    return (
        "# Options\n\nSet options as attributes of `torch_ltc.config`, in a `with` "
        "block, or by environment variables ([using.md](using.md)). An option that "
        "affects the *trace*, the *program* or the generated *code* is part of the "
        "keys of the caches that depend on it.\n\n" + _table(header, body)
    )


def metrics() -> str:
    table = BACKEND / "events" / "metrics.def"
    parts = [
        "# Metrics\n\n`torch_ltc.metrics()` returns them ([using.md](using.md)).\n"
    ]
    for title, macro in (("Counters", "LTC_COUNTER"), ("Timers", "LTC_TIMER")):
        body = [[f"`{name}`", text] for name, text in rows(table, macro)]
        parts.append(f"## {title}\n\n" + _table(["name", "meaning"], body))
    return "\n".join(parts)


def _tablegen(generator: str, file: str, *arguments: str) -> str:
    command = [LLVM / "bin" / "mlir-tblgen", f"-gen-{generator}-doc", *arguments]
    include = ["-I", INCLUDE, "-I", LLVM / "include"]
    path = INCLUDE / "torch_ltc" / file
    result = subprocess.run(
        [*command, *include, path], capture_output=True, text=True, check=True
    )
    text = re.sub(r"<!--.*?-->", "", result.stdout, flags=re.S)
    return text.replace("[TOC]", "").strip() + "\n"


def passes() -> str:
    parts = [
        "# Passes\n\n`ltc-opt` runs them ([tools.md](tools.md)); "
        "[adding_a_pass.md](adding_a_pass.md) shows how to add one.\n"
    ]
    for title, folder in _PASSES.items():
        parts.append(f"## {title}\n")
        parts.append(_tablegen("pass", f"{folder}/Passes.td"))
    return "\n".join(parts)


def dialect() -> str:
    ops = _tablegen("dialect", "Dialect/Ltc/LtcOps.td", "-dialect=ltc")
    attributes = _tablegen("attrdef", "Dialect/Ltc/LtcAttributes.td")
    return f"{ops}\n## Attributes\n\n{attributes}"


# The generated pages by file name.
PAGES = {
    "options.md": options,
    "metrics.md": metrics,
    "passes.md": passes,
    "ltc_dialect.md": dialect,
}


def on_files(files: Any, config: Any) -> Any:
    from mkdocs.structure.files import File

    for name, write in PAGES.items():
        files.append(File.generated(config, name, content=write()))
    return files
