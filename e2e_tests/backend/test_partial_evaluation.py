"""A failed op only invalidates the results that depend on it; the other results of its
step have values."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import pytest
import torch
import torch_ltc
from comparison import assert_close

MANY = 5000  # more than 4096: smaller calls are checked while they are traced


def wrong_index(x: torch.Tensor) -> torch.Tensor:
    return x[torch.tensor([7]).to("lazy")]


def division_by_zero(x: torch.Tensor) -> torch.Tensor:
    ones = torch.ones(MANY, dtype=torch.uint8, device="lazy")
    return torch.fmod(ones, torch.zeros(MANY, dtype=torch.bool, device="lazy"))


def wrong_target(x: torch.Tensor) -> torch.Tensor:
    target = torch.tensor([1, 5, 0]).to("lazy")
    return torch.nn.functional.nll_loss(x, target)


FAILING = [wrong_index, division_by_zero, wrong_target]


@pytest.fixture(params=["interpret", "compile"], autouse=True)
def tier(request: pytest.FixtureRequest):
    with torch_ltc.config(tier=request.param):
        yield request.param
        torch_ltc.mark_step()
        with contextlib.suppress(RuntimeError, IndexError):
            torch_ltc.wait_device_ops()


@pytest.mark.parametrize("fail", FAILING, ids=lambda fail: fail.__name__)
def test_results_that_do_not_depend_on_it_have_values(fail: Callable) -> None:
    x = torch.arange(9.0).reshape(3, 3).to("lazy")
    torch_ltc.mark_step()
    before = x * 2
    failed = fail(x)
    after = before + 5
    derived = failed.float() * 2
    torch_ltc.mark_step()
    for _ in range(2):
        for value in (failed, derived):
            with pytest.raises((RuntimeError, IndexError), match="failed while it ran"):
                value.cpu()
        assert torch.equal(before.cpu(), torch.arange(9.0).reshape(3, 3) * 2)
        assert torch.equal(after.cpu(), torch.arange(9.0).reshape(3, 3) * 2 + 5)
        assert torch.equal(x.cpu(), torch.arange(9.0).reshape(3, 3))


@pytest.mark.parametrize("fail", FAILING, ids=lambda fail: fail.__name__)
def test_writes_of_other_tensors_are_made(fail: Callable) -> None:
    x = torch.arange(9.0).reshape(3, 3).to("lazy")
    weight = torch.ones(3).to("lazy")
    torch_ltc.mark_step()
    weight.add_(1)
    failed = fail(x)
    weight.mul_(3)
    torch_ltc.mark_step()
    assert weight.tolist() == [6.0] * 3
    # The next step sees the writes. Its results that depend on the failed op have no
    # values.
    both = (weight + 1, failed.float().sum() + weight)
    weight.add_(4)
    torch_ltc.mark_step()
    assert both[0].tolist() == [7.0] * 3
    with pytest.raises((RuntimeError, IndexError), match="failed while it ran"):
        both[1].cpu()
    assert weight.tolist() == [10.0] * 3


def test_without_memory_for_one_result() -> None:
    """The updates before the op that gets no memory are kept."""
    weight = torch.ones(3).to("lazy")
    torch_ltc.mark_step(wait=True)
    weight = weight + 1
    weight.mul_(3)
    large = torch.ones(1 << 42, device="lazy").cumsum(0)
    with pytest.raises(RuntimeError, match="allocate"):
        large[5].item()
    assert weight.tolist() == [6.0] * 3


def through_a_slice(x: torch.Tensor, wrong: torch.Tensor) -> None:
    x[1:][wrong] = 1


def through_several_views(x: torch.Tensor, wrong: torch.Tensor) -> None:
    x.view(1, -1).t()[2:][wrong] = 1


def through_a_transposed_square(x: torch.Tensor, wrong: torch.Tensor) -> None:
    x.view(3, 3).t()[wrong] = 1


def after_a_write(x: torch.Tensor, wrong: torch.Tensor) -> None:
    view = x[1:]
    view.mul_(2)
    view[wrong] = 1


def before_a_write(x: torch.Tensor, wrong: torch.Tensor) -> None:
    x[wrong] = 1
    x.add_(1)


WRITES = [
    through_a_slice,
    through_several_views,
    through_a_transposed_square,
    after_a_write,
    before_a_write,
]


@pytest.mark.parametrize("is_new", [False, True])
@pytest.mark.parametrize("write", WRITES, ids=lambda write: write.__name__)
def test_a_failed_write_leaves_the_value(write: Callable, is_new: bool) -> None:
    """The tensor keeps the value that it had before the failed write. `is_new`: whether the
    step whose write fails also computes the tensor."""
    expected = torch.arange(9.0) * 2
    with pytest.raises(IndexError):
        write(expected, torch.tensor([99]))
    x = torch.arange(9.0).to("lazy") * 2
    if not is_new:
        torch_ltc.mark_step()
    write(x, torch.tensor([99]).to("lazy"))
    torch_ltc.mark_step()
    with pytest.raises(IndexError):
        x.cpu()
    assert torch.equal(x.cpu(), expected)
    assert torch.equal((x + 1).cpu(), expected + 1)


def test_an_only_failure_names_its_command(tier: str) -> None:
    quotient = division_by_zero(torch.ones(1))
    torch_ltc.mark_step()
    with pytest.raises(RuntimeError, match="aten::fmod") as caught:
        quotient.cpu()
    assert ("Command " in str(caught.value)) == (tier == "compile")


def test_each_of_two_failures_is_its_own() -> None:
    x = torch.arange(9.0).reshape(3, 3).to("lazy")
    torch_ltc.mark_step()
    picked = wrong_index(x)
    quotient = division_by_zero(x)
    total = x.sum()
    torch_ltc.mark_step()
    with pytest.raises(IndexError, match="aten::index"):
        picked.cpu()
    with pytest.raises(RuntimeError, match="aten::fmod"):
        quotient.cpu()
    assert total.item() == 36


def test_a_tensor_written_with_it_keeps_its_value() -> None:
    x = torch.ones(4, 2).to("lazy")
    other = torch.ones(3).to("lazy")
    torch_ltc.mark_step()
    x.add_(x[torch.tensor([9]).to("lazy")])
    other.mul_(2)
    torch_ltc.mark_step()
    assert other.tolist() == [2.0] * 3
    with pytest.raises(IndexError, match="It was detected when"):
        x.cpu()
    assert torch.equal(x.cpu(), torch.ones(4, 2))


@pytest.mark.parametrize("cause", ["input", "target"])
def test_training_goes_on_after_a_rejected_batch(cause: str) -> None:
    """The check follows a matrix product, and the kernel that computes its operand also
    computes the new bias. No parameter may be overwritten before the check."""

    def losses(device: str) -> list:
        torch.manual_seed(0)
        model = torch.nn.Linear(4, 3).to(device)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        x, y = torch.rand(5, 4).to(device), torch.rand(5, 3).to(device)
        results: list = []
        for factors in ((1, 1), (1, 1), (1e3, 1), (1, 1)):
            of_input, of_target = factors if cause == "input" else reversed(factors)
            optimizer.zero_grad()
            try:
                p = model(x).sigmoid() * of_input
                loss = torch.nn.functional.binary_cross_entropy(p, y * of_target)
                loss.backward()
                optimizer.step()
                results.append(loss.item())
            except RuntimeError as error:
                results.append(str(error))
        return results

    lazy, eager = losses("lazy"), losses("cpu")
    assert eager[2] in lazy[2]
    assert_close(lazy[:2], eager[:2], rtol=1e-5, atol=0)
    assert isinstance(lazy[3], float)
