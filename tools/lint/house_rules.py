"""Rules of this project that aren't available in existing linters."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

# Maximum line counts of a hand-written file, a function and a folder's README.
FILE_LINES = 520
FUNCTION_LINES = 80
README_LINES = 25
# Maximum number of columns of prose in Markdown.
PROSE_COLUMNS = 124
# Maximum number of modules directly in the package; the others are in folders by concern.
TOP_MODULES = 15

PARTS = [
    "benchmarks",
    "e2e_tests",
    "examples",
    "ltc_backend",
    "mlir_lowering",
    "python",
    "runtime",
    "tools",
]
CPP = {".cpp", ".h", ".inc", ".c"}
SOURCES = CPP | {".py", ".pyi", ".td", ".mlir", ".toml", ".proto"}
NAMELESS = re.compile(r"(^|[_.\-])(utils?|misc|common|helpers?)([_.\-]|$)", re.I)
# A source file in code quotes, with or without its folder.
NAMED_FILE = re.compile(r"`(?:[\w./-]*/)?([A-Za-z_][\w-]*\.(?:cpp|h|pyi?|td|toml))`")

# Each row: pattern, file suffixes, parts of paths that are exempt, the rule as text.
PATTERNS = [
    (
        re.compile(r"\b(secure_)?getenv\s*\("),
        CPP,
        ("config", "test"),
        "only the configuration table reads the environment",
    ),
    (
        re.compile(r"\bstd::cout\b|(?<![\w:])printf\s*\(|\bllvm::outs\(\)"),
        CPP,
        ("test", "tools/", "ltc-opt", "bench"),
        "a library doesn't print to stdout",
    ),
    (
        re.compile(r"\b(TODO|FIXME|XXX)\b"),
        SOURCES,
        ("tools/lint",),
        "report missing features to the user, not in a comment",
    ),
    (
        re.compile(r"-fvisibility=hidden"),
        {".txt", ".cmake"},
        ("runtime", "python", "ltc_backend"),
        "with hidden visibility MLIR's hasTrait silently returns false",
    ),
]

#: Folders of ltc_backend, lowest first: a folder includes only its own headers and those of
#: earlier folders.
LAYERS = [
    "config",
    "source",
    "events",
    "memory",
    "ir",
    "shape",
    "graph",
    "general",
    "programs",
    "compilation",
    "execution",
    "fallback",
    "tracing",
    "eager_semantics",
    "ops",
    "distributed",
    "capture",
    "device",
    "test",
]


def _layer_problems(text: str, name: str) -> Iterator[str]:
    part, _, place = name.partition("/")
    folder, _, rest = place.partition("/")
    if part != "ltc_backend" or not rest or Path(name).suffix not in CPP:
        return
    if folder not in LAYERS:
        yield f"{name}: '{folder}' isn't in LAYERS (tools/lint/house_rules.py)"
        return
    for number, line in enumerate(text.splitlines(), 1):
        include = re.match(r'#include "(\w+)/', line)
        if not include or include[1] not in LAYERS:
            continue
        if LAYERS.index(include[1]) > LAYERS.index(folder):
            yield f"{name}:{number}: {folder}/ is below {include[1]}/"


def file_problems(path: Path, name: str) -> Iterator[str]:
    """Yields the problems of a tracked file; `name` is its path in the project."""
    text = path.read_text(errors="replace")
    lines = text.splitlines()
    if NAMELESS.search(path.stem):
        yield f"{name}: name the file after what is in it"
    # A stub describes one module, so it can't be split.
    may_be_split = path.suffix in SOURCES and path.suffix != ".pyi"
    if may_be_split and len(lines) > FILE_LINES:
        yield f"{name}: {len(lines)} lines, {FILE_LINES} are allowed: split it"
    is_folder_readme = path.name == "README.md" and path.parent.name in PARTS
    if is_folder_readme and len(lines) > README_LINES:
        yield f"{name}: {len(lines)} lines, {README_LINES} are allowed"
    for pattern, suffixes, allowed, rule in PATTERNS:
        if path.suffix not in suffixes or any(part in name for part in allowed):
            continue
        for number, line in enumerate(lines, 1):
            if pattern.search(line):
                yield f"{name}:{number}: {rule}"
    yield from _layer_problems(text, name)
    if path.suffix == ".md" and "templates/" not in name:
        yield from _wide_prose(lines, name)
    elif path.suffix == ".py":
        yield from _long_functions(text, name)
    elif path.suffix in CPP:
        yield from _long_cpp_functions(lines, name)


def _wide_prose(lines: list[str], name: str) -> Iterator[str]:
    """Yields a problem for each line that is too wide and neither a table's row nor code."""
    is_code = False
    for number, line in enumerate(lines, 1):
        if line.lstrip().startswith("```"):
            is_code = not is_code
        elif not is_code and len(line) > PROSE_COLUMNS and not line.startswith("|"):
            yield f"{name}:{number}: {len(line)} columns, {PROSE_COLUMNS} are allowed"


# The beginning of a class, and lines that don't belong to a function.
CLASS = re.compile(r"(template <.*> )?(struct|class|union)\b")
NO_FUNCTION = re.compile(r"(namespace|enum|extern|using|typedef)\b|[#}/]|\w+:$")


def _long_cpp_functions(lines: list[str], name: str) -> Iterator[str]:
    """Yields a problem for each function that is too long, in a namespace or in a class of
    a namespace. Assumes clang-format's layout: the closing brace is below the first
    character of the signature."""
    # The column of declarations, the signature so far, its first line, and the first line
    # of the function.
    margin, signature, first, start = 0, "", 0, 0
    for number, line in enumerate(lines, 1):
        body = line[margin:]
        if margin and line.startswith("}"):
            margin, signature = 0, ""
        if not body or line[:margin].strip():
            continue
        if start:
            if body == "}":
                length = number - start + 1
                if length > FUNCTION_LINES:
                    called = signature.split("(")[0].split()[-1]
                    yield (
                        f"{name}:{start}: function '{called}' has {length} lines, "
                        f"{FUNCTION_LINES} are allowed"
                    )
                signature, start = "", 0
            continue
        if body[0] != " " and not signature.endswith(">"):
            signature, first = "" if NO_FUNCTION.match(body) else body, number
        elif signature:
            signature = f"{signature} {body.strip()}"
        if not signature.endswith(("{", ";", "}")):
            continue
        if signature.endswith("{") and CLASS.match(signature):
            margin, signature = 2, ""
        elif (
            signature.endswith("{")
            and "(" in signature
            and not signature.endswith("= {")
        ):
            start = first
        else:
            signature = ""


def _long_functions(text: str, name: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if length > FUNCTION_LINES:
                yield (
                    f"{name}:{node.lineno}: function '{node.name}' has {length} "
                    f"lines, {FUNCTION_LINES} are allowed"
                )


def stale_names(root: Path, names: list[str]) -> Iterator[str]:
    """Yields a problem for each file that doesn't exist although a README names it in code
    quotes."""
    existing = {Path(name).name for name in names}
    for name in names:
        if Path(name).name != "README.md":
            continue
        for number, line in enumerate((root / name).read_text().splitlines(), 1):
            for file in NAMED_FILE.findall(line):
                if file not in existing:
                    yield f"{name}:{number}: there is no file '{file}'"


def folder_problems(root: Path) -> Iterator[str]:
    """Yields a problem for each part of the project that has no README, and one if the
    package has too many modules at the top."""
    for part in PARTS:
        if (root / part).is_dir() and not (root / part / "README.md").exists():
            yield f"{part}/: has no README.md (at most {README_LINES} lines)"
    package = Path("python", "torch_ltc")
    count = len(list((root / package).glob("*.py")))
    if count > TOP_MODULES:
        yield f"{package}/: {count} modules, {TOP_MODULES} are allowed: use its folders"
