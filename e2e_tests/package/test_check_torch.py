"""`./dev check-torch` reports what another torch version changes, before a build fails."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

TOOLS = Path(__file__).resolve().parents[2] / "tools" / "dev"
REQUEST = {
    "ops": ["aten::add.Tensor", "aten::relu", "aten::linear", "*"],
    "names": ["torch.Tensor new_tensor", "torch.nn.modules.module.Module _apply"],
    "headers": ["ATen/core/Tensor.h", "torch/library.h", "torch/torch.h"],
}


@pytest.fixture(scope="module")
def facts() -> dict[str, Any]:
    """Returns facts about the installed torch."""
    answer = subprocess.run(
        [sys.executable, str(TOOLS / "torch_facts.py")],
        input=json.dumps(REQUEST),
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(answer.stdout)


def entries(ours: dict[str, Any], theirs: dict[str, Any]) -> dict[str, list[str]]:
    """Returns the findings of each non-empty section, by its title without the part in
    parentheses."""
    sys.path.insert(0, str(TOOLS))
    try:
        import check_torch
    finally:
        sys.path.remove(str(TOOLS))
    sections = check_torch.compare(ours, theirs, REQUEST["ops"])
    return {s.title.partition(" (")[0]: s.entries for s in sections if s.entries}


def test_all_that_is_asked_for_is_found(facts: dict[str, Any]) -> None:
    assert facts["schemas"]["aten::relu"] == "aten::relu(Tensor self) -> Tensor"
    assert "CompositeImplicitAutograd" in facts["kernels"]["aten::linear"]
    assert "CPU" in facts["kernels"]["aten::add.Tensor"]
    assert (
        facts["names"]["torch.nn.modules.module.Module _apply"]
        .lstrip()
        .startswith("def _apply")
    )
    assert all(facts["headers"].values())


def test_the_same_torch_changes_nothing(facts: dict[str, Any]) -> None:
    assert entries(facts, facts) == {}


def test_each_change_is_named(facts: dict[str, Any]) -> None:
    other = copy.deepcopy(facts)
    other["schemas"]["aten::relu"] = None
    other["schemas"]["aten::add.Tensor"] += " "
    other["schemas"]["aten::brand_new"] = "aten::brand_new(Tensor x) -> Tensor"
    other["kernels"]["aten::linear"].remove("CompositeImplicitAutograd")
    other["names"]["torch.Tensor new_tensor"] = None
    other["names"]["torch.nn.modules.module.Module _apply"] += "    pass\n"
    other["headers"]["torch/library.h"] = None
    other["headers"]["ATen/core/Tensor.h"] += "// more\n"
    assert entries(facts, other) == {
        "missing registered ops": ["`aten::relu`"],
        "missing replaced names": ["`torch.Tensor.new_tensor`"],
        "missing included headers": ["`torch/library.h`"],
        "registered ops with a different schema": ["`aten::add.Tensor`"],
        "registered ops with kernels at other keys": [
            "`aten::linear`: -CompositeImplicitAutograd"
        ],
        "replaced names with a different source": [
            "`torch.nn.modules.module.Module._apply`"
        ],
        "changed included headers": ["`ATen/core/Tensor.h`"],
        "new aten ops": ["`aten::brand_new(Tensor x) -> Tensor`"],
    }
