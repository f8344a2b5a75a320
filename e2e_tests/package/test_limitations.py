"""docs/limitations.md lists every name of torch that the package replaces; what it calls an
error is one."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from subprocesses import run_python

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "limitations.md"
REPLACED = (ROOT / "tools" / "dev" / "replaced_names.py").read_text()


def test_each_replaced_name_is_listed_with_its_moment() -> None:
    output = run_python(REPLACED, TORCH_DEVICE_BACKEND_AUTOLOAD="0").stdout
    replaced = {tuple(line.split()) for line in output.splitlines()}
    assert ("import", "torch", "save") in replaced
    at_import, later = PAGE.read_text().split("its first lazy tensor:")
    page = {"import": at_import, "tensor": later}
    missing = [row for row in sorted(replaced) if row[2] not in page[row[0]]]
    assert not missing


FACTORIES = {
    "rand": lambda device: torch.rand(2, device=device),
    "randn": lambda device: torch.randn(2, device=device),
    "randint": lambda device: torch.randint(3, (2,), device=device),
    "randperm": lambda device: torch.randperm(3, device=device),
    "normal": lambda device: torch.normal(0.0, 1.0, (2,), device=device),
    "randn.generator": lambda device: torch.randn(2, generator=None, device=device),
    "hann_window": lambda device: torch.hann_window(3, device=device),
    "fftfreq": lambda device: torch.fft.fftfreq(4, device=device),
    "rand_like": lambda device: torch.rand_like(torch.ones(2), device=device),
    "zeros": lambda device: torch.zeros(2, device=device),
    "tensor": lambda device: torch.tensor([1.0], device=device),
    "empty_like": lambda device: torch.empty_like(torch.ones(2), device=device),
    "to": lambda device: torch.ones(2).to(device),
    "eye": lambda device: torch.eye(2, device=device),
    "linspace": lambda device: torch.linspace(0, 1, 3, device=device),
    "new_ones": lambda device: torch.ones(2).new_ones(3, device=device),
    "module": lambda device: torch.nn.Linear(2, 2).to(device),
}


@pytest.mark.parametrize("name", FACTORIES)
def test_a_second_device_is_an_error(name: str) -> None:
    with pytest.raises(RuntimeError, match="'lazy:1' doesn't exist"):
        FACTORIES[name]("lazy:1")
