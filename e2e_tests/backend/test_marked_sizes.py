"""torch_ltc.mark_dynamic and mark_static determine how many programs are compiled, and
raise errors for invalid marks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
import torch.nn.functional as F
import torch_ltc
from comparison import assert_close
from counting import counting
from torch import Tensor, nn
from torch.fx.experimental.symbolic_shapes import ConstraintViolationError
from torch_ltc._backend import bindings


@pytest.fixture(autouse=True)
def compiled() -> Iterator[None]:
    torch_ltc.mark_step()
    bindings().clear_program_cache()
    with torch_ltc.config(tier="compile", cache=False):
        yield


def _nothing(x: Tensor) -> None:
    del x


def _loop(
    function: Callable[[Tensor], Tensor],
    shapes: list[tuple[int, ...]],
    mark: Callable[[Tensor], Any],
) -> list[int]:
    """Returns the number of programs compiled in each step; compares the results with
    eager's."""
    counts = []
    with counting() as total:
        for shape in shapes:
            given = torch.randn(shape)
            x = given.to("lazy")
            mark(x)
            with counting() as step:
                result = function(x)
                torch_ltc.mark_step(wait=True)
            counts.append(step.compilations)
            assert_close(result, function(given))
    assert total.fallback_calls == 0
    return counts


def _dynamic(*dims: int, **ranges: int) -> Callable[[Tensor], None]:
    return lambda x: torch_ltc.mark_dynamic(x, dims, **ranges)


def _attention(x: Tensor) -> Tensor:
    b, n, _ = x.shape
    heads = x.view(b, n, 3, 4).transpose(1, 2)
    scores = (heads @ heads.transpose(-1, -2) / 2).softmax(-1)
    return (scores @ heads).transpose(1, 2).reshape(b * n, 12).sum(0)


#: A function, three shapes of its input, and the dimensions that are marked.
LOOPS: dict[str, tuple[Callable[[Tensor], Tensor], list[tuple[int, ...]], list[int]]]
LOOPS = {
    "a sum of rows": (
        lambda x: (x * 2 + 1).sum(0),
        [(9, 5), (12, 5), (31, 5)],
        [0],
    ),
    "a flattened size": (
        lambda x: x.view(x.numel()) * 3,
        [(8, 20), (11, 20), (7, 20)],
        [0],
    ),
    "two sizes": (_attention, [(4, 9, 12), (6, 17, 12), (5, 5, 12)], [0, 1]),
    "all but the last row": (
        lambda x: x[: len(x) - 1] * torch.arange(1, len(x), device=x.device)[:, None],
        [(10, 3), (17, 3), (5, 3)],
        [0],
    ),
    "a half": (
        lambda x: x[: len(x) // 2].sum(0) + x[len(x) // 2 :].square().sum(0),
        [(10, 3), (16, 3), (24, 3)],
        [0],
    ),
    "an equal constant": (
        lambda x: x @ torch.ones(x.shape[1], 8, device=x.device),
        [(8, 8), (11, 8), (20, 8)],
        [0],
    ),
}


@pytest.mark.parametrize("name", LOOPS)
def test_a_marked_size_compiles_once(name: str) -> None:
    function, shapes, dims = LOOPS[name]
    counts = _loop(function, shapes, _dynamic(*dims))
    assert counts == [1, 0, 0]


def test_without_marks_there_is_one_more() -> None:
    function, shapes, _ = LOOPS["a flattened size"]
    assert _loop(lambda x: function(x) + 1, shapes, _nothing) == [1, 1, 0]


def test_a_mark_of_the_first_batch_is_enough() -> None:
    marked: list[bool] = []

    def first_only(x: Tensor) -> None:
        if not marked:
            torch_ltc.mark_dynamic(x, 0)
        marked.append(True)

    counts = _loop(
        lambda x: (x.cos() + 1).mean(0), [(9, 5), (12, 5), (31, 5)], first_only
    )
    assert counts == [1, 0, 0]


def test_labels_follow_the_batch() -> None:
    """Marking one input suffices if another input has the same size."""
    network = nn.Linear(6, 4)
    on_lazy = nn.Linear(6, 4)
    on_lazy.load_state_dict(network.state_dict())
    on_lazy.to("lazy")
    torch_ltc.mark_step(wait=True)
    counts = []
    for size in (5, 9, 14):
        images, labels = torch.randn(size, 6), torch.arange(size) % 4
        expected = F.cross_entropy(network(images), labels)
        x, y = images.to("lazy"), labels.to("lazy")
        torch_ltc.mark_dynamic(x, 0)
        with counting() as step:
            loss = F.cross_entropy(on_lazy(x), y)
            torch_ltc.mark_step(wait=True)
        counts.append(step.compilations)
        assert_close(loss, expected)
    assert counts == [1, 0, 0]


def test_a_wrong_prediction_is_corrected() -> None:
    """The slice's end, 7, doesn't depend on the size, although it equals the first trace's
    size minus one."""

    def rows(x: Tensor) -> Tensor:
        return x[:7].square() + torch.arange(8, device=x.device)[1:, None]

    counts = _loop(rows, [(8, 3), (12, 3), (30, 3), (11, 3)], _dynamic(0))
    assert sum(counts) <= 2
    assert counts[2:] == [0, 0]


def test_another_size_varies_too() -> None:
    """A size that isn't marked may vary, too: dimension 1 varies first, then the marked
    dimension 0."""
    shapes = [(8, 20), (8, 30), (5, 30), (6, 17)]
    counts = _loop(lambda x: x.view(-1).exp().view(x.shape), shapes, _dynamic(0))
    assert counts == [1, 1, 0, 0]


def test_static_sizes_have_their_own_programs() -> None:
    def static(x: Tensor) -> None:
        torch_ltc.mark_static(x, 0)

    shapes = [(9, 5), (12, 5), (31, 5), (9, 5)]
    with counting() as counts:
        assert _loop(lambda x: (x * 5).sum(0), shapes, static) == [1, 1, 1, 0]
    assert counts.programs_bound == 0


def test_sizes_that_are_not_marked_as_static_vary() -> None:
    def static(x: Tensor) -> None:
        torch_ltc.mark_static(x, [1])

    shapes = [(9, 5), (12, 5), (31, 5), (9, 6), (10, 6), (11, 6)]
    counts = _loop(lambda x: (x * 6).sum(0), shapes, static)
    assert counts == [1, 1, 0, 1, 1, 0]


def test_a_static_size_that_bounds_slices() -> None:
    """A data set's number of rows isn't a symbol if it is marked static, although slices
    of varying length read the data set."""
    rows = torch.randn(40, 3)
    data = rows.to("lazy")
    torch_ltc.mark_static(data)
    for i, length in enumerate((5, 8, 11)):
        result = data[2 + i : 2 + i + length].square().sum(0)
        torch_ltc.mark_step(wait=True)
        assert_close(result, rows[2 + i : 2 + i + length].square().sum(0))
    assert all("40" not in line for line in torch_ltc.compile_log()[-1]["sizes"])


def test_dynamic_has_precedence() -> None:
    def both(x: Tensor) -> None:
        torch_ltc.mark_dynamic(x, 0)
        torch_ltc.mark_static(x)

    shapes = [(9, 5), (12, 5), (31, 5)]
    assert _loop(lambda x: (x * 7).sum(0), shapes, both) == [1, 0, 0]


def test_a_range() -> None:
    shapes = [(30, 5), (12, 5), (4, 5)]
    ranged = _dynamic(0, min=4, max=32)
    assert _loop(lambda x: (x * 8).sum(0), shapes, ranged) == [1, 0, 0]


def test_the_mark_of_a_tensor_that_is_written() -> None:
    x = torch.ones(6, 3, device="lazy")
    torch_ltc.mark_dynamic(x, 0)
    for _ in range(3):
        x += 1
        torch_ltc.mark_step(wait=True)
    first = (x * 9.5).sum(0)
    torch_ltc.mark_step(wait=True)
    y = torch.ones(11, 3).to("lazy")
    with counting() as later:
        other = (y * 9.5).sum(0)
        torch_ltc.mark_step(wait=True)
    assert later.compilations == 0
    assert first.tolist() == [228.0] * 3
    assert other.tolist() == [104.5] * 3


def test_a_pending_tensor_is_computed() -> None:
    first, second = torch.ones(6, 3).to("lazy") * 2, torch.ones(8, 3).to("lazy") * 2
    torch_ltc.mark_dynamic(first, 0)
    torch_ltc.mark_step(wait=True)
    _ = (first.sin() + 3).sum(0).cpu()
    with counting() as counts:
        result = (second.sin() + 3).sum(0).cpu()
    assert counts.compilations == 0
    assert_close(result, (torch.full((8, 3), 2.0).sin() + 3).sum(0))


def test_torch_marks() -> None:
    """The functions of torch._dynamo that mark sizes accept lazy tensors. They set
    attributes of the Python object, which torch.compile reads."""
    x = torch.ones(5, 3).to("lazy")
    torch._dynamo.mark_dynamic(x, 0)
    torch._dynamo.mark_static(x, 1)
    assert (x + 1).sum().item() == 30


def test_a_mark_of_a_view() -> None:
    """Marking a view computes its value; the view still shares its base's memory."""
    base = torch.arange(24.0).view(6, 4).to("lazy")
    view = base[1:]
    torch_ltc.mark_dynamic(view, 0)
    view += 1
    assert base.sum().item() == 276 + 20
    assert view[0, 0].item() == 5


@pytest.mark.parametrize("mark", [torch_ltc.mark_dynamic, torch_ltc.mark_static])
def test_errors(mark: Callable[..., None]) -> None:
    x = torch.ones(5, 3).to("lazy")
    with pytest.raises(AssertionError, match="index must be an int, a list or a tuple"):
        mark(x, "0")
    with pytest.raises(IndexError, match="has 2 dimensions, but got index 2"):
        mark(x, [0, 2])
    with pytest.raises(ValueError, match="mark it after moving it"):
        mark(torch.ones(3), 0)
    with pytest.raises(TypeError, match="needs a tensor"):
        mark(3, 0)


def test_errors_of_ranges() -> None:
    x = torch.ones(5, 3).to("lazy")
    for least, most in ((6, None), (None, 4), (9, 3)):
        with pytest.raises(ConstraintViolationError, match="size 0 is 5"):
            torch_ltc.mark_dynamic(x, 0, min=least, max=most)
    with pytest.raises(TypeError, match="min must be an int"):
        torch_ltc.mark_dynamic(x, 0, min="4")  # type: ignore[arg-type]
    assert torch_ltc.mark_static(nn.Linear) is nn.Linear


def test_a_view_of_written_memory_is_marked() -> None:
    memory = torch.zeros(1 << 16, device="lazy")
    for step in range(3):
        memory.add_(1)
        part = memory[: 40000 + step]
        torch_ltc.mark_dynamic(part, 0)
        torch_ltc.reset_metrics()
        assert (part * 2).sum().item() == 2 * (step + 1) * (40000 + step)
    assert torch_ltc.metrics()["compilations"] == 0
