"""Each thread's step computes that thread's tensors."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import torch
import torch_ltc
from comparison import assert_close


def wait_for_exit(thread: threading.Thread) -> None:
    """Waits until the operating system's thread has ended, so that its thread-local data
    has been destroyed. `join` returns earlier, when the thread's Python code has ended."""
    deadline = time.monotonic() + 10
    while Path(f"/proc/self/task/{thread.native_id}").exists():
        assert time.monotonic() < deadline
        time.sleep(0.001)


def run_in_threads(function, count: int = 4) -> list:
    results: list = [None] * count
    errors: list = []

    def work(index: int) -> None:
        try:
            results[index] = function(index)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
        wait_for_exit(thread)
    assert not errors, errors
    return results


def test_steps_do_not_meet() -> None:
    def loop(index: int) -> float:
        x = torch.full((8,), float(index), device="lazy")
        for _ in range(30):
            x = x * 1.01 + 0.5
            torch_ltc.mark_step()
        return x.sum().item()

    expected = []
    for index in range(4):
        x = torch.full((8,), float(index))
        for _ in range(30):
            x = x * 1.01 + 0.5
        expected.append(x.sum().item())
    assert_close(torch.tensor(run_in_threads(loop)), torch.tensor(expected))


def test_a_tensor_of_another_thread_can_be_read() -> None:
    x = torch.ones(4, device="lazy") * 3
    assert run_in_threads(lambda _: x.sum().item()) == [12.0] * 4


def test_what_a_finished_thread_left_is_computed() -> None:
    (y,) = run_in_threads(lambda _: torch.ones(3, device="lazy") + 1, count=1)
    torch_ltc.mark_step()
    before = torch_ltc.metrics()["implicit_syncs"]
    assert y.tolist() == [2] * 3
    assert torch_ltc.metrics()["implicit_syncs"] == before
