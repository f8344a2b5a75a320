"""torch.lazy, the device's module, has the functions of other devices' modules."""

from __future__ import annotations

import re
import shutil
import subprocess
import time

import pytest
import torch
import torch_ltc
from subprocesses import run_python


def test_the_device() -> None:
    assert torch.lazy.is_available()
    assert torch.lazy.device_count() == 1
    assert torch.lazy.current_device() == 0
    assert torch.lazy.is_initialized()
    assert torch.get_device_module("lazy") is torch.lazy
    with torch.lazy.device(0):
        assert torch.ones(1, device="lazy").device == torch.device("lazy", 0)
    assert "lazy" in torch.lazy.get_device_name()
    assert torch.lazy.get_device_properties()["total_memory"] > 0
    assert set(torch.lazy.__all__) <= set(dir(torch.lazy))


def test_other_devices_do_not_exist() -> None:
    with pytest.raises(ValueError, match="lazy:0"):
        torch.lazy.set_device(1)
    with pytest.raises(ValueError, match="cpu"):
        torch.lazy.synchronize("cpu")
    with pytest.raises(RuntimeError, match="lazy"):
        torch.ones(1, device="lazy:3").sum().item()


def test_synchronize() -> None:
    x = torch.ones(3, device="lazy") + 1
    torch.lazy.synchronize()
    before = torch_ltc.metrics()["executions"]
    assert x.tolist() == [2.0] * 3
    assert torch_ltc.metrics()["executions"] == before


def test_streams_and_events() -> None:
    """There is one stream. torch's functions in C accept the module's objects."""
    x = torch.ones(3, device="lazy")
    stream, event = torch.lazy.Stream(priority=-1), torch.lazy.Event()
    assert stream == torch.lazy.current_stream() == torch.accelerator.current_stream()
    for each in (stream, torch.accelerator.current_stream(), torch.Stream("lazy")):
        assert each.record_event(event) is event
        assert each.record_event().query()
        each.wait_event(event)
        each.wait_stream(stream)
        each.synchronize()
        event.record(each)
        event.wait(each)
        event.synchronize()
    with stream:
        assert torch.accelerator.current_stream() == stream
    with torch.inference_mode():
        x.record_stream(stream)
    x.record_stream(stream)
    assert x.tolist() == [1.0] * 3


def test_events_measure_times() -> None:
    begin, middle, end = (torch.lazy.Event(enable_timing=True) for _ in range(3))
    x = torch.ones(200, 200, device="lazy")
    torch.lazy.synchronize()
    started = time.perf_counter()
    for event in (begin, middle, end):
        event.record()
        for _ in range(10):
            x = x @ x / 200
    total = 1e3 * (time.perf_counter() - started)
    parts = begin.elapsed_time(middle), middle.elapsed_time(end)
    assert all(0 < part < total for part in parts)
    assert sum(parts) == pytest.approx(begin.elapsed_time(end))
    begin.record()
    assert begin.elapsed_time(end) < 0
    with pytest.raises(ValueError, match="enable_timing"):
        begin.elapsed_time(torch.lazy.Event())


def test_seeds_and_states_are_the_cpus() -> None:
    torch.lazy.manual_seed(5)
    first = torch.rand(4, device="lazy").cpu()
    torch.manual_seed(5)
    assert torch.equal(first, torch.rand(4))
    state = torch.lazy.get_rng_state()
    second = torch.randn(4, device="lazy").cpu()
    torch.lazy.set_rng_state(state)
    assert torch.equal(second, torch.randn(4, device="lazy").cpu())
    assert torch.lazy.initial_seed() == 5
    with torch.random.fork_rng(device_type="lazy"):
        torch.rand(10, device="lazy")
    torch.lazy.set_rng_state_all(torch.lazy.get_rng_state_all())


def test_dropout_masks_do_not_recompile_and_differ() -> None:
    x = torch.ones(64, device="lazy")
    masks = []
    for _ in range(4):
        masks.append(torch.nn.functional.dropout(x, 0.5))
        torch_ltc.mark_step()
    compilations = torch_ltc.compile_log()
    assert len({tuple(m.tolist()) for m in masks}) == 4
    names = [entry["program"] for entry in compilations]
    assert len(names) == len(set(names))


def test_checkpointed_block() -> None:
    from torch.utils.checkpoint import checkpoint

    def run(device: str) -> list[float]:
        torch.manual_seed(3)
        layer = torch.nn.Linear(4, 4)
        block = torch.nn.Sequential(layer, torch.nn.Dropout(0.5)).to(device)
        x = torch.ones(2, 4, device=device, requires_grad=True)
        checkpoint(block, x, use_reentrant=False).sum().backward()
        return x.grad.cpu().flatten().tolist()

    assert run("lazy") == pytest.approx(run("cpu"), rel=1e-5)


def test_a_forked_process_knows_that_it_cannot_use_the_device() -> None:
    program = """
import os, torch, torch_ltc
torch.ones(2, device="lazy").sum().item()
child = os.fork()
if not child:
    torch.manual_seed(0)  # seeds no generator of the device
    os._exit(int(torch.lazy._is_in_bad_fork()))
_, status = os.waitpid(child, 0)
assert os.waitstatus_to_exitcode(status) == 1
assert not torch.lazy._is_in_bad_fork()
"""
    run_python(program)


def test_the_bindings_share_the_librarys_variables() -> None:
    """The bindings' symbols are hidden, so an inline variable of a header that they include
    would exist twice: in the bindings and in the library."""
    nm = shutil.which("llvm-nm-22") or "nm"
    text = subprocess.run(
        [nm, "-C", torch_ltc._C.__file__], check=True, capture_output=True, text=True
    ).stdout
    data = re.findall(r" [bBdDuV] torch_ltc::(\w+)$", text, re.MULTILINE)
    assert not data
