"""In op-by-op runs, results that update a parameter are written to its memory, as by
eager's in-place ops, unless the old value is still needed."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator

import pytest
import torch
import torch_ltc
from comparison import assert_close
from torch import Tensor, nn
from torch.profiler import ProfilerActivity, profile


@pytest.fixture(autouse=True)
def op_by_op() -> Iterator[None]:
    with torch_ltc.config(tier="interpret"):
        yield


OPTIMIZERS = {
    "AdamW": lambda p: torch.optim.AdamW(p, lr=0.01),
    "SGD": lambda p: torch.optim.SGD(p, lr=0.01, momentum=0.9),
    "RMSprop": lambda p: torch.optim.RMSprop(p, lr=0.01),
}
#: Number of state tensors of each parameter.
STATES = {"AdamW": 2, "SGD": 1, "RMSprop": 1}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_step_holds_parameters_states_and_gradients_once(name: str) -> None:
    eager = nn.Sequential(*[nn.Linear(256, 256) for _ in range(6)])
    torch_ltc.wait_device_ops()
    base = torch_ltc.metrics()["memory"]["allocated_bytes"]  # of earlier tests
    models = [copy.deepcopy(eager).to("lazy"), eager]
    size = sum(p.numel() for p in eager.parameters()) * 4
    for model in models:
        optimizer = OPTIMIZERS[name](model.parameters())
        for step in range(5):
            optimizer.zero_grad()
            x = torch.full((4, 256), 0.1 * step, device=model[0].weight.device)
            model(x).square().mean().backward()
            optimizer.step()
            if step == 2 and model is not eager:
                torch_ltc.wait_device_ops()
                torch.accelerator.reset_peak_memory_stats()
                before = torch_ltc.metrics()["memory"]["peak_allocated_bytes"]
        if model is not eager:
            torch_ltc.wait_device_ops()
            peak = torch_ltc.metrics()["memory"]["peak_allocated_bytes"]
    assert_close(list(models[0].parameters()), list(models[1].parameters()))
    whole = base + (2 + STATES[name]) * size
    assert before <= whole + size / 4
    # One layer's new values may exist in addition to the memory to which they are copied.
    assert peak <= whole + size / 2, (peak / size, whole / size)


def test_a_result_has_no_memory_before_its_op_runs() -> None:
    size = 1 << 22  # elements of 4 bytes
    one = torch.ones((), device="lazy")

    torch_ltc.mark_step()
    torch_ltc.wait_device_ops()
    torch.accelerator.reset_peak_memory_stats()
    before = torch_ltc.metrics()["memory"]["allocated_bytes"]
    temporary = (one.expand(size) + one).cumsum(0)
    result = temporary.amax().expand(size) * 0.5
    del temporary
    torch_ltc.mark_step()
    torch_ltc.wait_device_ops()
    peak = torch_ltc.metrics()["memory"]["peak_allocated_bytes"]
    # The two temporary values, but not the result.
    assert (peak - before) / (4 * size) == pytest.approx(2, abs=0.1)
    assert result[-1].item() == size


WRITERS: dict[str, Callable[[Tensor], Tensor]] = {
    "product": lambda x: x @ x,
    "elementwise": torch.exp,
    "resized image": lambda x: nn.functional.interpolate(x[None, None], scale_factor=1.0, mode="bicubic"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRITERS)
def test_kernels_write_results_to_their_memory(name: str) -> None:
    """An `out` kernel gets the memory of the result, so no second copy exists."""
    x = torch.rand(512, 512)
    lazy = x.to("lazy")
    torch_ltc.mark_step()
    torch_ltc.wait_device_ops()
    torch.accelerator.reset_peak_memory_stats()
    before = torch_ltc.metrics()["memory"]["allocated_bytes"]
    result = WRITERS[name](lazy)
    torch_ltc.mark_step()
    torch_ltc.wait_device_ops()
    peak = torch_ltc.metrics()["memory"]["peak_allocated_bytes"]
    assert (peak - before) / x.nbytes == pytest.approx(1, abs=0.1)
    assert_close(result, WRITERS[name](x))


#: Ops whose kernels allocate their results.
ALLOCATING: dict[str, Callable[[Tensor], Tensor | tuple[Tensor, ...]]] = {
    "concatenation": lambda x: torch.cat([x, x], 1),
    "softmax": lambda x: x.softmax(1),
    "selection": lambda x: x.index_select(0, torch.arange(256).to(x.device)),
    "maximum": lambda x: x.max(1),
    "large": lambda x: torch.cat([x, x, x, x]),
}


@pytest.mark.parametrize("name", ALLOCATING)
def test_memory_of_kernels_becomes_that_of_results(name: str) -> None:
    """The profiler sees no copy, and the values exist only once."""
    x = torch.rand(256, 512)
    lazy = x.to("lazy")
    torch_ltc.mark_step(wait=True)
    torch_ltc.wait_device_ops()
    torch.accelerator.reset_peak_memory_stats()
    before = torch_ltc.metrics()["memory"]["allocated_bytes"]
    with profile(activities=[ProfilerActivity.CPU]) as recorded:
        results = ALLOCATING[name](lazy)
        torch_ltc.mark_step(wait=True)
        torch_ltc.wait_device_ops()
    names = {event.name for event in recorded.events()}
    assert any(event.startswith("torch_ltc::execute") for event in names)
    assert "aten::copy_" not in names
    peak = torch_ltc.metrics()["memory"]["peak_allocated_bytes"]
    values = [results] if isinstance(results, Tensor) else results
    size = sum(value.nbytes for value in values)
    assert (peak - before) / size == pytest.approx(1, abs=0.15)
    assert torch_ltc.metrics()["memory"]["allocated_bytes"] - before == size
    assert_close(results, ALLOCATING[name](x))


def test_results_with_equal_values_have_separate_memory() -> None:
    x = torch.rand(6, 8)
    found = []
    for device in ("lazy", "cpu"):
        joined = torch.cat([x.to(device), x.to(device)])
        copied, flat = joined.clone(), joined.reshape(-1).clone()
        part = joined[:6].clone()
        if device == "lazy":
            torch_ltc.mark_step(wait=True)
        joined.add_(1)
        flat.mul_(2)
        if device == "lazy":
            torch_ltc.mark_step(wait=True)
        found.append([joined, copied, flat, part])
    assert_close(*found)


def swap(a: Tensor, b: Tensor) -> list[Tensor]:
    old = a.clone()
    a.copy_(b)
    b.copy_(old)
    return [a, b]


def exchange_data(a: Tensor, b: Tensor) -> list[Tensor]:
    a.data, b.data = b.data * 1, a.data * 1
    return [a, b]


def read_view_later(a: Tensor, b: Tensor) -> list[Tensor]:
    view = a.t()
    product = view * 1
    a.add_(b)
    return [a, product, view * 2]


def keep_old_value(a: Tensor, b: Tensor) -> list[Tensor]:
    old = a.clone()
    a.mul_(b)
    return [a, old]


def update_with_itself(a: Tensor, b: Tensor) -> list[Tensor]:
    a.mul_(a)
    b.add_(b.t().clone(), alpha=2)
    return [a, b]


def multiply_in_place(a: Tensor, b: Tensor) -> list[Tensor]:
    a.addmm_(a.clone(), b)
    b.copy_(b @ b)
    return [a, b]


def update_each_other(a: Tensor, b: Tensor) -> list[Tensor]:
    a.add_(b)
    b.sub_(a)
    a.mul_(b)
    return [a, b]


def broadcast(a: Tensor, b: Tensor) -> list[Tensor]:
    a.add_(a[0].clone())
    b.mul_(b[:, :1].clone())
    return [a, b]


def read_after_update(a: Tensor, b: Tensor) -> list[Tensor]:
    a.add_(1)
    total = a.sum() + b.sum()
    b.add_(total)
    return [a, b, total]


def adam_with_shared_operands(a: Tensor, b: Tensor) -> list[Tensor]:
    parameter = a.requires_grad_(True)
    optimizer = torch.optim.Adam([parameter], lr=0.1)
    parameter.grad = parameter.detach()
    optimizer.step()
    parameter.grad = optimizer.state[parameter]["exp_avg"]
    optimizer.step()
    return [parameter.detach(), b]


CASES = [
    swap,
    exchange_data,
    read_view_later,
    keep_old_value,
    update_with_itself,
    multiply_in_place,
    update_each_other,
    broadcast,
    read_after_update,
    adam_with_shared_operands,
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_updates_equal_eager(case: Callable[[Tensor, Tensor], list[Tensor]]) -> None:
    torch.manual_seed(0)
    a, b = torch.randn(5, 5), torch.randn(5, 5)
    found = []
    for device in ("lazy", "cpu"):
        x, y = a.to(device).clone(), b.to(device).clone()
        torch_ltc.mark_step(wait=True)
        values = []
        for _ in range(3):
            results = case(x, y)
            if device == "lazy":
                torch_ltc.mark_step(wait=True)
            values += [r.detach().cpu().clone() for r in results]
            x.requires_grad_(False)
        found.append(values)
    assert_close(*found, rtol=1e-5, atol=1e-5)


def test_a_failed_step_leaves_parameters_as_they_were() -> None:
    """If an op after the update fails, the tensor has its old value or the new one."""
    x = torch.ones(300, device="lazy")
    index = torch.tensor([7], device="lazy")
    table = torch.ones(5, 3, device="lazy")
    torch_ltc.mark_step(wait=True)
    x.mul_(2)
    rows = table[index]
    torch_ltc.mark_step()
    with pytest.raises(IndexError):
        rows.cpu()
    assert x.sum().item() in (300, 600)
    assert table.sum().item() == 15
