"""Most kernels are registered when the first tensor of the device is created."""

from __future__ import annotations

import json

import pytest
from subprocesses import run_python

BEFORE = """
import json, torch, torch_ltc
ops = [n for n in torch._C._dispatch_get_all_op_names() if n.startswith("aten::")]
has = torch._C._dispatch_has_kernel_for_dispatch_key
print(json.dumps([
    name for name in ops
    if has(name, "BackendSelect") and not has(name, "CompositeImplicitAutograd")
    and not has(name, "Lazy")
]))
assert sum(has(name, "Lazy") for name in ops) < 150  # the other kernels come later
"""


def test_ops_that_take_only_a_device_are_ready() -> None:
    assert json.loads(run_python(BEFORE).stdout) == []


# The first op of a Python program is traced like all later ones.
FIRST = """
import torch, torch_ltc, warnings
warnings.simplefilter("error")

def make(device):
    torch.manual_seed(3)
    return {make}

expected = make("cpu")
compilations = []
for _ in range(2):
    result = make("lazy")
    assert result.device.type == "lazy" and result.stride() == expected.stride()
    assert result.requires_grad == expected.requires_grad
    torch.testing.assert_close(result.detach().cpu(), expected.detach())
    compilations.append(torch_ltc.metrics()["compilations"])
assert compilations == [1, 1], compilations
assert not torch_ltc.fallbacks(), torch_ltc.fallbacks()
"""


@pytest.mark.parametrize(
    "make",
    [
        "torch.randn(2, 3, device=device) * 2",
        "torch.arange(6, device=device).view(2, 3) + 1",
        "torch.full((2, 2), 3.0, device=device, requires_grad=True) * 2",
        "torch.ones(2, 2).to(device).t() * 3",
    ],
)
def test_the_first_op_of_a_program(make: str) -> None:
    run_python(FIRST.format(make=make))


THREADS = """
import threading, torch, torch_ltc
start, results = threading.Barrier(4), []

def work(seed):
    start.wait()
    value = torch.ones(3, device="lazy") * seed + torch.arange(3, device="lazy")
    results.append((seed, value.cpu()))

threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert len(results) == 4
for seed, value in results:
    assert torch.equal(value, torch.ones(3) * seed + torch.arange(3)), (seed, value)
"""


def test_threads_that_begin_together() -> None:
    run_python(THREADS)


OVERRIDDEN = """
import torch, torch_ltc
from torch_ltc._decompositions import registration as ours
torch.ones(1, device="lazy")

def kernels(name, key):
    dump = torch._C._dispatch_dump("aten::" + name).splitlines()
    return [line for line in dump if line.startswith((key + ":", key + "["))]

# C++ kernels wrap the Python ones: to remember the calls that these trace and, at key
# Lazy, to handle tensor subclasses.
for name in ours.ABOVE_AUTOGRAD:
    assert len(kernels(name, "AutogradLazy")) == 1, name
for name in (*ours.TORCH_DECOMPOSITIONS, *ours.PYTHON_DECOMPOSITIONS):
    assert len(kernels(name, "Lazy")) == 1, name
x = torch.ones(1, 2, 5, device="lazy", requires_grad=True)
with torch.no_grad():
    torch.ops.aten._upsample_nearest_exact1d(x, [7], None).cpu()
torch.ops.aten._upsample_nearest_exact1d(x, [7], None).sum().backward()
x.grad.cpu()
assert torch_ltc.metrics()["fallback_calls"] == 0, torch_ltc.fallbacks()
"""


def test_kernels_in_python_remain() -> None:
    run_python(OVERRIDDEN)


# Optimizers work if torch wrapped their `step` methods with hooks before torch_ltc replaces
# these methods.
OPTIMIZERS = """
import torch, torch_ltc

def train(device):
    torch.manual_seed(3)
    x = torch.nn.Parameter(torch.randn(4, device=device))
    optimizer = torch.optim.{kind}([x], lr=0.1)
    calls = []
    optimizer.register_step_post_hook(lambda *_: calls.append(1))
    for _ in range(3):
        def closure():
            optimizer.zero_grad()
            loss = (x ** 4).sum()
            loss.backward()
            return loss
        optimizer.step(closure) if closing else (closure(), optimizer.step())
    return x.detach().cpu(), len(calls)

closing = "{kind}" == "LBFGS"
expected = train("cpu")
result = train("lazy")
torch.testing.assert_close(result[0], expected[0])
assert result[1] == expected[1] == 3
steps = torch_ltc.metrics()["steps"]
assert steps == 3 or closing, steps  # the hook that ends steps was called once for each
if "{kind}" == "AdamW":
    ops = torch_ltc.step_log()[-1]["ops"]
    assert ops < 20, ops
"""


@pytest.mark.parametrize("kind", ["AdamW", "LBFGS", "SGD"])
def test_optimizers_used_before_the_first_tensor(kind: str) -> None:
    run_python(OPTIMIZERS.replace("{kind}", kind))


# Autocast's kernels are registered when autocast is first used, because registering them
# takes a fifth of the time of the first tensor.
AUTOCAST = """
import torch, torch_ltc
has = torch._C._dispatch_has_kernel_for_dispatch_key
x = torch.ones(2, 2).to("lazy")
with torch.autocast("cpu"):
    assert not has("aten::mm", "AutocastHPU")
with torch.autocast("lazy", dtype=torch.bfloat16):
    assert has("aten::mm", "AutocastHPU")
    assert (x @ x).dtype == torch.bfloat16
"""


def test_autocast_kernels_wait_for_autocast() -> None:
    run_python(AUTOCAST)


BEFORE_A_TENSOR = """
import torch, torch_ltc
with torch.autocast("lazy", dtype=torch.bfloat16):
    x = torch.ones(2, 2, device="lazy")
    assert (x @ x).dtype == torch.bfloat16 and x.exp().dtype == torch.float32
assert (x @ x).dtype == torch.float32
"""


def test_autocast_before_the_first_tensor() -> None:
    run_python(BEFORE_A_TENSOR)
