"""General graphs express relations between sizes and explain mismatches; the compile log
lists their symbols."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import general_graphs
import pytest
import torch
import torch_ltc
from comparison import assert_close
from counting import counting
from torch_ltc._backend import bindings


@pytest.fixture(autouse=True)
def constants() -> Iterator[None]:
    """Switches varying numbers off, so that numbers that vary are expressions of the
    symbols, not dynamic scalars."""
    torch_ltc.mark_step()
    with torch_ltc.config(varying_numbers="off"):
        yield


def ones(*sizes: int) -> torch.Tensor:
    result = torch.ones(sizes).to("lazy")
    torch_ltc.mark_step()
    return result


def traced(function: Callable[..., Any], *sizes: tuple[int, ...]) -> Any:
    inputs = [ones(*size) for size in sizes]
    program = general_graphs.trace(lambda: function(*inputs))
    assert program is not None
    return program


def form_of(function: Callable[..., Any], *rows: Any) -> Any:
    return bindings().GeneralGraph([traced(function, *row) for row in rows])


def test_a_product() -> None:
    form = form_of(lambda x: x.view(-1) * 2, [(8, 20)], [(4, 30)])
    assert form.symbols() == [
        "s0 = size 0 of parameter 0, 4 to 8",
        "s1 = size 1 of parameter 0, 20 to 30",
    ]
    flat = form_of(lambda x: x.view(x.numel()) * 2, [(8, 20)], [(4, 30)])
    assert "size of aten::view_copy: s0*s1" in flat.text()


def test_equal_by_accident() -> None:
    """Batch size and length, equal in both traces, are one symbol until they differ."""

    def product(x: torch.Tensor) -> torch.Tensor:
        return x.view(x.numel()) + 1

    form = form_of(product, [(8, 8)], [(5, 5)])
    assert len(form.symbols()) == 1
    other = traced(product, (5, 7))
    values, reason = form.bind(other)
    assert values is None
    assert reason == "size 1 of parameter 0 is 7, the program expects s0"
    better = form.refine(other)
    assert len(better.symbols()) == 2
    values, _ = better.bind(other)
    general_graphs.same(better.instantiate(values, other.name), other)


def test_a_wrong_number_is_named_with_its_line() -> None:
    def cut(x: torch.Tensor, end: int) -> torch.Tensor:
        return x[:, :end] * 2

    with torch_ltc.config(source_info=True):
        programs = [
            traced(lambda x, end=end: cut(x, end), (3, size))
            for size, end in ((40, 36), (60, 56), (80, 41))
        ]
    form = bindings().GeneralGraph(programs[:2])
    values, reason = form.bind(programs[2])
    assert values is None
    assert reason.startswith("end of aten::slice_copy.Tensor at test_general_graphs.py")
    assert reason.endswith(" is 41, the program expects s0 - 4")


def test_a_number_of_its_own() -> None:
    """The start of a slice is a symbol if it doesn't follow from a size."""
    starts = ((9, 4, 40), (12, 17, 61), (10, 8, 50), (9, 2, 44))
    programs = [
        traced(lambda x, start=start: x[start : start + 7].sum(0), (size, width))
        for width, start, size in starts
    ]
    outcome = general_graphs.check(programs)
    assert not outcome.rejected and outcome.general == 1


def test_a_growing_cache() -> None:
    def step(cache: torch.Tensor, new: torch.Tensor, mask: torch.Tensor) -> Any:
        keys = torch.cat([cache, new], 1)
        return keys, (keys.sum(2) + mask).softmax(1)

    rows = [[(2, n, 6), (2, 1, 6), (2, n + 1)] for n in range(5, 12)]
    programs = [traced(step, *row) for row in rows]
    outcome = general_graphs.check(programs)
    assert (outcome.general, outcome.refined, outcome.bound) == (1, 0, 5)


def test_labels_as_a_flat_parameter() -> None:
    """A parameter's size is expressed as a product of other sizes if the shapes wouldn't
    match otherwise."""

    def loss(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        return (logits.flatten(0, 1).sum(1) - labels).square().mean()

    rows = [[(b, t, 5), (b * t,)] for b, t in ((3, 7), (4, 9), (2, 6), (6, 6))]
    programs = [traced(loss, *row) for row in rows]
    form = bindings().GeneralGraph(programs[:2])
    assert len(form.symbols()) == 2
    outcome = general_graphs.check(programs)
    assert (outcome.refined, outcome.bound) == (0, 2)


def test_even_sizes() -> None:
    """If all sizes in the traces are even, the general graph is for even sizes only."""

    def halves(x: torch.Tensor) -> torch.Tensor:
        return x.view(x.shape[0] // 2, 2, 3).sum(1) + 1

    programs = [traced(halves, (n, 3)) for n in (8, 12, 20)]
    form = bindings().GeneralGraph(programs[:2])
    values, _ = form.bind(programs[2])
    general_graphs.same(form.instantiate(values, programs[2].name), programs[2])


@pytest.mark.parametrize("sizes", [(1, 5), (0, 5), (5, 1)])
def test_one_and_zero_are_other_skeletons(sizes: tuple[int, int]) -> None:
    def scaled(x: torch.Tensor) -> torch.Tensor:
        return x * x.sum(1, keepdim=True)

    form = form_of(scaled, [(4, 5)], [(6, 5)])
    other = traced(scaled, sizes)
    assert form.bind(other) == (None, "it differs in more than sizes")


def test_symbols_are_at_least_two() -> None:
    form = form_of(lambda x: x + 1, [(4,)], [(6,)])
    with pytest.raises(RuntimeError, match="at least 2"):
        form.instantiate([1], "one")


def test_other_programs_have_no_form() -> None:
    programs = [
        traced(lambda x: x + 1, (4,)),
        traced(lambda x: x * 2, (5,)),
    ]
    with pytest.raises(RuntimeError, match="the traces differ in more than sizes"):
        bindings().GeneralGraph(programs)


def test_stand_ins_are_distinct() -> None:
    form = form_of(lambda x, y: x @ y, [(4, 5), (5, 7)], [(6, 9), (9, 8)])
    rows = form.stand_ins()
    # Four vectors of stand-ins for three symbols.
    assert len(rows) == 4 and all(len(row) == 3 for row in rows)
    numbers = [value for row in rows for value in row]
    assert len(set(numbers)) == 12 and min(numbers) > 10000
    assert all(sorted(row) == row for row in rows)
    # Each of the six lowest bits of a stand-in is 0 in one row and 1 in another, and so are
    # those of its predecessor. This shows how divisions by powers of 2 up to 64 round.
    for bit in range(6):
        assert len({row[0] >> bit & 1 for row in rows}) == 2
        assert len({(row[0] - 1) >> bit & 1 for row in rows}) == 2


def test_a_bound_keeps_stand_ins_small() -> None:
    """A position table of 500 rows limits the length, and so its stand-ins, to 500."""

    def embedded(x: torch.Tensor) -> torch.Tensor:
        table = torch.arange(500.0, device=x.device).view(500, 1)
        return x + table[: x.shape[0]]

    form = form_of(embedded, [(20, 3)], [(30, 3)])
    assert all(max(row) <= 500 for row in form.stand_ins())


def test_a_parameter_that_bounds_a_slice_varies() -> None:
    """A number of rows that is constant in the traces is a symbol if it bounds a slice
    whose length varies.
    """

    def loss(
        data: torch.Tensor, targets: torch.Tensor, like: torch.Tensor
    ) -> torch.Tensor:
        n = like.shape[0]
        return (data[:n].relu().sum(1) - targets[:n]).square().mean() + like.sum()

    rows = [[(500, 3), (500,), (n,)] for n in (20, 30)]
    form = form_of(loss, *rows)
    assert [line.split(",")[0] for line in form.symbols()] == [
        "s0 = size 0 of parameter 2",
        "s1 = size 0 of parameter 0",
    ]
    assert all(row[0] > 10000 and row[1] > 10**7 for row in form.stand_ins())
    other = traced(loss, (70000, 3), (70000,), (64,))
    values, _ = form.bind(other)
    assert values == [64, 70000]
    general_graphs.same(form.instantiate(values, other.name), other)


def _log_of(sizes: list[int]) -> list[dict]:
    bindings().clear_program_cache()
    torch_ltc.reset_metrics()
    for size in sizes:
        (ones(size, 3) * 2).sum(0).cpu()
        torch_ltc.mark_step()
    log = [row for row in torch_ltc.compile_log() if row["ops"] == 2]
    return [row for row in log if row["reason"] != "one program for all sizes"]


def test_the_compile_log_lists_symbols() -> None:
    with torch_ltc.config(varying_sizes="auto", cache=False):
        log = _log_of([4, 6, 9])
    assert [row["sizes"] for row in log[-3:]] == [
        [],
        ["s0 = size 0 of parameter 0, 4 to 6"],
        ["s0 = size 0 of parameter 0, 4 to 6"],
    ]


def _net(device: str) -> torch.nn.Module:
    torch.manual_seed(3)
    layers = [torch.nn.Linear(6, 12), torch.nn.GELU(), torch.nn.Linear(12, 6)]
    return torch.nn.Sequential(*layers).to(device)


def _losses(device: str, sizes: list[int]) -> list[torch.Tensor]:
    """Returns the losses of training steps, one for each batch size in `sizes`."""
    model = _net(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for size in sizes:
        x = torch.linspace(-1, 1, 6 * size).reshape(size, 6).to(device)
        optimizer.zero_grad()
        loss = (model(x).softmax(1) * x).mean(0).square().sum()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach().cpu())
    return losses


@pytest.mark.parametrize("tier", ["compile", "auto"])
def test_one_program_for_all_sizes(tier: str) -> None:
    sizes = [8, 5, 13, 6, 21, 2, 17, 40, 33, 7, 11, 64]
    bindings().clear_program_cache()
    options = torch_ltc.config(varying_sizes="auto", cache=False, tier=tier)
    with options, counting() as counts:
        losses = _losses("lazy", sizes)
        torch_ltc.wait_device_ops()
    assert_close(losses, _losses("cpu", sizes))
    # Two programs for the first sizes, and the general program.
    assert counts.compilations <= 3


def test_option_off() -> None:
    with torch_ltc.config(varying_sizes="off", cache=False):
        log = _log_of([5, 7, 8])
    assert all(row["sizes"] == [] for row in log)
