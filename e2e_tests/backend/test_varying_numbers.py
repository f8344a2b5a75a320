"""Numbers that vary between steps and determine no sizes (starts of slices, indices) are
dynamic scalars of one program: values equal eager's, and nothing is compiled for another
value."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import torch
import torch_ltc
from comparison import assert_close
from counting import counting
from subprocesses import run_python
from torch import nn
from torch_ltc._backend import bindings

NUM_STEPS = 32
#: The maximum number of programs that a loop needs: one with constants, one with dynamic
#: scalars, and more if the live tensors of the first steps differ from those of later
#: steps.
MOST_PROGRAMS = 4

Loop = Callable[[str], list[torch.Tensor]]


@pytest.fixture(autouse=True, params=["compile", "auto"])
def tier(request: pytest.FixtureRequest) -> Iterator[str]:
    """Each test starts without varying numbers and cached traces of other tests."""
    torch_ltc.mark_step()
    with torch_ltc.config(reuse_traces=False, varying_numbers="off"):
        (torch.ones(1, device="lazy") + 1).cpu()
    bindings().clear_program_cache()
    with torch_ltc.config(tier=request.param, cache=False):
        yield request.param


def programs_of(loop: Callable[[], object]) -> int:
    """Returns how often the loop needed a program that wasn't in memory."""
    with counting() as counts:
        loop()
        torch_ltc.wait_device_ops()
    return counts.executions - counts.program_memory_hits


def check(loop: Loop, most: int = MOST_PROGRAMS) -> None:
    results: list[torch.Tensor] = []
    programs = programs_of(lambda: results.extend(t.cpu() for t in loop("lazy")))
    expected = loop("cpu")
    assert len(results) == len(expected)
    for number, (ours, eagers) in enumerate(zip(results, expected)):
        assert_close(ours, eagers, what=f"result {number}")
        assert ours.dtype == eagers.dtype and ours.stride() == eagers.stride()
    assert programs <= most


def stepwise(body: Callable[[int, torch.Tensor], torch.Tensor], *sizes: int) -> Loop:
    """Returns a loop that calls `body` in each step on a tensor of these sizes."""

    def loop(device: str) -> list[torch.Tensor]:
        count = torch.Size(sizes).numel()
        x = torch.arange(float(count)).reshape(sizes).to(device)
        results = []
        for step in range(NUM_STEPS):
            results.append(body(step, x))
            if device == "lazy":
                torch_ltc.mark_step()
        return results

    return loop


READS = {
    "slice": lambda i, x: x[i : i + 5] * 2,
    "slice alone": lambda i, x: x[i : i + 5].clone(),
    "slice of columns": lambda i, x: x[:, i % 11 : i % 11 + 3].sum(0),
    "slice with a step": lambda i, x: x[i : i + 8 : 3] + 1,
    "negative start": lambda i, x: x[-40 + i : -36 + i] + 1,
    "clamped start": lambda i, x: x[-100 + i : 6] + 1,
    "narrow": lambda i, x: x.narrow(0, i, 7).mean(1),
    "select": lambda i, x: x[i] + 1,
    "select alone": lambda i, x: x[i].clone(),
    "select a column": lambda i, x: x[:, i % 13] + 1,
    "select from the end": lambda i, x: x[-1 - i] + 1,
    "element": lambda i, x: x[i, i % 13] + 1,
    "two slices": lambda i, x: x[i : i + 3] @ x[NUM_STEPS - i : NUM_STEPS - i + 3].T,
    "product of a slice": lambda i, x: x[i : i + 3] @ x[:4].T,
    "slice of a sum": lambda i, x: (x + 1)[i : i + 5] - x[:5],
    "slice of a slice": lambda i, x: (
        x[i:][:30][i % 3 : i % 3 + 4] + 1 if i < 10 else x[3:7] * i
    ),
    "cat of slices": lambda i, x: torch.cat([x[i : i + 2], x[2:4]]),
}


@pytest.mark.parametrize("name", READS)
def test_a_read_at_another_place_is_the_same_program(name: str) -> None:
    most = 12 if name == "slice of a slice" else MOST_PROGRAMS
    check(stepwise(READS[name], 41 + 30, 13), most)


def written(write: Callable[[int, torch.Tensor], None]) -> Loop:
    def loop(device: str) -> list[torch.Tensor]:
        buffer = torch.zeros(NUM_STEPS + 8, 6, device=device)
        results = []
        for step in range(NUM_STEPS):
            write(step, buffer)
            if device == "lazy":
                torch_ltc.mark_step()
            if step % 8 == 7:
                results.append(buffer.clone())
        return [*results, buffer]

    return loop


def filled(i: int, x: torch.Tensor) -> torch.Tensor:
    """Reads parts of constant tensors, which are never materialized."""
    ones = torch.ones(40, 13, device=x.device)
    fill = torch.full((3, 40), 0.5, device=x.device)
    zeros = torch.zeros(40, 3, device=x.device).T.reshape(40, 3)
    same = fill[:, i : i + 4].sum() + zeros[i : i + 2].sum() + ones.flip(0)[i, 3]
    return ones[i : i + 5] * x[:5] + same + fill.roll(i, 1)[1, 2]


READS["slices of fills"] = filled

WRITES: dict[str, Callable[[int, torch.Tensor], object]] = {
    "number": lambda i, b: b[i].fill_(1.5 + i),
    "row": lambda i, b: b[i].copy_(torch.arange(6.0).to(b.device) + i),
    "slice": lambda i, b: b[i : i + 3].add_(i + 1.0),
    "column": lambda i, b: b[:, i % 6].mul_(0.5).add_(1.0),
    "element": lambda i, b: b.__setitem__((i, i % 6), float(i)),
    "from the end": lambda i, b: b[-1 - i].sub_(1.0),
    "row of another row": lambda i, b: b[i + 1].copy_(b[i] + 1),
    "other dtype": lambda i, b: b[i].copy_(torch.arange(6).to(b.device)),
}


@pytest.mark.parametrize("name", WRITES)
def test_a_write_at_another_place_is_the_same_program(name: str) -> None:
    # The copies that `written` makes need programs in addition to those of the steps.
    check(written(WRITES[name]), MOST_PROGRAMS + 2)


@pytest.mark.parametrize(
    "dtype", [torch.float64, torch.bfloat16, torch.int64, torch.uint8, torch.bool]
)
def test_all_dtypes_are_read_and_written(dtype: torch.dtype) -> None:
    def loop(device: str) -> list[torch.Tensor]:
        x = (torch.arange(40 * 3) % 7).reshape(40, 3).to(dtype).to(device)
        results = []
        for i in range(NUM_STEPS):
            y = x.clone()
            y[i : i + 2] = x[i + 3 : i + 5]
            y[i + 1, 1] = x[NUM_STEPS - i, 2]
            results.append(y)
            if device == "lazy":
                torch_ltc.mark_step()
        return results

    check(loop)


def test_gradients_of_a_moving_slice() -> None:
    def loop(device: str) -> list[torch.Tensor]:
        torch.manual_seed(0)
        weight = torch.randn(50, 4).to(device).requires_grad_()
        results = []
        for i in range(NUM_STEPS):
            loss = (weight[i : i + 6].tanh() * weight[i + 1]).sum() + weight[3, i % 4]
            (gradient,) = torch.autograd.grad(loss, weight)
            results.append(gradient)
            if device == "lazy":
                torch_ltc.mark_step()
        return results

    check(loop)


def test_a_language_model_on_a_corpus_on_the_device() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding = nn.Embedding(20, 8)
            self.lstm = nn.LSTM(8, 8)
            self.out = nn.Linear(8, 20)

        def forward(self, ids: torch.Tensor) -> torch.Tensor:
            return self.out(self.lstm(self.embedding(ids))[0])

    def loop(device: str) -> list[torch.Tensor]:
        torch.manual_seed(0)
        model = Model().to(device)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        corpus = torch.randint(0, 20, (200, 3)).to(device)
        losses = []
        for i in range(NUM_STEPS):
            logits = model(corpus[5 * i : 5 * i + 5])
            target = corpus[5 * i + 1 : 5 * i + 6].reshape(-1)
            loss = nn.functional.cross_entropy(logits.flatten(0, 1), target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
        return losses

    check(loop)


def test_an_index_out_of_range_is_eagers_error() -> None:
    x = torch.arange(12.0, device="lazy").reshape(4, 3)
    for i in range(4):
        assert x[i].cpu().tolist() == [3 * i, 3 * i + 1, 3 * i + 2]
    with pytest.raises(IndexError) as ours:
        x[4].cpu()
    with pytest.raises(IndexError) as eagers:
        x.cpu()[4]
    assert str(eagers.value) in str(ours.value)


def test_the_last_batch_is_shorter() -> None:
    def loop(device: str) -> list[torch.Tensor]:
        x = torch.arange(100.0).to(device)
        results = []
        for _ in range(2):
            for i in range(0, 100, 7):
                results.append(x[i : i + 7] * 2)
                if device == "lazy":
                    torch_ltc.mark_step()
        return results

    check(loop)


def test_numbers_that_stay_are_constants(tier: str) -> None:
    x = torch.arange(60.0, device="lazy").reshape(10, 6)
    torch_ltc.mark_step()

    def steps() -> None:
        for i in range(6):
            y = x[i] + x[:, 2:4].sum()
            torch_ltc.mark_step(wait=True)
            assert y.cpu()[0] == 6 * i + sum(12 * n + 5 for n in range(10))

    assert programs_of(steps) == 2
    if tier == "compile":
        text = torch_ltc.debug.dump(-1, "torch")
        assert "%int2" in text and "torch.aten.select.int" in text


def test_a_loop_in_one_step_moves_nothing() -> None:
    x = torch.arange(60.0, device="lazy").reshape(10, 6)
    torch_ltc.mark_step()

    def steps() -> None:
        for _ in range(4):
            keep = sum(x[i] for i in range(10))
            torch_ltc.mark_step()
            assert keep.cpu()[0] == 270

    assert programs_of(steps) == 1


def test_option_off_compiles_for_each_number(tier: str) -> None:
    x = torch.arange(60.0, device="lazy").reshape(10, 6)
    torch_ltc.mark_step()

    def steps() -> None:
        for i in range(5):
            keep = x[i] + 1  # noqa: F841
            torch_ltc.mark_step()

    with torch_ltc.config(varying_numbers="off"):
        assert programs_of(steps) == 5


def test_steps_with_other_numbers_follow_the_trace() -> None:
    x = torch.arange(60.0, device="lazy").reshape(10, 6)
    torch_ltc.mark_step()
    for i in range(3):
        keep = (x[i] + 1) * 2
        torch_ltc.mark_step()
    with counting() as counts:
        keep = (x[7] + 1) * 2
        torch_ltc.mark_step()
    assert counts.traced_ops == counts.reused_ops > 0
    assert keep.cpu()[0] == 86


def test_repeated_values_come_back_to_the_same_programs() -> None:
    """Steps whose index returns to earlier values need no more than two programs."""
    x = torch.arange(60.0, device="lazy").reshape(10, 6)
    torch_ltc.mark_step()

    def steps() -> None:
        for i in (0, 0, 1, 0, 2, 0, 1, 5):
            y = x[i] * 3
            torch_ltc.mark_step()
            assert y.cpu()[0] == 18 * i

    assert programs_of(steps) == 2


def test_captured_steps_have_their_numbers_as_constants(tier: str) -> None:
    """A captured step is only replayed for the number with which it was traced."""
    weight = torch.zeros(6, device="lazy")
    rows = torch.arange(60.0, device="lazy").reshape(10, 6)

    @torch_ltc.capture(check_every=3)
    def step(i: int) -> torch.Tensor:
        weight.add_(rows[i])
        return rows[i + 1] * 2

    total = torch.zeros(6)
    for i in [0] * 8 + [1, 2, 3, 4] + [0] * 8:
        result = step(i)
        total += rows.cpu()[i]
        assert result.cpu()[0] == 12 * (i + 1)
    assert torch.equal(weight.cpu(), total)
    assert step.replays > 0


def test_the_compile_log_names_what_varies(tier: str) -> None:
    x = torch.arange(60.0, device="lazy").reshape(10, 6)
    torch_ltc.mark_step()
    torch_ltc.reset_metrics()  # the log keeps a limited number of entries
    for i in range(3):
        keep = x[i : i + 4].sum()  # noqa: F841
        torch_ltc.mark_step(wait=True)
    varying = [e["varying"] for e in torch_ltc.compile_log() if e["varying"]]
    assert varying, torch_ltc.compile_log()
    assert [text.split(" ")[:3] for text in varying[0]] == [
        ["start", "of", "aten::slice_copy.Tensor"],
        ["end", "of", "aten::slice_copy.Tensor"],
    ]
    assert all("test_varying_numbers.py:" in text for text in varying[0])


def test_a_process_that_sets_no_option(tier: str) -> None:
    program = """
        import torch, torch_ltc
        corpus = torch.arange(1000.0).to("lazy")
        for step in range(20):
            (corpus[step : step + 20] * 2).sum().item()
        counts = torch_ltc.metrics()
        print(counts["executions"] - counts["program_memory_hits"])
    """
    result = run_python(program, TORCH_LTC_TIER=tier, TORCH_LTC_CACHE="0")
    assert int(result.stdout) <= MOST_PROGRAMS
