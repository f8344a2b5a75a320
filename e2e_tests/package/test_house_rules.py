"""The linter's rule about long functions reports long C++ functions, but no other
blocks; others report long files and a package with too many modules."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "lint"))

import house_rules

LONG = "    x = 1;\n" * house_rules.FUNCTION_LINES

FUNCTIONS = {
    "function": "int f(int a,\n      int b) {\n" + LONG + "}\n",
    "constructor": "A::A(int a)\n    : a(a) {\n" + LONG + "}\n",
    "method": "class A {\npublic:\n  void f() {\n" + LONG + "  }\n};\n",
    "template": "template <typename T>\nT f() {\n" + LONG + "}\n",
}
OTHERS = {
    "table": "const Row rows[] = {\n" + LONG + "};\n",
    "class": "class A : public B<C()> {\n" + LONG + "};\n",
    "declaration": "int f();\nnamespace {\n" + LONG + "}\n",
    "short": "void f() {\n}\n" + "\n" * 200 + "void g() {\n}\n",
}


def _problems(tmp_path: Path, text: str) -> list[str]:
    path = tmp_path / "a.cpp"
    path.write_text(text)
    return list(house_rules.file_problems(path, "runtime/lib/a.cpp"))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_long_cpp_functions_are_reported(name: str, tmp_path: Path) -> None:
    (problem,) = _problems(tmp_path, FUNCTIONS[name])
    assert "lines, 80 are allowed" in problem


@pytest.mark.parametrize("name", OTHERS)
def test_other_blocks_are_not(name: str, tmp_path: Path) -> None:
    assert not _problems(tmp_path, OTHERS[name])


def test_long_files_are_reported(tmp_path: Path) -> None:
    for name in ("a.py", "a.cpp"):
        path = tmp_path / name
        path.write_text("\n" * 520)
        assert not list(house_rules.file_problems(path, f"runtime/lib/{name}"))
        path.write_text("\n" * 521)
        (problem,) = house_rules.file_problems(path, f"runtime/lib/{name}")
        assert "521 lines, 520 are allowed" in problem


def test_wide_prose_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    wide = "a " * 63
    path.write_text(f"{wide[:124]}\n| {wide} |\n```bash\n{wide}\n```\n{wide}\n")
    (problem,) = house_rules.file_problems(path, "docs/a.md")
    assert problem == "docs/a.md:6: 126 columns, 124 are allowed"


def test_too_many_modules_at_the_top_are_reported(tmp_path: Path) -> None:
    package = tmp_path / "python" / "torch_ltc"
    (package / "_part").mkdir(parents=True)
    (tmp_path / "python" / "README.md").touch()
    for number in range(house_rules.TOP_MODULES):
        (package / f"m{number}.py").touch()
        (package / "_part" / f"m{number}.py").touch()
    assert not list(house_rules.folder_problems(tmp_path))
    (package / "one_more.py").touch()
    (problem,) = house_rules.folder_problems(tmp_path)
    assert "16 modules, 15 are allowed" in problem
