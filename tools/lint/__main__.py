"""Checks formatting, Python and the project's own rules; `--fix` formats in place."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))

import house_rules

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent


def _tracked() -> list[str]:
    """Returns the files that git tracks or would add; without git, all files outside of
    hidden folders and build folders."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if answer.returncode == 0:
        names = answer.stdout.splitlines()
    else:
        hidden = {"build", "dist", "runs", "dumps"}
        names = [
            str(path.relative_to(ROOT))
            for path in ROOT.rglob("*")
            if not any(
                part in hidden or part.startswith(".")
                for part in path.relative_to(ROOT).parts
            )
        ]
    return sorted(name for name in set(names) if (ROOT / name).is_file())


def _output(command: list[str]) -> list[str]:
    """Runs a tool; returns the lines that it printed if it failed, else an empty list."""
    answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if answer.returncode == 0:
        return []
    return (answer.stdout + answer.stderr).strip().splitlines() or [
        f"{command[0]} failed with exit code {answer.returncode}"
    ]


def _cpp(names: list[str], fix: bool) -> list[str]:
    files = [name for name in names if name.endswith((".cpp", ".h"))]
    if not files:
        return []
    tool = str(BIN / "clang-format")
    if fix:
        return _output([tool, "-i", *files])
    lines = _output([tool, "--dry-run", "-Werror", *files])
    # The tool prints each position with its context; only the positions are needed.
    return [line for line in lines if ": error:" in line] or lines


def _python(names: list[str], fix: bool) -> list[str]:
    files = [name for name in names if name.endswith((".py", ".pyi"))]
    ruff = str(BIN / "ruff")
    check = [ruff, "check", "--no-cache", "--output-format=concise", *files]
    layout = [ruff, "format", "--no-cache", *files]
    if fix:
        return _output([*check, "--fix"]) + _output(layout)
    unformatted = [
        f"{line.split('-->')[1].strip()}: not in ruff's format"
        for line in _output([*layout, "--check"])
        if "-->" in line
    ]
    return _output(check) + unformatted


def _shell(names: list[str]) -> list[str]:
    return [
        line for name in ("dev", ".ci/run") for line in _output(["bash", "-n", name])
    ]


def main() -> int:
    fix = "--fix" in sys.argv[1:]
    names = _tracked()
    problems = _python(names, fix) + _cpp(names, fix) + _shell(names)
    for name in names:
        problems += house_rules.file_problems(ROOT / name, name)
    problems += house_rules.stale_names(ROOT, names)
    problems += house_rules.folder_problems(ROOT)
    for problem in problems:
        print(problem)
    print(f"lint: {len(names)} files, {len(problems)} problems")
    if problems and not fix:
        print("lint: './dev lint --fix' fixes formatting")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
