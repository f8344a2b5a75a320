"""Tier `auto`: steps run op by op until their program has been compiled in the
background."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
import torch
import torch_ltc
from comparison import assert_close
from counting import counting
from subprocesses import run_python
from torch import nn


@pytest.fixture(autouse=True)
def automatic_tier():
    with torch_ltc.config(tier="auto", cache=False):
        yield
        torch_ltc.wait_for_compilations()


def _train(device: str, steps: int, seed: int, wait_after: int | None) -> list[float]:
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Dropout(0.2), nn.Linear(7, 3))
    model.to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    losses = []
    for step in range(steps):
        optimizer.zero_grad()
        loss = model(torch.randn(4, 5).to(device)).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
        if step == wait_after and device == "lazy":
            torch_ltc.wait_for_compilations()
    return [float(loss) for loss in losses]


def _origins() -> list[str]:
    return [entry["origin"] for entry in torch_ltc.step_log()]


def test_training_continues_meanwhile() -> None:
    with counting() as counts:
        losses = _train("lazy", 8, seed=1, wait_after=3)
    origins = _origins()[-counts.executions :]
    assert losses == pytest.approx(_train("cpu", 8, seed=1, wait_after=None), rel=1e-4)
    assert origins[0] == "interpreted" and "compiled" not in origins
    assert counts.compilations >= 1
    # Parameters are overwritten in place, and no op runs by fallback.
    assert counts.donated_buffers > 0 and counts.fallback_calls == 0


def test_both_programs_are_in_the_log() -> None:
    x = torch.randn(3, 11, device="lazy")
    (x * 3 - 1).cos()
    y = (x * 3 - 1).cos()
    torch_ltc.mark_step()
    torch_ltc.wait_for_compilations()
    standing_in, compiled = torch_ltc.compile_log()[-2:]
    assert (standing_in["origin"], compiled["origin"]) == ("interpreted", "compiled")
    assert standing_in["reason"].endswith("(until its program is compiled)")
    assert (
        compiled["reason"] + " (until its program is compiled)"
        == (standing_in["reason"])
    )
    assert (standing_in["location"], standing_in["program"]) == (
        compiled["location"],
        compiled["program"],
    )
    assert compiled["kernels"] > 0
    assert_close(y, (x.cpu() * 3 - 1).cos())


@pytest.mark.compile_failures
def test_what_cannot_be_compiled_stays_interpreted(caplog) -> None:
    x = torch.randn(3, 13, device="lazy")
    with torch_ltc.config(force_compile_failure="aten::atan"):
        y = x.atan() + 1
        torch_ltc.mark_step()
        torch_ltc.wait_for_compilations()
    with counting() as counts:
        z = x.atan() + 1
        torch_ltc.mark_step()
        torch_ltc.wait_for_compilations()
    assert counts.compilations == counts.compile_failures == 0
    assert_close(y, x.cpu().atan() + 1)
    assert_close(z, y)
    said = [r.message for r in caplog.records if "can't be compiled" in r.message]
    assert len(said) == 1 and "aten::atan" in said[0]


@pytest.mark.compile_failures
def test_a_failure_that_comes_late_ends_nothing() -> None:
    x = torch.randn(3, 19, device="lazy")
    with torch_ltc.config(force_compile_failure="aten::atan"):
        y = x.atan() + 2
        torch_ltc.mark_step()
        with torch_ltc.config(compile_failure="raise"):
            torch_ltc.wait_for_compilations()
    assert_close(y, x.cpu().atan() + 2)


def test_raising_compiles_at_once() -> None:
    x = torch.randn(3, 17, device="lazy")
    with torch_ltc.config(compile_failure="raise"), counting() as counts:
        x.sinh()
        y = x.sinh()
        torch_ltc.mark_step()
        assert torch_ltc.compile_log()[-1]["origin"] == "compiled"
    assert counts.compilations == 1
    assert_close(y, x.cpu().sinh())


def test_only_compiled_programs_are_captured() -> None:
    weight = torch.randn(6, 6, device="lazy")

    @torch_ltc.capture
    def step(x: torch.Tensor) -> torch.Tensor:
        return (x @ weight).tanh().sum()

    x = torch.randn(2, 6).to("lazy")
    before = step.replays
    results = [step(x) for _ in range(3)]
    torch_ltc.wait_for_compilations()
    results += [step(x) for _ in range(6)]
    assert step.replays > before
    assert "interpreted" not in _origins()[-3:]
    expected = (x.cpu() @ weight.cpu()).tanh().sum()
    for result in results:
        assert_close(result, expected)


def test_a_process_may_end_while_it_compiles() -> None:
    program = """
        import torch, torch_ltc
        x = torch.randn(64, 64, device="lazy")
        for n in range(6):
            y = (x @ x).tanh().softmax(-1).roll(n + 1, 0)
            torch_ltc.mark_step()
        print(float(y.sum()) > 0)
    """
    result = run_python(program, TORCH_LTC_TIER="auto", TORCH_LTC_CACHE="0")
    assert result.stdout.strip() == "True" and not result.stderr


def _norm(x: torch.Tensor) -> torch.Tensor:
    return (x @ x).sinh().cosh().sum()


def test_a_process_that_ends_does_not_wait_for_what_it_compiles() -> None:
    program = """
import atexit, threading, time
begin = [0.0]
atexit.register(lambda: print(time.monotonic() - begin[0]))  # runs last
import torch, torch_ltc
torch_ltc.config.cache = False
x = torch.rand(8, device="lazy")
for i in range(150):  # of different sizes, so that no kernels are shared
    x = torch.cat([x, x[:1]]).sin().cumsum(0).softmax(0)
x.sum().item()
compiling = threading.Thread(target=torch_ltc.wait_for_compilations, daemon=True)
compiling.start()
begin[0] = time.monotonic()
compiling.join({seconds})
if compiling.is_alive():
    begin[0] = time.monotonic()
"""
    environment = {"TORCH_LTC_TIER": "auto"}
    whole = float(run_python(program.format(seconds=200), **environment).stdout)
    left = float(run_python(program.format(seconds=0.5), **environment).stdout)
    assert left < whole / 2, (whole, left)


def test_daemon_threads_that_wait_do_not_abort_a_process_that_ends() -> None:
    program = """
import threading, time
import torch, torch_ltc
torch_ltc.config.cache = False
x = torch.rand(8, device="lazy")
for _ in range(60):
    x = torch.cat([x, x[:1]]).sin().cumsum(0).softmax(0)
x.sum().item()
for _ in range(8):
    threading.Thread(target=torch_ltc.wait_for_compilations, daemon=True).start()
time.sleep(0.3)  # so that they wait when it ends
"""
    for _ in range(3):
        run_python(program, TORCH_LTC_TIER="auto")


def test_a_program_that_is_seen_once_is_not_compiled() -> None:
    with counting() as counts:
        for size in range(2, 12):
            float(_norm(torch.full((size, size), 0.1).to("lazy")))
    assert counts.compilations == 0 and counts.executions == 10


def test_a_program_that_costs_more_than_its_compilation_is_compiled() -> None:
    x = torch.full((700, 700), 1e-3).to("lazy")
    before = torch_ltc.metrics()["compilations"]
    for _ in range(10_000):
        float(_norm(x))
        if torch_ltc.metrics()["compilations"] > before:
            break
    assert torch_ltc.metrics()["compilations"] == before + 1


@pytest.mark.parametrize("processors, paid", [(1, 1), (None, 0.3)])
def test_a_compilation_begins_when_it_would_have_paid(
    processors: int | None, paid: float
) -> None:
    """The compilation begins when a compiled program would have saved the time for loading
    the compiler (0.15 s) or, if a processor is idle, a third of this time. A compiled
    program is expected to save 40% of the interpreted program's time."""
    program = f"""
        import os, time
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:{processors}])
        import torch, torch_ltc

        x = torch.full((700, 700), 1e-3).to("lazy")
        begin = time.process_time()
        # The compilation fails as soon as it begins, and the metrics count the failure.
        with torch_ltc.config(force_compile_failure="aten::atan"):
            for _ in range(10_000):
                float(x.atan().sum())
                if torch_ltc.metrics()["compile_failures"]:
                    break
        print(time.process_time() - begin, torch_ltc.metrics()["compile_failures"])
    """
    result = run_python(
        program, TORCH_LTC_TIER="auto", TORCH_LTC_CACHE="0", OMP_NUM_THREADS="1"
    )
    seconds, failures = map(float, result.stdout.split())
    assert failures == 1 and seconds >= paid * 0.15 / 0.4


def test_time_in_which_a_process_waits_does_not_count() -> None:
    """The tier's decision depends on a program's processor time: a process that is stopped
    most of the time doesn't compile earlier."""
    program = """
        import time
        import torch, torch_ltc

        x = torch.full((700, 700), 1e-3).to("lazy")
        torch_ltc.mark_step()
        print("ready", flush=True)
        begin = time.process_time()
        with torch_ltc.config(force_compile_failure="aten::atan"):
            while time.process_time() < begin + 0.1:
                float(x.atan().sum())
        print(torch_ltc.metrics()["compile_failures"], flush=True)
    """
    environment = {**os.environ, "TORCH_LTC_TIER": "auto", "TORCH_LTC_CACHE": "0"}
    command = [sys.executable, "-c", textwrap.dedent(program)]
    with subprocess.Popen(
        command, env=environment | {"OMP_NUM_THREADS": "1"}, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout.readline() == b"ready\n"
        while process.poll() is None:
            process.send_signal(signal.SIGSTOP)
            time.sleep(0.04)
            process.send_signal(signal.SIGCONT)
            time.sleep(0.01)
        assert process.stdout.read() == b"0\n"


def test_the_compiled_tier_compiles_what_was_interpreted() -> None:
    def value() -> float:  # with ops that no other test runs at other sizes
        return x.cosh().sinh().amax().item()

    x = torch.full((5, 5), 0.1).to("lazy")
    value()
    with torch_ltc.config(tier="compile"), counting() as counts:
        value()
        value()
    assert counts.compilations == 1


def test_the_interpreter_keeps_no_value_after_its_last_use() -> None:
    """A chain of ops needs two live values at a time, as in eager."""
    program = """
        import resource, torch
        x = torch.zeros(8 << 20, device="lazy")  # 32 MiB
        torch.lazy.synchronize()
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        y = x
        for _ in range(30):
            y = (y + 1).view(-1, 2).t().neg().t().reshape(-1)
        y[0].item()
        print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10)
    """
    result = run_python(program, TORCH_LTC_TIER="interpret", OMP_NUM_THREADS="1")
    assert int(result.stdout) < 6 * 32


@pytest.mark.parametrize("tier", ["auto", "interpret", "compile"])
def test_views_and_writes_through_them(tier: str) -> None:
    """Views and writes through them have eager's values in each tier; the interpreter runs
    the graph's view copies (such as slice_copy) as views."""

    def program(device: str) -> list[torch.Tensor]:
        x = torch.arange(24.0, device=device).view(2, 3, 4)
        y = x.transpose(0, 2)[1:, :, 1].t()
        z = x.as_strided((3, 2), (4, 1), 1) + 1
        x[:, 1] += y.sum()
        x.permute(2, 0, 1)[0].mul_(2)
        return [x, y, z, y.flatten().as_strided((2, 2), (1, 2)), x.unfold(2, 2, 1)]

    with torch_ltc.config(tier=tier):
        assert_close(program("lazy"), program("cpu"))


#: Runs `steps` steps. Prints whether the process loaded the runtime, and the number of
#: programs that it found in the disk cache.
FEW_STEPS = """
    import torch, torch_ltc
    weight = torch.ones(64, 64, device="lazy")
    for _ in range({steps}):
        weight = (weight @ weight).tanh()
        weight.sum().item()
    if {compiled}:
        torch_ltc.wait_for_compilations()
    found = torch_ltc.metrics()["program_disk_hits"]
    print("libltc_runtime" in open("/proc/self/maps").read(), found)
"""


def test_what_is_not_compiled_loads_no_compiler_and_no_runtime(tmp_path: Path) -> None:
    """A process that neither compiles nor runs a compiled program loads neither compiler
    nor runtime, because these need more memory than small programs. A program that another
    process has compiled is found in the disk cache by its name, and the runtime is
    loaded."""
    environment = {"TORCH_LTC_TIER": "auto", "TORCH_LTC_CACHE_DIR": str(tmp_path)}

    def run(steps: int, compiled: bool) -> list[str]:
        program = FEW_STEPS.format(steps=steps, compiled=compiled)
        return run_python(program, **environment).stdout.split()

    assert run(2, compiled=False) == ["False", "0"]
    assert run(2, compiled=True)[0] == "True"
    loaded, found = run(2, compiled=False)
    assert loaded == "True"
    assert int(found) > 0


def test_programs_of_changing_sizes_take_bounded_memory() -> None:
    program = """
        import torch

        def resident() -> float:
            pages = int(open("/proc/self/statm").read().split()[1])
            return pages * 4096 / 1e6

        def step(size: int) -> None:
            x = torch.ones(size, device="lazy", requires_grad=True)
            y = x
            for _ in range(100):
                y = (y * x).tanh() + x
            y.sum().backward()
            x.grad.sum().item()

        for size in range(150):
            step(size + 1)
        before = resident()
        for size in range(150, 450):
            step(size + 1)
        print(resident() - before)
    """
    result = run_python(program, TORCH_LTC_TIER="auto", OMP_NUM_THREADS="1")
    # 300 programs of a thousand ops each.
    assert float(result.stdout) < 40


def test_the_expected_time_of_a_compilation() -> None:
    """The expected compilation time depends more on nodes that are new to the process than
    on the number of ops."""

    def expected(compute) -> float:
        x = torch.rand(13, device="lazy")
        torch_ltc.mark_step()
        result = compute(x)
        torch_ltc.mark_step()
        del result
        return torch_ltc.compile_log()[-1]["expected_seconds"]

    def repeated(x: torch.Tensor) -> torch.Tensor:
        for _ in range(300):
            x = x * 1.5 + 1.0
        return x

    def distinct(x: torch.Tensor) -> torch.Tensor:
        parts = [x[:n].cumsum(0).sin().sum() for n in range(1, 13)]
        return torch.stack(parts)

    with torch_ltc.config(tier="compile"):
        expected(torch.tanh)  # includes the time to load the compiler
        of_repeated, of_distinct = expected(repeated), expected(distinct)
        of_known = expected(lambda x: distinct(x) * 2.5)
    assert 0 < of_repeated < of_distinct
    assert 0 < of_known < of_distinct / 2
