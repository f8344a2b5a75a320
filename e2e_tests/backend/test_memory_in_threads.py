"""A thread reads the memory of parameters while another trains. Each case runs in a process
of its own, because there the reading thread's first access makes ops lock."""

from __future__ import annotations

import pytest
from subprocesses import run_python

TRAINING = """
import io, threading, torch, torch_ltc
from torch import nn

torch.manual_seed(0)
model = nn.Linear(16, 16).to("lazy")
optimizer = torch.optim.{optimizer}(model.parameters(), lr=1e-3)
x = torch.randn(8, 16).to("lazy")
has_ended, reads = threading.Event(), 0

def read():
    global reads
    while not has_ended.is_set():
        p = model.weight.detach()
        {read}
        reads += 1

thread = threading.Thread(target=read)
thread.start()
for _ in range(500):
    optimizer.zero_grad()
    model(x).square().mean().backward()
    optimizer.step()
has_ended.set()
thread.join()
assert reads > 10, reads
torch.manual_seed(0)
expected = nn.Linear(16, 16)
optimizer = torch.optim.{optimizer}(expected.parameters(), lr=1e-3)
for _ in range(500):
    optimizer.zero_grad()
    expected(x.cpu()).square().mean().backward()
    optimizer.step()
torch.testing.assert_close(model.weight.cpu(), expected.weight, rtol=1e-4, atol=1e-5)
"""


@pytest.mark.parametrize(
    "read",
    [
        "torch.save(p, io.BytesIO())",
        "p.untyped_storage().cpu()",
        "p.untyped_storage().data_ptr()",
        "torch.utils.dlpack.from_dlpack(p).sum()",
        "__import__('numpy').from_dlpack(p).sum()",
        "p.data = p.data + 1; p.sum().item()",
        "torch_ltc.sync([p])",
    ],
)
@pytest.mark.parametrize("optimizer", ["SGD", "Adam"])
def test_a_thread_that_reads_memory_while_another_trains(
    read: str, optimizer: str
) -> None:
    run_python(TRAINING.format(read=read, optimizer=optimizer), timeout=120)
