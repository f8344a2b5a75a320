"""Steps end, closures run and waits return as documented, also through the functions of
torch._lazy."""

from __future__ import annotations

import pytest
import torch
import torch._lazy
import torch._lazy.metrics
import torch_ltc
from comparison import assert_close
from counting import counting


def test_mark_step_runs_what_is_pending() -> None:
    x = torch.ones(3, device="lazy") * 2
    with counting() as counts:
        torch_ltc.mark_step()
        torch_ltc.wait_device_ops()
    assert counts.executions == 1
    with counting() as counts:
        torch_ltc.mark_step()
        assert x.tolist() == [2.0] * 3
    assert counts.executions == 0


def test_torch_lazy_names() -> None:
    x = torch.ones(3, device="lazy") + 1
    with counting() as counts:
        torch._lazy.mark_step()
        torch._lazy.wait_device_ops()
    assert counts.steps == 1
    y, z = torch._lazy.to_cpu([x * 2, {"z": x * 3}])
    assert y.tolist() == [4.0] * 3 and z["z"].device.type == "cpu"
    assert isinstance(torch._lazy.get_tensor_id(x), int)
    torch._lazy.metrics.reset()


def test_optimizer_step_ends_the_step() -> None:
    parameter = torch.nn.Parameter(torch.ones(3, device="lazy"))
    optimizer = torch.optim.SGD([parameter], lr=0.5)
    parameter.sum().backward()
    with counting() as counts:
        optimizer.step()
    assert counts.steps == 1 and counts.executions == 1


def test_optimizer_of_cpu_parameters_ends_no_step() -> None:
    parameter = torch.nn.Parameter(torch.ones(3))
    optimizer = torch.optim.SGD([parameter], lr=0.5)
    parameter.sum().backward()
    with counting() as counts:
        optimizer.step()
    assert counts.steps == 0


@pytest.mark.parametrize(
    "add", [torch_ltc.add_step_closure, torch._lazy.add_step_closure]
)
def test_step_closures(add) -> None:
    seen = []
    x = torch.ones(3, device="lazy") + 4
    add(lambda tensor, name: seen.append((name, tensor.sum().item())), (x, "a"))
    add(lambda: seen.append("b"))
    assert not seen
    torch_ltc.mark_step()
    assert seen == [("a", 15.0), "b"]
    torch_ltc.mark_step()
    assert len(seen) == 2, "a closure runs once"


def test_closure_reads_without_cutting() -> None:
    seen = []
    x = torch.ones(3, device="lazy") + 4
    torch_ltc.add_step_closure(lambda t: seen.append(t.tolist()), (x,))
    with counting() as counts:
        torch_ltc.mark_step()
    assert seen == [[5.0] * 3]
    assert counts.implicit_syncs == 0


def test_asynchronous_closure() -> None:
    import time

    seen = []
    x = torch.ones((), device="lazy") + 1
    torch_ltc.add_step_closure(lambda t: seen.append(t.item()), (x,), run_async=True)
    torch_ltc.mark_step()
    deadline = time.monotonic() + 20
    while not seen and time.monotonic() < deadline:
        time.sleep(0.01)
    assert seen == [2.0]


def test_sync_computes_only_its_tensors() -> None:
    x = torch.ones(3, device="lazy") + 1
    y = torch.ones(3, device="lazy") + 2
    with counting() as counts:
        torch_ltc.sync([x])
    assert counts.executions == 1 and counts.implicit_syncs == 0
    assert "add" in torch_ltc.debug.dump(y, stage="ir")
    assert y.tolist() == [3.0] * 3


def test_results_are_right_while_steps_overlap() -> None:
    x = torch.zeros(256, 256, device="lazy")
    for step in range(40):
        x = x * 0.5 + step
        torch_ltc.mark_step(wait=False)
    expected = 0.0
    for step in range(40):
        expected = expected * 0.5 + step
    assert_close(x, torch.full((256, 256), expected))
