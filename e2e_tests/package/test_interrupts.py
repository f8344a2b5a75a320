"""Exceptions of Ctrl-C and of other signal handlers are raised promptly wherever C++ code
is interrupted."""

from __future__ import annotations

import json

import pytest
from subprocesses import run_python

#: Sends a signal while `work` runs, many times, at random moments; prints how often the
#: handler's exception was raised, and the longest delay.
PROBE = """
import json, logging, os, random, signal, sys, threading, time
import torch, torch_ltc

class Alarm(Exception):
    pass

def handler(number, frame):
    raise Alarm("from the handler")

signal.signal(signal.SIGUSR1, handler)
# A program that a shell runs in the background ignores Ctrl-C, and so do its children.
signal.signal(signal.SIGINT, signal.default_int_handler)
logging.getLogger("torch_ltc").setLevel(logging.DEBUG)
logging.getLogger("torch_ltc").addHandler(logging.NullHandler())
NUMBERS = {{"SIGINT": KeyboardInterrupt, "SIGUSR1": Alarm}}
name = {signal!r}
generator = random.Random(1)
came, late = 0, 0.0

def probe(work, seconds):
    global came, late
    sent = []
    def send():
        sent.append(time.monotonic())
        os.kill(os.getpid(), getattr(signal, name))
    timer = threading.Timer(seconds, send)
    timer.start()
    try:
        while True:
            work()
    except NUMBERS[name]:
        came += 1
        late = max(late, time.monotonic() - sent[0])
    timer.join()

{setup}
for trial in range({trials}):
    probe(work, generator.uniform({begin}, {end}))
{check}
print(json.dumps([came, late]))
"""

COMPILING = """
size = [8]
def work():
    with torch_ltc.config(cache=False):
        size[0] += 1
        y = torch.ones(size[0], 3, device="lazy")
        for i in range(12):
            y = torch.sin(y * (i + 1.5)).cumsum(0).softmax(1)
        y.cpu()
weight = torch.ones(4, device="lazy") * 3
torch_ltc.mark_step()
"""

WAITING = """
a = torch.full((1500, 1500), 1e-3, device="lazy")
def work():
    b = a
    for _ in range(10):
        b = (b @ a) * 1e-2
    b.sum().item()
weight = torch.ones(4, device="lazy") * 3
work()
"""

TRAINING = """
net = torch.nn.Linear(16, 16).to("lazy")
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
x = torch.ones(4, 16, device="lazy")
weight = torch.ones(4, device="lazy") * 3
def work():
    optimizer.zero_grad()
    loss = net(x).square().mean()
    loss.backward()
    optimizer.step()
    loss.item()
work()
"""

BACKGROUND = """
size = [8]
def work():
    with torch_ltc.config(cache=False, tier="auto"):
        size[0] += 1
        (torch.ones(size[0], device="lazy").sin().cumsum(0) + 1).cpu()
        torch_ltc.wait_for_compilations()
weight = torch.ones(4, device="lazy") * 3
"""

BACKEND = """
def compile(program):
    time.sleep(0.02)
    def run(*arguments):
        return [torch.zeros(o.shape, dtype=o.dtype) for o in program.outputs]
    return run
torch_ltc.register_backend("slow", compile, stage="torch-raw")
weight = torch.ones(4, device="lazy") * 3
torch_ltc.mark_step()
# Selected outside of `work`: as with any context manager in Python, a handler's exception
# between the constructor and the body of `with`, or in `__exit__`, would leave the
# backend selected.
torch_ltc.use_backend("slow")
size = [8]
def work():
    size[0] += 1
    (torch.ones(size[0], device="lazy") + 1).cpu()
"""

#: Nothing is lost: earlier results can be read, and later steps run.
CHECK = """
torch_ltc.use_backend(None)
assert weight.tolist() == [3.0] * 4, weight
y = torch.ones(5, device="lazy")
assert (y + weight.sum()).tolist() == [13.0] * 5
torch_ltc.wait_device_ops()
"""


@pytest.mark.parametrize("signal", ["SIGINT", "SIGUSR1"])
@pytest.mark.parametrize(
    ("setup", "trials", "end"),
    [
        (COMPILING, 12, 0.6),
        (WAITING, 6, 0.4),
        (TRAINING, 12, 0.15),
        (BACKGROUND, 6, 0.4),
        (BACKEND, 8, 0.3),
    ],
    ids=["compiling", "waiting", "training", "background", "backend"],
)
def test_exceptions_of_handlers_arrive(
    setup: str, trials: int, end: float, signal: str
) -> None:
    if setup is BACKEND and signal == "SIGUSR1":
        pytest.skip("an Exception in a backend's own code is the backend's error")
    text = PROBE.format(
        signal=signal, setup=setup, trials=trials, begin=0.02, end=end, check=CHECK
    )
    result = run_python(text, timeout=200)
    came, late = json.loads(result.stdout.splitlines()[-1])
    assert came == trials
    assert late < 5  # seconds, on a machine with other load


def test_a_failing_log_handler_is_not_the_programs() -> None:
    result = run_python(
        """
        import logging, torch, torch_ltc

        class Filter(logging.Filter):
            def filter(self, record):
                raise ValueError("a bad filter")

        log = logging.getLogger("torch_ltc")
        log.setLevel(logging.DEBUG)
        log.addFilter(Filter())
        with torch_ltc.config(cache=False):
            print((torch.ones(3, device="lazy") + 1).tolist())
        """
    )
    assert result.stdout.strip() == "[2.0, 2.0, 2.0]"
