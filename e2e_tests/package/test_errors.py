"""Invalid input raises one clear sentence with op, Python line and remedy, and nothing
is lost: ops traced before still run."""

from __future__ import annotations

import math

import pytest
import torch
import torch_ltc
from comparison import assert_close
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode


@pytest.fixture
def pending():
    """Yields a pending result, which must survive the test's error."""
    tensor = torch.arange(4.0, device="lazy") * 2
    yield tensor
    assert tensor.tolist() == [0.0, 2.0, 4.0, 6.0]


def message(caught) -> str:
    """Returns the first paragraph of the error's message: torch may append a C++ stack."""
    return str(caught.value).split("\nException raised")[0].strip()


@pytest.mark.parametrize(
    ("call", "op"),
    [
        (lambda a, b: a + b, "add"),
        (lambda a, b: b * a, "mul"),
        (lambda a, b: torch.cat([a, b]), "cat"),
        (lambda a, b: a.copy_(a).add_(b), "add"),
        (lambda a, b: torch.where(a > 0, a, b), "where"),
        (lambda a, b: b.add_(a), "add_"),
        (
            lambda a, b: b.cumsum_(0) + b.index_add_(0, torch.zeros(3).long(), a),
            "index_add_",
        ),
        (lambda a, b: torch.mul(a, 2, out=b), "mul"),
        (lambda a, b: torch.cumsum(a, 0, out=b), "cumsum"),
    ],
)
def test_mixing_devices(call, op: str, pending) -> None:
    with pytest.raises(RuntimeError) as caught:
        call(torch.ones(3, device="lazy"), torch.ones(3))
    text = message(caught)
    assert op in text
    assert "cpu" in text and "lazy" in text
    assert ".to(" in text
    assert "test_errors.py" in text


def test_mixing_devices_in_a_module(pending) -> None:
    with pytest.raises(RuntimeError) as caught:
        nn.Linear(3, 2)(torch.ones(1, 3, device="lazy"))
    assert ".to(" in message(caught)


def test_rank_0_cpu_tensors_mix() -> None:
    result = torch.ones(3, device="lazy") * torch.tensor(2.5)
    assert result.tolist() == [2.5] * 3


@pytest.mark.parametrize(
    ("call", "op"),
    [
        (lambda a: a + torch.ones(5, device="lazy"), "add"),
        (lambda a: a @ torch.ones(5, 2, device="lazy"), "mm"),
        (lambda a: a.view(7), "view"),
        (lambda a: torch.cat([a, torch.ones(4, device="lazy")]), "cat"),
        (lambda a: a.sum(5), "sum"),
        (lambda a: a.expand(2, 4), "expand"),
        (lambda a: a.reshape(5), "view"),
        (lambda a: a.transpose(0, 5), "transpose"),
        (lambda a: a.unfold(0, 7, 1), "unfold"),
        (lambda a: a.split([1, 4]), "split_with_sizes"),
    ],
)
def test_shapes_that_do_not_fit(call, op: str, pending) -> None:
    with pytest.raises((RuntimeError, IndexError)) as caught:
        call(torch.ones(2, 3, device="lazy"))
    text = message(caught)
    assert op in text
    assert "test_errors.py" in text


def test_views_of_other_devices_keep_their_messages() -> None:
    for device in ("meta", "cpu"):
        with pytest.raises(RuntimeError) as caught:
            torch.ones(2, 3, device=device).view(7)
        assert message(caught) == "shape '[7]' is invalid for input of size 6"


@pytest.mark.parametrize("dtype", [torch.complex32, torch.uint32])
def test_unknown_dtypes(dtype: torch.dtype, pending) -> None:
    """Programs don't support these dtypes: ops on them either run by fallback with the
    correct result or raise a one-sentence error."""
    torch_ltc.reset_metrics()
    try:
        value = (torch.ones(3, device="lazy").to(dtype) * 2).sum().item()
    except RuntimeError as error:
        assert "dtype" in str(error) or "not implemented" in str(error)
        assert "test_errors.py" in str(error)
    else:
        assert value == 6
        assert torch_ltc.fallbacks()


def test_index_beyond_the_end(pending) -> None:
    with pytest.raises(IndexError):
        torch.ones(3, device="lazy")[5]


def read_wrong_rows(table: torch.Tensor) -> torch.Tensor:
    index = torch.tensor([0, 7], device=table.device)
    return nn.functional.embedding(index, table)


#: Ops that detect an invalid index when they run; the class of eager's error varies.
INDEXING = {
    "embedding": read_wrong_rows,
    "index_select": lambda t: t.index_select(0, torch.tensor([-1], device=t.device)),
    "index.Tensor": lambda t: t[torch.tensor([1, -4], device=t.device)],
    "gather": lambda t: t.gather(1, torch.full((3, 1), 2, device=t.device)),
    "scatter": lambda t: t.scatter(0, torch.full((1, 2), 3, device=t.device), 1.0),
    "scatter_reduce": lambda t: t.scatter_reduce(
        0, torch.full((1, 2), 3, device=t.device), t[:1], "amax"
    ),
    "index_add": lambda t: t.index_add(0, torch.tensor([3], device=t.device), t[:1]),
    "index_copy": lambda t: t.index_copy(0, torch.tensor([3], device=t.device), t[:1]),
    "index_fill": lambda t: t.index_fill(0, torch.tensor([3], device=t.device), 0),
    "index_put": lambda t: t.index_put(
        (torch.tensor([3], device=t.device),), torch.zeros((), device=t.device)
    ),
    "put": lambda t: t.put(torch.tensor([6], device=t.device), t[0, :1]),
    "nll_loss": lambda t: nn.functional.cross_entropy(
        t, torch.tensor([0, 2, 1], device=t.device)
    ),
}


@pytest.mark.parametrize("tier", ["compile", "interpret"])
@pytest.mark.parametrize("op", INDEXING)
def test_index_out_of_range(op: str, tier: str) -> None:
    """An index out of range raises eager's error when the step runs."""
    with pytest.raises((IndexError, RuntimeError)) as eager:
        INDEXING[op](torch.ones(3, 2))
    table = torch.ones(3, 2, device="lazy")
    torch_ltc.mark_step()
    options = {"source_info": True, "tier": tier}
    with torch_ltc.config(**options), pytest.raises(eager.type) as caught:
        INDEXING[op](table).sum().item()
    text = message(caught)
    assert op in text
    assert message(eager) in text
    assert ("out of range: it must be at least" in text) == (tier == "compile")
    assert "test_errors.py" in text
    assert table.sum().item() == 6


#: Values that eager rejects when the op is called.
VALUES = {
    "masked_scatter": lambda d: torch.zeros(3, device=d).masked_scatter(
        torch.ones(3, dtype=torch.bool, device=d), torch.ones(2, device=d)
    ),
    "normal of a tensor": lambda d: torch.normal(0.0, torch.tensor([-1.0], device=d)),
    "normal of tensors": lambda d: torch.normal(
        torch.zeros(2, device=d), torch.tensor([1.0, torch.nan], device=d)
    ),
    "a distribution": lambda d: torch.distributions.Normal(
        torch.zeros(1, device=d), torch.tensor([-1.0], device=d), validate_args=False
    ).sample(),
    "histc": lambda d: torch.histc(torch.tensor([1.0, torch.inf], device=d)),
    "poisson": lambda d: torch.poisson(torch.tensor([-1.0], device=d)),
    "bernoulli": lambda d: torch.bernoulli(torch.tensor([1.5], device=d)),
    "one_hot": lambda d: nn.functional.one_hot(torch.tensor([-1], device=d), 3),
    "a margin's target": lambda d: nn.functional.multi_margin_loss(
        torch.zeros(2, 3, device=d), torch.tensor([0, 5], device=d)
    ),
    "a sorter": lambda d: torch.searchsorted(
        torch.tensor([1.0, 2.0], device=d),
        torch.tensor([1.5], device=d),
        sorter=torch.tensor([0, 5], device=d),
    ),
    "an unpooled index": lambda d: nn.functional.max_unpool2d(
        torch.ones(1, 1, 1, 1, device=d), torch.tensor([[[[-1]]]], device=d), 2
    ),
}
for quantile in torch.quantile, torch.nanquantile:
    for mode in "linear", "lower", "higher", "nearest", "midpoint":
        for q in -0.1, 1.1, math.nan:
            VALUES[f"{quantile.__name__} {mode} {q}"] = (
                lambda d, arguments=(quantile, mode, q): arguments[0](
                    torch.arange(4.0, device=d),
                    torch.tensor([0.5, arguments[2]], device=d),
                    interpolation=arguments[1],
                )
            )


@pytest.mark.parametrize("tier", ["compile", "interpret"])
@pytest.mark.parametrize("name", VALUES)
def test_wrong_values_are_errors_when_they_are_read(name: str, tier: str) -> None:
    with pytest.raises(RuntimeError) as eager:
        VALUES[name]("cpu")
    with torch_ltc.config(tier=tier), pytest.raises(eager.type):
        VALUES[name]("lazy").cpu()


def test_ignored_targets_may_be_out_of_range() -> None:
    logits = torch.zeros(2, 3, device="lazy")
    target = torch.tensor([1, -100], device="lazy")
    loss = nn.functional.cross_entropy(logits, target)
    assert loss.item() == pytest.approx(1.0986122)


def test_a_step_with_a_wrong_index_leaves_the_model_as_it_was() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Embedding(5, 4), nn.Flatten(), nn.Linear(8, 3))
    model.to("lazy")
    optimizer = torch.optim.Adam(model.parameters())

    def step(words: list[int], target: int) -> torch.Tensor:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(
            model(torch.tensor([words], device="lazy")),
            torch.tensor([target], device="lazy"),
        )
        loss.backward()
        optimizer.step()
        return loss

    for _ in range(3):
        step([1, 2], 0).item()
    before = {name: value.cpu() for name, value in model.state_dict().items()}
    for words, target in (([1, 5], 0), ([1, 2], 3)):
        with pytest.raises(IndexError, match="out of range"):
            step(words, target).item()
        for name, value in model.state_dict().items():
            assert torch.equal(value.cpu(), before[name]), name
    optimizer.zero_grad()
    assert step([1, 2], 0).item() > 0


DIVISIONS = {
    "floor_divide": lambda a, b: a // b,
    "remainder": lambda a, b: a % b,
    "fmod": torch.fmod,
    "div trunc": lambda a, b: torch.div(a, b, rounding_mode="trunc"),
}


@pytest.mark.parametrize("dtype", [torch.int64, torch.int8])
@pytest.mark.parametrize("name", DIVISIONS)
def test_integers_divided_by_zero(name: str, dtype: torch.dtype) -> None:
    numbers = torch.tensor([7, 8], dtype=dtype).to("lazy")
    divisors = torch.tensor([2, 0], dtype=dtype)
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        DIVISIONS[name](numbers.cpu(), divisors)
    with pytest.raises(RuntimeError, match=r"ZeroDivisionError.*test_errors\.py"):
        DIVISIONS[name](numbers, divisors.to("lazy")).sum().item()
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        DIVISIONS[name](numbers, 0)
    assert DIVISIONS[name](numbers, divisors.to("lazy") + 1).tolist()[0] < 7


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int32])
@pytest.mark.parametrize("name", DIVISIONS)
def test_integers_divided_by_a_number_that_wraps_to_zero(
    name: str, dtype: torch.dtype
) -> None:
    divide, numbers = DIVISIONS[name], torch.tensor([7, 8], dtype=dtype)
    zero = 1 << (8 * dtype.itemsize)
    for divisor in (3, 5, zero + 3):  # the number is an argument of the program
        assert divide(numbers.to("lazy"), divisor).tolist() == (
            divide(numbers, divisor).tolist()
        )
    for divisor in (zero, 5 * zero, -zero):
        for device in ("cpu", "lazy"):
            with pytest.raises(RuntimeError, match="ZeroDivisionError"):
                divide(numbers.to(device), divisor)


def test_wrong_probabilities_are_an_error() -> None:
    known = torch.tensor([0.5, -1.0], device="lazy")
    with pytest.raises(RuntimeError, match=r"element < 0.*test_errors\.py"):
        torch.multinomial(known, 1)
    with pytest.raises(RuntimeError, match=r"out of range.*test_errors\.py"):
        torch.multinomial(known * 2, 1).item()


def test_data_pointer_is_rejected() -> None:
    with pytest.raises((RuntimeError, TypeError)):
        torch.ones(3, device="lazy").numpy()


def test_out_of_memory_is_an_exception() -> None:
    with pytest.raises(RuntimeError):
        torch.empty(1 << 60, device="lazy").fill_(1).sum().item()


def test_the_step_after_an_error_is_right() -> None:
    model = nn.Linear(3, 2).to("lazy")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with pytest.raises(RuntimeError):
        model(torch.ones(2, 4, device="lazy"))
    before = model.weight.detach().cpu()
    model(torch.ones(2, 3, device="lazy")).sum().backward()
    optimizer.step()
    assert_close(model.weight, before - 0.2)
    assert torch_ltc.metrics()["steps"] > 0


def test_a_mode_sees_storages() -> None:
    class Mode(TorchDispatchMode):
        def __torch_dispatch__(self, op, types, args=(), kwargs=None):
            sizes.append(args[0].untyped_storage().nbytes())
            return op(*args, **(kwargs or {}))

    sizes: list[int] = []
    x = torch.ones(3, device="lazy")
    with Mode():
        result = x.exp()
    assert sizes == [12]
    assert result.tolist() == torch.ones(3).exp().tolist()


def test_a_traced_value_has_no_storage() -> None:
    """The traced value that functionalization wraps has no storage, unlike the user's
    tensor."""
    x = torch.ones(3, device="lazy").exp()
    value = torch._from_functional_tensor(x)
    with pytest.raises(RuntimeError, match="has no storage") as caught:
        value.untyped_storage()
    assert ".to(" in message(caught)
    assert x.untyped_storage().nbytes() == 12


@pytest.mark.parametrize(
    "move",
    [
        lambda: torch.empty(3, device="meta").to("lazy"),
        lambda: torch.zeros(3, device="lazy").copy_(torch.empty(3, device="meta")),
        lambda: nn.Linear(3, 4, device="meta").to("lazy"),
    ],
)
def test_meta_tensors_have_nothing_to_copy(move) -> None:
    with pytest.raises(NotImplementedError, match="Cannot copy out of meta tensor"):
        move()


MIXED = {
    "elementwise": lambda a, b: a + b,
    "product": lambda a, b: a @ b,
    "list": lambda a, b: torch.cat([a, b]),
    "no row": lambda a, b: torch.linalg.solve(a, b),
}


@pytest.mark.parametrize("name", MIXED)
def test_tensors_of_two_devices(name: str) -> None:
    a, b = torch.eye(2, device="lazy"), torch.eye(2)
    with pytest.raises(
        RuntimeError, match="Expected all tensors to be on the same device"
    ):
        MIXED[name](a, b)
    with pytest.raises(
        RuntimeError, match="Expected all tensors to be on the same device"
    ):
        MIXED[name](b, a)
    assert (
        a + torch.tensor(1.0)
    ).sum().item() == 6  # CPU tensors of rank 0 are allowed


def _at(*values: int, device: str) -> torch.Tensor:
    return torch.tensor(values, device=device)


FAR = {
    "index": lambda d: torch.ones(4, device=d)[_at(9, device=d)],
    "index_put_": lambda d: torch.ones(4, device=d).index_put_((_at(9, device=d),), torch.ones(1, device=d)),
    "index_select": lambda d: torch.ones(4, device=d).index_select(0, _at(9, device=d)),
    "index_add": lambda d: torch.ones(4, device=d).index_add(0, _at(9, device=d), torch.ones(1, device=d)),
    "index_fill": lambda d: torch.ones(4, device=d).index_fill(0, _at(9, device=d), 1),
    "put_": lambda d: torch.ones(4, device=d).put_(_at(9, device=d), torch.ones(1, device=d)),
    "embedding": lambda d: torch.nn.functional.embedding(_at(9, device=d), torch.ones(3, 2, device=d)),
    "cross_entropy": lambda d: torch.nn.functional.cross_entropy(torch.ones(1, 3, device=d), _at(9, device=d)),
    "gather": lambda d: torch.ones(4, device=d).gather(0, _at(9, device=d)),
    "scatter": lambda d: torch.ones(4, device=d).scatter(0, _at(9, device=d), 1.0),
    "scatter_add": lambda d: torch.ones(4, device=d).scatter_add(0, _at(9, device=d), torch.ones(1, device=d)),
    "division": lambda d: _at(1, device=d) // _at(0, device=d),
}  # fmt: skip


@pytest.mark.parametrize("tier", ["compile", "interpret"])
@pytest.mark.parametrize("name", FAR)
def test_errors_of_values_are_of_eagers_class(name: str, tier: str) -> None:
    """An error that depends on values is raised when a result is read, with the class of
    eager's error and its message about the index."""
    with pytest.raises((IndexError, RuntimeError)) as eager:
        FAR[name]("cpu")
    with torch_ltc.config(tier=tier), pytest.raises(type(eager.value)) as lazy:
        FAR[name]("lazy").cpu()
    assert type(lazy.value) is type(eager.value)
    words = str(eager.value).partition(" for dimension")[0].rpartition(": ")[2]
    assert words in str(lazy.value)
    assert (torch.ones(2, device="lazy") + 1).tolist() == [2.0, 2.0]
