"""docs/limitations.md lists every name of torch that the package replaces."""

from __future__ import annotations

from pathlib import Path

from subprocesses import run_python

PAGE = Path(__file__).resolve().parents[2] / "docs" / "limitations.md"

#: Prints the names of torch's modules and classes that hold another object
#: after the package was loaded than before.
REPLACED = """
import sys, types
import torch, torch.autograd.graph, torch.jit, torch.nested._internal.nested_tensor
import torch._lazy.ts_backend, torch._library.custom_ops, torch.optim, torch.utils.checkpoint
import torch.nn.modules.linear_cross_entropy_options, torch.utils._foreach_utils

def owners():
    for module_name, module in list(sys.modules.items()):
        if module_name.partition(".")[0] != "torch":
            continue
        yield module_name, module
        for name, value in list(vars(module).items()):
            if isinstance(value, type) and value.__module__ == module_name:
                yield f"{module_name}.{name}", value

def contents():
    return {
        (owner, name): value
        for owner, holder in owners()
        for name, value in list(vars(holder).items())
    }

before = contents()
import torch_ltc
torch.ones(2, device="lazy").sum().item()
after = contents()
for (owner, name), value in before.items():
    callable_before = callable(value) or isinstance(value, (staticmethod, classmethod))
    if callable_before and after[owner, name] is not value:
        print(owner, name)
"""


def test_each_replaced_name_is_listed() -> None:
    output = run_python(REPLACED, TORCH_DEVICE_BACKEND_AUTOLOAD="0").stdout
    replaced = {tuple(line.split()) for line in output.splitlines()}
    assert ("torch", "save") in replaced
    page = PAGE.read_text()
    missing = {f"{owner}.{name}" for owner, name in replaced if name not in page}
    assert not missing
