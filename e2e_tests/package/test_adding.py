"""A reader who follows docs/adding_an_op.md, adding_a_pass.md and adding_a_command.md
gets what the pages promise: their code blocks are applied to a copy of the tree, which
is built and tested (`--full`: about five minutes)."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest
from code_blocks import code_blocks
from subprocesses import run_python

pytestmark = pytest.mark.full("builds a copy of the tree")

ROOT = Path(__file__).resolve().parents[2]
LOWERING = "mlir_lowering"
OP_TABLE = f"{LOWERING}/op_table/elementwise.toml"
BUILDERS = f"{LOWERING}/lib/Conversion/TorchToLinalg/ElementwiseUnary.cpp"
TEST_ROWS = "e2e_tests/ops/elementwise.py"
KERNELS = f"{LOWERING}/lib/Kernels"
PASSES = f"{LOWERING}/include/torch_ltc/Kernels/Passes.td"
LTC_OPS = f"{LOWERING}/include/torch_ltc/Dialect/Ltc/LtcLibraryOps.td"
COMMANDS = f"{LOWERING}/lib/Codegen/Commands.cpp"
RUNTIME = "runtime/lib"


def blocks(page: str, language: str) -> list[str]:
    return [text for _, text in code_blocks(ROOT / "docs" / page, language)]


class Tree:
    """A copy of the source tree without its build."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def read(self, path: str) -> str:
        return (self.root / path).read_text()

    def write(self, path: str, text: str) -> None:
        (self.root / path).write_text(text)

    def remove(self, path: str, pattern: str) -> None:
        text, count = re.subn(pattern, "", self.read(path), flags=re.M | re.S)
        assert count, f"{path} has nothing like {pattern}"
        self.write(path, text)

    def replace(self, path: str, old: str, new: str) -> None:
        text = self.read(path)
        assert text.count(old) == 1, f"{path} has {old} {text.count(old)} times"
        self.write(path, text.replace(old, new))

    def insert(self, path: str, text: str, before: str) -> None:
        """Inserts `text` before the first line that begins with `before`."""
        old = self.read(path)
        place = re.search(rf"^{re.escape(before)}", old, re.M)
        assert place, f"{path} has no line {before}"
        self.write(path, old[: place.start()] + text + old[place.start() :])

    def run(self, *command: str, **variables: str) -> str:
        result = subprocess.run(
            command,
            cwd=self.root,
            env={**os.environ, **variables},
            capture_output=True,
            text=True,
        )
        output = result.stdout + result.stderr
        assert result.returncode == 0, output[-8000:]
        return output


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tree]:
    """Yields a built copy of the tree to which the pages' code blocks have been applied."""
    if not (ROOT / ".venv").exists():
        pytest.skip("needs the environment of './dev build'")
    tree = Tree(tmp_path_factory.mktemp("adding") / "tree")
    listing = ["git", "-C", str(ROOT), "ls-files", "-z", "-co", "--exclude-standard"]
    files = subprocess.run(listing, capture_output=True, text=True, check=True).stdout
    for name in filter(None, files.split("\0")):
        if (ROOT / name).is_file():
            target = tree.root / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target)
    (tree.root / ".venv").symlink_to(ROOT / ".venv")

    forget_op(tree)
    add_op(tree)
    add_pass(tree)
    add_command(tree)
    steps = (
        "import build; build.configure(); build.ninja('all'); build.link_libraries()"
    )
    tree.run(sys.executable, "-c", steps, PYTHONPATH=str(tree.root / "tools" / "dev"))
    yield tree
    shutil.rmtree(tree.root)


def forget_op(tree: Tree) -> None:
    tree.remove(OP_TABLE, r"^  \{ schema = \"aten::special_entr\(.*?\},\n")
    tree.remove(
        BUILDERS, r"^/// -x log x[^\n]*\nValue torch_ltc::emitSpecialEntr\(.*?^\}\n"
    )
    tree.remove(TEST_ROWS, r"^    Row\(\"special_entr\", .*?\),\n")


def add_op(tree: Tree) -> None:
    [row] = blocks("adding_an_op.md", "toml")
    [builder, *_] = blocks("adding_an_op.md", "cpp")
    [test] = blocks("adding_an_op.md", "python")
    assert "special_entr" in row and "emitSpecialEntr" in builder
    tree.insert(OP_TABLE, row, before="  { schema")
    tree.insert(BUILDERS, builder, before="Value torch_ltc::emitSinc")
    place = '    Row("special_entr-special"'
    tree.insert(TEST_ROWS, textwrap.indent(test, "    "), before=place)


def add_pass(tree: Tree) -> None:
    [declaration] = blocks("adding_a_pass.md", "tablegen")
    [definition, position] = blocks("adding_a_pass.md", "cpp")
    [test] = blocks("adding_a_pass.md", "mlir")
    tree.insert(PASSES, declaration, before="#endif")
    tree.write(f"{KERNELS}/CountMembers.cpp", definition)
    tree.insert(
        f"{KERNELS}/CMakeLists.txt", "  CountMembers.cpp\n", "  DeduplicateKernels"
    )
    tree.insert(
        f"{KERNELS}/Pipeline.cpp", position, before="  manager.addPass(createPlanBuff"
    )
    tree.write(f"{LOWERING}/test/Kernels/count-members.mlir", test)


def add_command(tree: Tree) -> None:
    page = "adding_a_command.md"
    [op] = blocks(page, "tablegen")
    verifier, select, calls, convert, visit, declare, check, run, test = blocks(
        page, "cpp"
    )
    [message, field] = blocks(page, "proto")
    [kind] = blocks(page, "text")
    [lit_test] = blocks(page, "mlir")
    separator = "//===---"

    tree.insert(LTC_OPS, op, before="#endif")
    library_ops = f"{LOWERING}/lib/Dialect/Ltc/LibraryOps.cpp"
    tree.insert(library_ops, verifier, before="LogicalResult MatmulOp::verify")
    selection = f"{KERNELS}/SelectLibraryCalls.cpp"
    tree.insert(selection, select, before="class SelectLibraryCalls")
    tree.insert(selection, calls, before="  }\n};\n\n} // namespace\n")
    heading = f"{separator}-------------------------------------------------------------------===//\n// The list"
    tree.insert(COMMANDS, convert, before=heading)
    tree.replace(COMMANDS, ".Case<", ".Case<ltc::TransposeOp, ")

    proto = "runtime/proto/executable.proto"
    tree.insert(proto, message, before="message Command {")
    tree.insert(proto, field, before="    AttentionCall attention")
    tree.insert("runtime/proto/Calls.def", kind, before="RUNTIME_CALL(Copy")
    numbers = "runtime/proto/ExecutableNumbers.h"
    tree.insert(numbers, visit, before="  void visit(CopyCall")
    verification = f"{RUNTIME}/CommandVerifier.cpp"
    tree.insert(verification, declare, before="  llvm::Error verifyCall(const Copy")
    tree.insert(
        verification, check, before="llvm::Error CommandVerifier::verifyCall(const Copy"
    )
    tree.write(f"{RUNTIME}/TransposeCommand.cpp", run)

    tree.write(f"{LOWERING}/test/Ltc/transpose.mlir", lit_test)
    tree.write("runtime/test/TransposeTest.cpp", test)
    listing = "runtime/test/CMakeLists.txt"
    tree.insert(
        listing, "ltc_runtime_test(TransposeTest)\n", "ltc_runtime_test(VerifierTest"
    )


def pytest_in(tree: Tree, *arguments: str) -> str:
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-n",
        "0",
        "-p",
        "no:cacheprovider",
    ]
    return tree.run(*command, *arguments, PYTHONPATH=str(tree.root / "python"))


def test_the_op_is_traced_and_equals_eager(tree: Tree) -> None:
    program = """
        import torch, torch_ltc
        print(torch_ltc.__file__)
        torch.special.entr(torch.rand(3, device="lazy")).cpu()
        print(torch_ltc.fallbacks())
    """
    answer = run_python(program, PYTHONPATH=str(tree.root / "python")).stdout
    file, fallbacks = answer.split()
    assert file.startswith(str(tree.root)) and fallbacks in ("[]", "{}")
    output = pytest_in(tree, "e2e_tests/ops/test_ops.py", "-k", "special_entr")
    assert re.search(r"\d+ passed", output)


def test_tables_and_pages_agree_with_the_op(tree: Tree) -> None:
    paths = f"{tree.root / 'python'}:{tree.root / 'e2e_tests'}"
    tree.run(sys.executable, "-m", "sweeps.page", PYTHONPATH=paths)
    pytest_in(
        tree,
        "e2e_tests/lowering/test_schemas.py",
        "e2e_tests/sweeps/test_page.py",
        "e2e_tests/decompositions/test_coverage.py",
    )


def test_the_pass_runs_in_the_pipeline_and_alone(tree: Tree) -> None:
    lit = [str(ROOT / ".venv/bin/lit"), "-q", "build/mlir_lowering/test"]
    tree.run(*lit, "--filter", "count-members|help|torch_mlir")
    program = """
        import torch, torch_ltc
        x = torch.rand(8, device="lazy")
        print(torch_ltc.debug.dump(x * x, "kernels"))
    """
    answer = run_python(program, PYTHONPATH=str(tree.root / "python"))
    assert "torch_ltc.members = 1 : i64" in answer.stdout


def test_the_command_is_verified_and_right(tree: Tree) -> None:
    lit = [str(ROOT / ".venv/bin/lit"), "-q", "build/mlir_lowering/test"]
    tree.run(*lit, "--filter", "Ltc/")
    ctest = [str(ROOT / ".venv/bin/ctest"), "--test-dir", "build"]
    tree.run(*ctest, "-R", "Transpose|NumberCode", "--no-tests=error")


def test_the_command_runs_in_programs(tree: Tree) -> None:
    program = """
        import torch, torch_ltc
        torch_ltc.config.tier = "compile"
        def f(x):
            return x.T.contiguous().exp()
        for rows in range(2, 9):
            x = torch.rand(rows, 5)
            torch.testing.assert_close(f(x.to("lazy")).cpu(), f(x))
        print(torch_ltc.metrics()["compilations"])
        print(torch_ltc.debug.dump(f(x.to("lazy")), "kernels").count("ltc.transpose"))
    """
    answer = run_python(program, PYTHONPATH=str(tree.root / "python")).stdout
    assert answer.split() == ["2", "1"]  # the first size, and all others
