"""On processors with fewer or different instructions, emulated by qemu, results are
eager's, and no code executes an instruction that the processor doesn't have."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from pathlib import Path

import pytest
from subprocesses import run_python

TRAINING = """
import copy
import torch
import torch_ltc
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(
    nn.Conv2d(2, 4, 3), nn.GELU(), nn.Flatten(), nn.LayerNorm(144), nn.Linear(144, 5)
)
images, classes = torch.randn(3, 2, 8, 8), torch.tensor([0, 3, 4])

def losses(model, images, classes):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for _ in range(3):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(images), classes)
        loss.backward()
        optimizer.step()
        yield loss.item()

lazy = [copy.deepcopy(model).to("lazy"), images.to("lazy"), classes.to("lazy")]
expected, actual = list(losses(model, images, classes)), list(losses(*lazy))
torch.testing.assert_close(torch.tensor(actual), torch.tensor(expected))

def elementwise(x):
    return (x * 3 + 1).exp(), x.sigmoid().cumsum(0), x.sort().values, x.argmax()

for dtype in (torch.float32, torch.float64, torch.bfloat16, torch.float16):
    x = torch.linspace(-2, 2, 77).to(dtype)
    for lazy, eager in zip(elementwise(x.to("lazy")), elementwise(x)):
        torch.testing.assert_close(lazy.cpu(), eager)
counts = torch.arange(-20, 57, dtype=torch.int16)
assert (counts.to("lazy") // 7).cpu().equal(counts // 7)

metrics = torch_ltc.metrics()
assert metrics["compilations"] >= 4 and not metrics["compile_failures"], metrics
info = torch_ltc._backend.bindings().build_info()
print(info["cpu_name"], info["cpu_features"])
"""


@pytest.mark.full("emulation takes a minute")
@pytest.mark.timeout(1800)
@pytest.mark.skipif(platform.machine() != "x86_64", reason="x86-64's processors")
@pytest.mark.parametrize(
    "processor", ["Haswell", "Nehalem"], ids=["AVX2", "without AVX"]
)
def test_training_on(processor: str) -> None:
    emulator = shutil.which("qemu-x86_64")
    if emulator is None:
        pytest.skip("needs qemu-x86_64 (apt-get install qemu-user)")
    result = run_python(
        TRAINING,
        timeout=1700,
        before=[emulator, "-cpu", processor],
        TORCH_LTC_CACHE="0",
        TORCH_LTC_TIER="compile",
    )
    assert result.stdout.split()[0] == processor.lower()


#: Values that don't fit into some or all integer dtypes: x86 and AArch64 convert them
#: differently. Conversions of float64 to int16 and int32 aren't compared: eager converts
#: in one of two ways, depending on a tensor's layout.
CASTS = """
import torch

def check(values, types):
    source = torch.tensor(values, dtype=types[0]).repeat(9)
    for dtype in types[1:]:
        actual = source.to("lazy").to(dtype).cpu()
        assert torch.equal(actual, source.to(dtype)), (types[0], dtype, actual, source)

signed = torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8
inf, nan = float("inf"), float("nan")
usual = [nan, inf, -inf, 300.0, -300.0, 2.5, -2.5, 70000.0, -70000.0, 0.0, 1.0]
check([*usual, 3e9, -3e9, 1e20, -1e20], (torch.float32, *signed, torch.uint32))
check([*usual, 3e9, -3e9, 1e20, -1e20], (torch.float64, torch.int64, torch.uint8))
"""

IN_AARCH64 = Path(__file__).parents[2] / "tools" / "dev" / "in_aarch64.sh"
AARCH64_PYTHON = "/root/trial/venv/bin/python"


@pytest.mark.full("emulation takes minutes")
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    ("processor", "has_sve"),
    [("neoverse-n1", False), ("a64fx", True)],
    ids=["NEON", "SVE"],
)
def test_installed_wheel_on_aarch64(processor: str, has_sve: bool) -> None:
    root = IN_AARCH64.parents[2] / ".dev" / "aarch64" / "root"
    if not (root / AARCH64_PYTHON[1:]).is_symlink():
        pytest.skip("needs the installed wheel (./dev wheel --target=aarch64)")
    result = subprocess.run(
        [
            str(IN_AARCH64), "env", "TORCH_LTC_CACHE=0", "TORCH_LTC_TIER=compile",
            AARCH64_PYTHON, "-c", f"{CASTS}\n{TRAINING}",
        ],
        capture_output=True,
        text=True,
        timeout=1700,
        env={**os.environ, "IN_AARCH64_CPU": processor},
    )  # fmt: skip
    assert not result.returncode, result.stderr
    name, features = result.stdout.split()
    assert name == processor
    assert ("+sve" in features.split(",")) == has_sve
