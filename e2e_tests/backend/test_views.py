"""Views and in-place writes behave like eager's."""

from __future__ import annotations

import pytest
import torch
import torch_ltc
from comparison import assert_close

PROGRAMS = {
    "slice": lambda x: x[1:].add_(10),
    "select": lambda x: x[0].mul_(3),
    "column": lambda x: x[:, 1].zero_(),
    "transpose": lambda x: x.t().add_(torch.ones_like(x).t()),
    "view": lambda x: x.view(-1)[2:4].fill_(7),
    "diagonal": lambda x: x.diagonal().add_(5),
    "expand then write base": lambda x: (x.expand(2, *x.shape), x.add_(1)),
    "split": lambda x: x.split(2, 1)[1].sub_(4),
    "chained": lambda x: x[1:][:, 1:].t()[0].mul_(-1),
    "assignment": lambda x: x.__setitem__(
        (slice(None), 0), torch.arange(3.0, device=x.device)
    ),
    "masked": lambda x: x.masked_fill_(x > 5, -1.0),
    "out": lambda x: torch.add(x, x, out=x),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_write_through_a_view(name: str) -> None:
    cpu = torch.arange(12.0).reshape(3, 4)
    lazy = cpu.to("lazy")
    kept_cpu, kept_lazy = cpu[1], lazy[1]
    PROGRAMS[name](cpu)
    PROGRAMS[name](lazy)
    assert_close(lazy, cpu)
    assert_close(kept_lazy, kept_cpu)


def test_the_source_of_a_move_is_not_shared() -> None:
    cpu = torch.ones(4)
    lazy = cpu.to("lazy")
    cpu.add_(1)
    assert lazy.tolist() == [1] * 4
    back = lazy.cpu()
    lazy.add_(5)
    assert back.tolist() == [1] * 4
    back.zero_()
    assert lazy.tolist() == [6] * 4


def test_strided_sources_are_copied_right() -> None:
    cpu = torch.arange(12.0).reshape(3, 4)
    for source in (cpu.t(), cpu[:, ::2], cpu[1], cpu.expand(2, 3, 4)):
        assert_close(source.to("lazy"), source)


def test_copy_between_devices_in_place() -> None:
    lazy = torch.zeros(2, 3, device="lazy")
    lazy.copy_(torch.arange(3))
    assert lazy.tolist() == [[0, 1, 2]] * 2
    cpu = torch.zeros(2, 3, dtype=torch.int64)
    cpu.copy_(lazy)
    assert cpu.tolist() == [[0, 1, 2]] * 2


def test_data_swaps() -> None:
    parameter = torch.nn.Parameter(torch.zeros(3, device="lazy"))
    parameter.data = torch.ones(3, device="lazy")
    assert parameter.tolist() == [1] * 3
    parameter.data.add_(1)
    assert parameter.tolist() == [2] * 3


@pytest.mark.parametrize(
    "other", [lambda x: x[:2], lambda x: x.view(2, 2), torch.detach]
)
def test_shared_memory_is_not_resized(other) -> None:
    x = torch.zeros(4, device="lazy") + 1
    view = other(x)
    for tensor in (x, view):
        with pytest.raises(RuntimeError, match=r"resize_ to sizes \[9\] would enlarge"):
            tensor.resize_(9)
    view.add_(1)
    assert x.sum().item() == 4 + view.numel()


def test_resize() -> None:
    lazy = torch.arange(6.0).to("lazy")
    lazy.resize_(2, 2)
    assert lazy.tolist() == [[0, 1], [2, 3]]
    out = torch.empty(0, device="lazy")
    torch.mul(torch.ones(3, device="lazy"), 2, out=out)
    assert out.tolist() == [2] * 3


def test_outdated_values_of_views_are_not_computed() -> None:
    """Values of views that a later write of the whole tensor replaces aren't results of
    the program, although the views are alive."""
    x = torch.arange(24.0).reshape(6, 4)

    def write(parts: list[torch.Tensor], values: torch.Tensor) -> None:
        for part, rows in zip(parts, values.split([2, 1, 3]), strict=True):
            torch.mul(rows, 2, out=part)

    results = {}
    for device in ("cpu", "lazy"):
        whole = torch.zeros(6, 4, device=device)
        parts = [whole[:2], whole[2:3], whole[3:]]
        with torch_ltc.config(tier="compile"):
            for _ in range(3):
                write(parts, x.to(device))
                whole.add_(1)
                torch_ltc.mark_step()
        results[device] = [whole, *parts, parts[2][1], parts[0].t()]
    torch_ltc.wait_device_ops()
    assert len(torch_ltc.debug.plan()["outputs"]) == 1
    for ours, eager in zip(results["lazy"], results["cpu"], strict=True):
        assert ours.cpu().equal(eager) and ours.stride() == eager.stride()


LARGE = 1 << 18  # elements


def test_views_of_written_memory_hold_no_memory() -> None:
    """Views are held of memory that each step writes and reads through them."""
    whole = torch.zeros(LARGE, device="lazy")
    before = torch.lazy.memory_allocated()
    parts = [*whole.view(2, -1), whole.as_strided((LARGE // 2,), (1,), 7)]
    sums = []
    for _ in range(4):
        parts[0].add_(1)
        parts[1].mul_(2).add_(1)
        whole.add_(parts[2].sum() / LARGE)
        sums.append(sum(part.sum() for part in parts))
        torch_ltc.mark_step(wait=True)
    assert torch.lazy.memory_allocated() - before < whole.nbytes + (64 << 10)

    eager = torch.zeros(LARGE)
    views = [*eager.view(2, -1), eager.as_strided((LARGE // 2,), (1,), 7)]
    for ours in sums:
        views[0].add_(1)
        views[1].mul_(2).add_(1)
        eager.add_(views[2].sum() / LARGE)
        assert_close(ours, sum(view.sum() for view in views))
    for ours, view in zip(parts, views, strict=True):
        assert_close(ours, view)
        assert ours.stride() == view.stride()


def test_views_of_unchanged_memory_keep_their_values() -> None:
    whole = torch.rand(LARGE, device="lazy")
    parts = whole.split(LARGE // 4)
    torch_ltc.mark_step(wait=True)
    torch_ltc.reset_metrics()
    for part in parts:
        (part + 1).sum().item()
    assert torch_ltc.metrics()["compilations"] <= 1


def test_views_are_exchanged() -> None:
    """`swap_tensors` accepts no tensor to which C++ code holds weak references."""
    whole = torch.zeros(LARGE, device="lazy")
    view = whole[1:]
    view.add_(1)
    other = torch.ones(3, device="lazy")
    torch_ltc.debug.name_parameters(torch.nn.ParameterDict({"a": other}))
    torch.utils.swap_tensors(view, other)
    assert view.tolist() == [1, 1, 1] and other.sum().item() == LARGE - 1
    other.add_(1)
    assert whole.sum().item() == 2 * (LARGE - 1)


#: Parts of an expansion of a tensor of sizes [8, 1] to [5, 8, n].
PARTS_OF_EXPANDED = {
    "slice of a repeated dim": lambda x: x[..., 7:9] * 2,
    "select of a repeated dim": lambda x: x[..., -1] + 1,
    "slice of a new dim": lambda x: x[1:3, :, :2].neg(),
    "select of a new dim": lambda x: x[2][:, 1:3].exp(),
    "slice of an original dim": lambda x: x[:, 1:6:2, :3].square(),
    "select of an original dim": lambda x: x[:, 3, :4] - 1,
    "empty slice": lambda x: x[:, 3:3, 2:2] - 1,
}


@pytest.mark.parametrize("name", PARTS_OF_EXPANDED)
def test_parts_of_an_expanded_tensor_need_no_memory_for_it(name: str) -> None:
    n = 1 << 32
    memory = torch.arange(8.0).reshape(8, 1)
    with torch_ltc.config(tier="compile"):
        expected, part = (
            PARTS_OF_EXPANDED[name](x.expand(5, 8, n))
            for x in (memory, memory.to("lazy"))
        )
        assert_close(part.cpu(), expected)
