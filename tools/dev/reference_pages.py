"""Hook of MkDocs: generates pages of the site from the project's tables, with the templates
in templates/.

The options and metrics come from `config.def` and `metrics.def`. mlir-tblgen generates the
pages on the passes and the `ltc` dialect from their `.td` files.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import jinja2

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


def _fill(template: str, **values: Any) -> str:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).with_name("templates")),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    # Escapes the characters that have a meaning in a table's cell.
    environment.filters["cell"] = lambda text: re.sub(r"([|*])", r"\\\1", text)
    return environment.get_template(template).render(values)


def options() -> str:
    table = rows(BACKEND / "config" / "config.def", "LTC_OPTION")
    return _fill(
        "options.md",
        options=[
            {
                "name": name,
                "default": default,
                "variables": [name for name in (variable, other) if name],
                "effect": effect,
                "choices": [word for word in choices.split("|") if word],
                "text": text,
            }
            for _, name, default, variable, other, effect, choices, text in table
        ],
    )


def metrics() -> str:
    table = BACKEND / "events" / "metrics.def"
    macros = {"Counters": "LTC_COUNTER", "Timers": "LTC_TIMER"}
    tables = {title: rows(table, macro) for title, macro in macros.items()}
    return _fill("metrics.md", tables=tables)


def _tablegen(generator: str, file: str, *arguments: str) -> str:
    command = [LLVM / "bin" / "mlir-tblgen", f"-gen-{generator}-doc", *arguments]
    include = ["-I", INCLUDE, "-I", LLVM / "include"]
    path = INCLUDE / "torch_ltc" / file
    result = subprocess.run(
        [*command, *include, path], capture_output=True, text=True, check=True
    )
    text = re.sub(r"<!--.*?-->", "", result.stdout, flags=re.S)
    return text.replace("[TOC]", "").strip()


def passes() -> str:
    stages = {
        title: _tablegen("pass", f"{folder}/Passes.td")
        for title, folder in _PASSES.items()
    }
    return _fill("passes.md", stages=stages)


def dialect() -> str:
    return _fill(
        "ltc_dialect.md",
        ops=_tablegen("dialect", "Dialect/Ltc/LtcOps.td", "-dialect=ltc"),
        attributes=_tablegen("attrdef", "Dialect/Ltc/LtcAttributes.td"),
    )


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
