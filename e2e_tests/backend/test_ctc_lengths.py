"""The lengths of a CTC loss may be lists, or tensors on either device. In each form, a
program that uses them has them as inputs, not as constants."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
import torch_ltc
from comparison import assert_close
from counting import counting

BATCH, TIME, CLASSES, LONGEST = 4, 12, 6, 7
INPUTS, TARGETS = [12, 11, 12, 9], [3, 5, 0, 2]


def _loss(device, lengths_on, in_one_row, **options):
    generator = torch.Generator().manual_seed(3)
    scores = torch.randn(TIME, BATCH, CLASSES, generator=generator)
    rows = torch.randint(1, CLASSES, (BATCH, LONGEST), generator=generator)
    if in_one_row:
        rows = torch.cat([row[:n] for row, n in zip(rows, TARGETS)])
    lengths = INPUTS, TARGETS
    if lengths_on != "list":
        place = device if lengths_on == "device" else "cpu"
        lengths = [torch.tensor(numbers, device=place) for numbers in lengths]
    x = scores.to(device).requires_grad_()
    loss = F.ctc_loss(x.log_softmax(2), rows.to(device), *lengths, **options)
    loss.sum().backward()
    return loss.detach().cpu(), x.grad.cpu()


@pytest.mark.parametrize("in_one_row", [False, True])
@pytest.mark.parametrize("lengths_on", ["list", "cpu", "device"])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("zero_infinity", [False, True])
def test_lengths(lengths_on, in_one_row, reduction, zero_infinity) -> None:
    options = dict(reduction=reduction, zero_infinity=zero_infinity)
    form = lengths_on, in_one_row
    with counting() as counts:
        result = _loss("lazy", *form, **options)
    assert_close(result, _loss("cpu", *form, **options))
    assert counts.fallback_calls == 0


def test_lengths_that_are_counted_on_the_device() -> None:
    """As models of transformers count them; the step isn't cut."""

    def step(device: str) -> torch.Tensor:
        torch.manual_seed(1)
        layer = torch.nn.Linear(3, CLASSES).to(device)
        labels = torch.randint(1, CLASSES, (BATCH, LONGEST))
        labels = labels.masked_fill(
            torch.arange(LONGEST) > torch.arange(BATCH)[:, None], -100
        )
        labels, x = labels.to(device), torch.randn(TIME, BATCH, 3).to(device)
        mask = labels >= 0
        loss = F.ctc_loss(
            layer(x).log_softmax(2),
            labels.masked_select(mask),
            torch.full((BATCH,), TIME, device=device),
            mask.sum(-1),
        )
        loss.backward()
        return layer.weight.grad

    with counting() as counts:
        result = step("lazy")
        torch_ltc.mark_step()
    assert_close(result, step("cpu"))
    assert (counts.fallback_calls, counts.steps) == (0, 1)


def test_an_unbatched_loss() -> None:
    results = []
    for device in ("cpu", "lazy"):
        x = torch.linspace(-2, 2, TIME * CLASSES).reshape(TIME, CLASSES)
        x = x.to(device).requires_grad_()
        targets = torch.tensor([1, 2, 3], device=device)
        lengths = torch.tensor(TIME), torch.tensor(3)
        loss = F.ctc_loss(x.log_softmax(1), targets, *lengths)
        loss.backward()
        results.append((loss.detach().cpu(), x.grad.cpu()))
    assert_close(results[1], results[0])


@pytest.mark.parametrize("form", [list, torch.tensor])
def test_other_lengths_run_the_same_program(form) -> None:
    x = torch.randn(TIME, BATCH, CLASSES, device="lazy", requires_grad=True)
    rows = torch.randint(1, CLASSES, (BATCH, LONGEST)).to("lazy")

    def step(number: int) -> None:
        targets = [3, 5 - number, number, 2]
        lengths = form([12, 11, 12, 9 - number]), form(targets)
        F.ctc_loss(x.log_softmax(2), rows, *lengths).backward()
        torch_ltc.mark_step()

    for number in range(2):
        step(number)
    with counting() as counts:
        for number in range(4):
            step(number)
    assert (counts.compilations, counts.fallback_calls) == (0, 0)
    assert counts.implicit_syncs == 0


def test_a_length_that_is_too_long_raises_when_it_is_read() -> None:
    scores = torch.randn(TIME, BATCH, CLASSES, device="lazy").log_softmax(2)
    rows = torch.ones(BATCH, LONGEST, dtype=torch.int64, device="lazy")
    loss = F.ctc_loss(scores, rows, [TIME] * BATCH, [1, 1, LONGEST + 1, 1])
    with pytest.raises(RuntimeError, match=r"at least 8 at dimension 1.*ctc_loss"):
        loss.item()


REJECTED = {
    "dtype": lambda x, rows: F.ctc_loss(x.bfloat16(), rows, INPUTS, TARGETS),
    "dtype of lengths": lambda x, rows: F.ctc_loss(
        x, rows, torch.tensor(INPUTS).float(), torch.tensor(TARGETS).float()
    ),
    "blank": lambda x, rows: F.ctc_loss(x, rows, INPUTS, TARGETS, blank=CLASSES),
    "negative blank": lambda x, rows: F.ctc_loss(x, rows, INPUTS, TARGETS, blank=-1),
    "number of lengths": lambda x, rows: F.ctc_loss(x, rows, INPUTS[:3], TARGETS[:3]),
    "rank of targets": lambda x, rows: F.ctc_loss(x, rows[..., None], INPUTS, TARGETS),
    "number of targets": lambda x, rows: F.ctc_loss(x, rows[:3], INPUTS, TARGETS),
}


@pytest.mark.parametrize("name", REJECTED)
def test_what_no_value_allows_raises_at_the_call(name: str) -> None:
    messages = []
    for device in ("cpu", "lazy"):
        x = torch.zeros(TIME, BATCH, CLASSES, device=device).log_softmax(2)
        rows = torch.ones(BATCH, LONGEST, dtype=torch.int64, device=device)
        with pytest.raises(RuntimeError) as error:
            REJECTED[name](x, rows)
        messages.append(str(error.value))
    assert messages[0].splitlines()[0] in messages[1]
