"""Steps run asynchronously to the tracing thread; a read of a value raises the error of
the step that computes it."""

from __future__ import annotations

import pytest
import torch
import torch_ltc
from subprocesses import run_python


def test_results_are_right_while_steps_are_in_flight() -> None:
    x = torch.zeros(64, 64, device="lazy")
    for _ in range(20):
        x = x + 1
        torch_ltc.mark_step()
    assert x.cpu().eq(20).all()


def test_a_failing_step_is_reported_by_the_read() -> None:
    # In the interpreter, an index out of range makes the step fail at run time.
    with torch_ltc.config(tier="interpret"):
        table = torch.randn(4, 2).to("lazy")
        index = torch.tensor([9]).to("lazy")
        picked = table.index_select(0, index)
        derived = picked * 2
        torch_ltc.mark_step()
        later = derived + 1
        with pytest.raises(IndexError, match=r"Step .* failed") as caught:
            later.cpu()
        text = str(caught.value)
        assert "aten::index_select" in text and "test_async.py" in text
        # The read has raised the error, so neither this wait nor the next step raises it.
        torch_ltc.wait_device_ops()
        assert (table + 1).sum().isfinite().item()
        torch_ltc.wait_device_ops()


def test_a_new_tensor_of_a_failed_step_has_no_value() -> None:
    """Each read of a failed op's result raises; the result doesn't get the operand's value,
    although the op looks like an update of the operand."""
    table = torch.zeros(4, 2, device="lazy")
    rows = torch.ones(1, 2, device="lazy")
    torch_ltc.mark_step()
    added = table.index_add(0, torch.tensor([9]).to("lazy"), rows)
    doubled = added * 2
    torch_ltc.mark_step()
    later = doubled + 1
    for tensor in (added, doubled, later, added):
        with pytest.raises(RuntimeError, match="out of range"):
            tensor.cpu()
    assert torch.equal(table.cpu(), torch.zeros(4, 2))


def test_a_read_of_an_old_value_tells_the_error() -> None:
    """If a write in place fails, the tensor keeps its old value; the first read raises
    the error, so that the old value isn't mistaken for the new one."""
    table = torch.ones(4, 2, device="lazy")
    torch_ltc.mark_step()
    table.add_(torch.ones(4, 2).to("lazy")[torch.tensor([9]).to("lazy")])
    torch_ltc.mark_step()
    with pytest.raises(IndexError, match=r"out of range.* It was detected when"):
        table.cpu()
    assert torch.equal(table.cpu(), torch.ones(4, 2))
    torch_ltc.wait_device_ops()


def failing_update(table: torch.Tensor) -> None:
    """Runs a step that fails to update `table` in place."""
    table.add_(torch.ones(4, 2).to("lazy")[torch.tensor([9]).to("lazy")])
    torch_ltc.mark_step()


def test_unrelated_values_do_not_raise_the_error_of_a_step() -> None:
    table = torch.ones(4, 2, device="lazy")
    other = torch.ones(4, device="lazy")
    torch_ltc.mark_step()
    failing_update(table)
    other.add_(1)
    assert other.tolist() == [2.0] * 4
    assert (torch.ones(3, device="lazy") * 5).sum().item() == 15
    torch_ltc.mark_step(wait=True)
    with pytest.raises(IndexError, match=r"out of range.* It was detected when"):
        table.cpu()
    assert torch.equal(table.cpu(), torch.ones(4, 2))


def test_what_follows_from_an_old_value_raises_the_error_once() -> None:
    table = torch.ones(4, 2, device="lazy")
    torch_ltc.mark_step()
    failing_update(table)
    for _ in range(3):
        table.mul_(2)
        total = table.sum()
        torch_ltc.mark_step()
    with pytest.raises(IndexError, match=r"out of range.* It was detected when"):
        total.item()
    assert total.item() == 8 * 8
    assert torch.equal(table.cpu(), torch.full((4, 2), 8.0))


def test_steps_that_failed_before_an_error_was_raised_are_known() -> None:
    table = torch.ones(4, 2, device="lazy")
    torch_ltc.mark_step()
    picked = table[torch.tensor([9]).to("lazy")]
    torch_ltc.mark_step()
    for _ in range(3):
        failing_update(table)
    with pytest.raises(IndexError, match="out of range"):
        picked.cpu()
    assert torch.equal(table.cpu(), torch.ones(4, 2))
    torch_ltc.wait_device_ops()
    # A step that fails later raises its own error.
    failing_update(table)
    with pytest.raises(IndexError, match="out of range"):
        torch_ltc.wait_device_ops()
    assert torch.equal(table.cpu(), torch.ones(4, 2))


def test_an_error_that_nobody_read_is_logged_at_the_end() -> None:
    result = run_python(
        "import torch, torch_ltc\n"
        "table = torch.ones(4, 2, device='lazy')\n"
        "torch_ltc.mark_step()\n"
        "table.add_(torch.ones(4, 2).to('lazy')[torch.tensor([9]).to('lazy')])\n"
        "torch_ltc.mark_step()\n",
        check=False,
    )
    assert "out of range" in result.stderr
    assert result.returncode == 1  # as in eager, which raises the error


def test_the_caller_continues_while_the_step_runs() -> None:
    x = torch.rand(3000, 3000).to("lazy")
    y = x @ x  # 54 billion operations
    torch_ltc.mark_step()
    assert torch_ltc.step_log()[-1]["execute_seconds"] < 0
    assert y.shape == (3000, 3000)


def test_without_async_the_caller_waits_for_the_step() -> None:
    with torch_ltc.config(async_execution=False):
        x = torch.ones(3, device="lazy") * 4
        torch_ltc.mark_step()
        assert torch_ltc.step_log()[-1]["execute_seconds"] >= 0
        assert x.tolist() == [4] * 3


SMALL_PROGRAMS = """
import os, torch, torch_ltc
x = torch.ones(40).to("lazy")
threads = set(os.listdir("/proc/self/task"))
assert (x + 1).sum().item() == 80
worker, = set(os.listdir("/proc/self/task")) - threads

def switches():
    status = open(f"/proc/self/task/{worker}/status").read()
    return int(status.split("voluntary_ctxt_switches:")[1].split()[0])

torch_ltc.wait_device_ops()
before = switches()
for n in range(1, 30):
    assert (x[:n] * 2).sum().item() == 2 * n
assert torch_ltc.metrics()["compilations"] == 0
assert switches() - before < 10
"""


def test_small_new_programs_run_where_their_value_is_read() -> None:
    run_python(
        SMALL_PROGRAMS,
        TORCH_LTC_TIER="auto",
        TORCH_LTC_CACHE="0",
        OMP_NUM_THREADS="1",
    )


STATE = """
import torch, torch_ltc
from torch.utils._python_dispatch import TorchDispatchMode

class Names(TorchDispatchMode):
    def __torch_dispatch__(self, function, types, arguments=(), named=None):
        names.append(str(function))
        return function(*arguments, **(named or {}))

names = []
numbers = torch.arange(400.0).view(20, 20)
x = numbers.to("lazy")
for n in range(1, 9):
    y = x[:n] @ x.t()
    with Names(), torch.autocast("cpu", dtype=torch.bfloat16):
        value = y.amax().item()
    assert value == (numbers[:n] @ numbers.t()).amax().item(), (n, value)
assert not [name for name in names if "cpu" in name or "copy_" in name], names
"""


def test_a_program_ignores_the_state_of_the_thread_that_reads() -> None:
    run_python(STATE, TORCH_LTC_TIER="auto", TORCH_LTC_CACHE="0")


def test_process_exit_with_steps_in_flight() -> None:
    result = run_python(
        "import torch, torch_ltc\n"
        "x = torch.ones(500, 500, device='lazy')\n"
        "for _ in range(4):\n"
        "    x = x @ x * 1e-3; torch_ltc.mark_step()\n"
        "print('end')\n"
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.strip() == "end"


def test_fork_is_rejected_with_a_sentence() -> None:
    result = run_python(
        "import os, torch, torch_ltc\n"
        "torch.ones(2, device='lazy').sum().item()\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    try:\n"
        "        (torch.ones(2, device='lazy') + 3).sum().item()\n"
        "    except RuntimeError as error:\n"
        "        print(error, flush=True)\n"
        "    os._exit(0)\n"
        "os.waitpid(child, 0)\n"
    )
    assert result.returncode == 0, result.stderr
    assert "spawn" in result.stdout
