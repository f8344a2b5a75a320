"""Ops that match the cached trace of an earlier step reuse its nodes; values, programs and
errors are the same as without reuse (test_trace_cache_programs.py: of random programs)."""

from __future__ import annotations

import contextlib
import gc
import threading
from collections.abc import Callable, Iterator

import pytest
import torch
import torch_ltc
from comparison import assert_close
from counting import Counts, counting
from torch import nn
from torch_ltc import debug


@pytest.fixture(autouse=True)
def nothing_known() -> Iterator[None]:
    """Each test starts without cached traces of other tests."""
    torch_ltc.mark_step()
    with torch_ltc.config(reuse_traces=False):
        (torch.ones(1, device="lazy") + 1).cpu()
    yield


def counted(step: Callable[[], object]) -> Counts:
    with counting() as counts:
        step()
        torch_ltc.mark_step()
    return counts


def kept(step: Callable[[], torch.Tensor]) -> tuple[torch.Tensor, Counts]:
    results: list[torch.Tensor] = []
    counts = counted(lambda: results.append(step()))
    return results[0], counts


def assert_all_reused(counts: Counts) -> None:
    assert counts.traced_ops == counts.reused_ops > 0
    assert counts.program_memory_hits == counts.executions


class Training:
    """A network with dropout and batch norm, and a batch for each step."""

    def __init__(self, device: str) -> None:
        torch.manual_seed(7)
        layers = [nn.Linear(6, 12), nn.GELU(), nn.BatchNorm1d(12), nn.Dropout(0.3)]
        self.model = nn.Sequential(*layers, nn.Linear(12, 3)).to(device)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-2)
        self.device, self.number = device, 0

    def step(self, middle: Callable[[torch.Tensor], object] = lambda loss: None):
        torch.manual_seed(self.number)
        self.number += 1
        inputs, target = torch.randn(5, 6), torch.randint(3, (5,))
        self.optimizer.zero_grad()
        output = self.model(inputs.to(self.device))
        loss = nn.functional.cross_entropy(output, target.to(self.device))
        middle(loss)
        loss.backward()
        self.optimizer.step()
        return loss.detach()


def train(device: str, steps: int, **options) -> list[torch.Tensor]:
    training = Training(device)
    losses = [training.step(**options).cpu() for _ in range(steps)]
    return [*losses, *(p.detach().cpu() for p in training.model.parameters())]


def test_a_steady_loop_reuses_all_from_the_third_step_on() -> None:
    training = Training("lazy")
    counts = [counted(training.step) for _ in range(6)]
    assert counts[0].reused_ops == 0
    assert 0 < counts[1].reused_ops < counts[1].traced_ops
    for later in counts[2:]:
        assert_all_reused(later)
        assert later.donated_buffers == counts[1].donated_buffers > 0


def test_values_are_those_without_and_eagers() -> None:
    got = train("lazy", 8)
    with torch_ltc.config(reuse_traces=False), counting() as counts:
        without = train("lazy", 8)
    assert counts.reused_ops == 0 < counts.traced_ops
    for a, b, c in zip(got, without, train("cpu", 8)):
        assert torch.equal(a, b)
        assert_close(a, c)


def test_programs_are_those_without() -> None:
    def programs() -> list[str]:
        with counting() as counts:
            train("lazy", 4)
        events = torch_ltc.step_log()[-counts.executions :]
        return [event["program"] for event in events]

    reused = programs()
    assert len(reused) >= 4
    with torch_ltc.config(reuse_traces=False):
        assert programs() == reused


def test_a_step_that_differs_in_the_middle_reuses_what_comes_before() -> None:
    x = torch.randn(4).to("lazy")
    cpu = x.cpu()

    def step(extra: bool) -> torch.Tensor:
        y = (x * 2).exp()
        if extra:
            y = y + 1
        return (y.sin() - x).sum()

    results = []
    for _ in range(3):
        counts = counted(lambda: results.append(step(False)))
    assert_all_reused(counts)
    counts = counted(lambda: results.append(step(True)))
    assert (counts.traced_ops, counts.reused_ops) == (6, 2)
    # Both traces are cached now, and may come in any order.
    for extra in (False, True, True, False):
        assert_all_reused(counted(lambda e=extra: results.append(step(e))))
    y = (cpu * 2).exp()
    for extra, result in zip("   x xx ", results):
        wanted = ((y + (extra == "x")).sin() - cpu).sum()
        assert_close(result, wanted)


def test_a_loop_that_settles_is_reused_after_many_different_steps() -> None:
    """Most of many different traces aren't cached, because caching takes time; the trace
    of a loop that repeats afterwards is cached."""

    def step(size: int) -> None:
        x = torch.ones(size, device="lazy")
        for _ in range(5):
            x = (x * x).tanh()
        x.sum().item()

    for size in range(40):
        step(size + 1)
    counts = [counted(lambda: step(7)) for _ in range(12)]
    assert [c.reused_ops for c in counts[-3:]] == [c.traced_ops for c in counts[-3:]]


def test_changed_numbers_are_reused() -> None:
    x = torch.randn(4).to("lazy")
    for number in range(5):
        factor, result = 0.3 + number, []
        counts = counted(lambda f=factor, r=result: r.append((x * f + 2 * f).sum()))
        assert_close(result[0], (x.cpu() * factor + 2 * factor).sum())
    assert_all_reused(counts)


A, B = torch.arange(6.0).reshape(2, 3), torch.arange(6.0).reshape(2, 3) - 2


@pytest.mark.parametrize(
    "usual, other",
    [
        (lambda a, b: (a + b) * a, lambda a, b: (b + a) * a),  # operands exchanged
        (lambda a, b: (a - b) * a, lambda a, b: (a - b) * (a - b)),
        (lambda a, b: a.sum(0) * b, lambda a, b: a.sum(1).view(2, 1) * b),
        (lambda a, b: a.exp() + b, lambda a, b: a.exp() + b[:1]),
        (lambda a, b: a.double() + b, lambda a, b: a.int() + b),
        (lambda a, b: a / 3 + b, lambda a, b: a.int() / 3 + b),
        (lambda a, b: a.pow(2) + b, lambda a, b: a.pow(3) + b),
        (lambda a, b: a.exp().add_(b), lambda a, b: a.exp() + b),
        (lambda a, b: a * b, lambda a, b: a * a),  # the same data twice
        (lambda a, b: a * b + b, lambda a, b: a * b + a),
        (lambda a, b: a * b.clone() + b, lambda a, b: a * a.clone() + a),
        (lambda a, b: (a.exp(), b.exp()), lambda a, b: (b.exp(), a.exp())),
        (lambda a, b: (a.exp(), (b * 2).exp())[1], lambda a, b: (b * 2).exp()),
        (lambda a, b: a.split(2, 1), lambda a, b: a.split(1, 1)),
        (lambda a, b: a.t() @ b, lambda a, b: a.t().contiguous() @ b),
    ],
)
def test_what_differs_is_right(usual: Callable, other: Callable) -> None:
    a, b = A.to("lazy"), B.to("lazy")
    functions = [usual, usual, usual, other, usual, other, other, usual]
    for function in functions:
        results: list = []
        counted(lambda f=function, r=results: r.append(f(a, b)))
        wanted = function(A.clone(), B.clone())
        got = results[0]
        several = isinstance(wanted, tuple)
        for x, y in zip(got if several else [got], wanted if several else [wanted]):
            assert x.dtype == y.dtype and x.stride() == y.stride()
            assert_close(x, y)


@pytest.mark.parametrize(
    "changed",
    [
        A[:1],  # another shape
        A.double(),
        A.reshape(3, 2),
    ],
)
def test_other_shapes_and_dtypes_are_not_reused(changed: torch.Tensor) -> None:
    reused = []
    for value in (A, A, A, changed, A, changed):
        result, counts = kept(lambda v=value: (v.to("lazy").exp() * 3).sum(0))
        assert_close(result, (value.exp() * 3).sum(0))
        reused.append(counts.reused_ops)
    assert reused == [0, 3, 3, 0, 3, 3]


def test_the_default_dtype_is_looked_at() -> None:
    x = torch.arange(4).to("lazy")
    try:
        for dtype in (torch.float32, torch.float32, torch.float64, torch.float32):
            torch.set_default_dtype(dtype)
            y = x / 2
            assert y.dtype == dtype
            assert_close(y, torch.arange(4) / 2)
    finally:
        torch.set_default_dtype(torch.float32)


def test_a_tensor_of_an_earlier_step() -> None:
    kept: list[torch.Tensor] = []
    wanted: list[torch.Tensor] = []
    for number in range(6):
        x = torch.full((3,), float(number))
        y, z = x.to("lazy") + 1, x + 1
        if number % 3:
            y, z = y * kept[-1], z * wanted[-1]
        kept.append(y.exp().clamp(max=9))
        wanted.append(z.exp().clamp(max=9))
        torch_ltc.mark_step()
    assert_close(kept, wanted)


@pytest.mark.parametrize("middle", ["item", "fallback", "sync"])
def test_reads_in_the_middle(middle: str) -> None:
    def read(loss: torch.Tensor) -> None:
        if middle == "item":
            loss.item()
        elif middle == "sync":
            if loss.device.type == "lazy":
                torch_ltc.sync([loss])
        else:
            (loss + torch.arange(3, device=loss.device)).nonzero()

    training = Training("lazy")
    for _ in range(5):
        counts = counted(lambda: training.step(read))
    assert_all_reused(counts)
    assert_close(train("lazy", 5, middle=read), train("cpu", 5, middle=read))


def test_an_exception_in_the_middle() -> None:
    x = torch.randn(3).to("lazy")
    whole = torch.arange(3).to("lazy")

    def step(other: torch.Tensor, divisor: int) -> torch.Tensor:
        y = x.exp()
        with contextlib.suppress(RuntimeError):
            y = y + other
        try:
            return y * (whole // divisor)
        except RuntimeError:
            return y * whole

    fitting, wrong = torch.ones(3), torch.ones(4)
    for other, divisor in [
        *[(fitting, 2)] * 3,
        (wrong, 3),
        (fitting, 0),
        (fitting, 2),
        (wrong, 0),
        (wrong, 3),
        (fitting, 2),
    ]:
        result = step(other.to("lazy"), divisor)
        wanted = x.cpu().exp() + (1 if other is fitting else 0)
        wanted = wanted * (torch.arange(3) // (divisor or 1))
        torch_ltc.mark_step()
        assert_close(result, wanted)
    counts = counted(lambda: step(fitting.to("lazy"), 5))
    assert_all_reused(counts)


def test_division_by_zero_is_reported_when_it_is_reused() -> None:
    x = torch.arange(3).to("lazy")
    for divisor in (2, 2, 2, 3):
        assert (x // divisor).tolist() == (torch.arange(3) // divisor).tolist()
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        x // 0


def test_a_change_of_forced_fallbacks() -> None:
    x = torch.randn(4).to("lazy")
    for forced in ("", "", "", "aten::exp", "aten::exp", "", "aten::sin"):
        with torch_ltc.config(force_fallback=forced), counting() as counts:
            y = (x.exp() * 2).sin()
        assert counts.fallback_calls == bool(forced)
        assert_close(y, (x.cpu().exp() * 2).sin())


def in_thread(function: Callable[[], None]) -> None:
    errors: list[BaseException] = []

    def work() -> None:
        try:
            function()
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert not errors, errors


def test_pending_tensors_of_two_threads() -> None:
    """Reuse doesn't change nodes that another thread's graph holds."""
    held: list[torch.Tensor] = []
    turns = [threading.Semaphore(0), threading.Semaphore(0)]
    wanted: list[torch.Tensor] = []
    shared: list[torch.Tensor] = []

    def reader() -> None:
        for number in range(8):
            turns[1].acquire()
            held.append(shared[-1] * 3)  # pending during the other thread's steps
            if number % 3 == 2:
                torch_ltc.mark_step()
            turns[0].release()
        torch_ltc.mark_step()

    thread = threading.Thread(target=reader)
    thread.start()
    for number in range(8):
        x = torch.full((3,), float(number))
        shared.append(x.to("lazy").exp() + number)
        turns[1].release()
        turns[0].acquire()
        wanted.append((x.exp() + number) * 3)
        torch_ltc.mark_step()
    thread.join()
    assert_close(held, wanted)


def test_each_thread_has_its_own() -> None:
    training = Training("lazy")
    for _ in range(3):
        training.step()

    def loop() -> None:
        own = Training("lazy")
        first, *_, last = [counted(own.step) for _ in range(4)]
        assert first.reused_ops == 0
        assert_all_reused(last)

    in_thread(loop)
    assert_all_reused(counted(training.step))


def test_a_thread_that_ends_leaves_its_tensors() -> None:
    x = torch.randn(3).to("lazy")
    left: list[torch.Tensor] = []
    for _ in range(4):
        in_thread(lambda: left.append(x.exp() + 1))
        left.append(x.exp() + 1)
    torch_ltc.mark_step()
    for tensor in left:
        assert_close(tensor, x.cpu().exp() + 1)


def test_lines_are_the_present_ones() -> None:
    x = torch.ones(3, device="lazy")
    with torch_ltc.config(source_info=True):
        for _ in range(3):
            first = debug.dump(x.exp() * 2, "ir")
            torch_ltc.mark_step()
            second = debug.dump(x.exp() * 2, "ir")
            torch_ltc.mark_step()
        with counting() as counts:
            third = debug.dump(x.exp() * 2, "ir")
            torch_ltc.mark_step()
    line = test_lines_are_the_present_ones.__code__.co_firstlineno
    for text, at in ((first, 4), (second, 6), (third, 9)):
        assert text.count(f"test_trace_cache.py:{line + at}") == 2, text
    assert counts.traced_ops == counts.reused_ops == 2
    assert "test_trace_cache" not in debug.dump(x.exp() * 2, "ir")


def test_dropped_values_are_let_go_at_once() -> None:
    def allocated() -> int:
        torch_ltc.wait_device_ops()
        gc.collect()
        return torch.lazy.memory_stats()["allocated_bytes"]

    def work() -> None:
        for _ in range(5):
            (torch.ones(1 << 18).to("lazy") + 1).sum()

    for _ in range(3):
        before = allocated()
        work()
        assert allocated() - before < 1 << 18
        torch_ltc.mark_step()


def test_traces_of_many_lengths() -> None:
    """Each trace has eager's values, and a repeated trace runs its cached program."""
    x = torch.randn(3).to("lazy")
    for length in [*range(1, 12), 11, 11]:
        y, wanted = x, x.cpu()
        for _ in range(length):
            y, wanted = y.sin() + length, wanted.sin() + length
        with counting() as counts:
            assert_close(y, wanted)
    assert counts.executions == counts.program_memory_hits == 1


@pytest.mark.parametrize(
    "options", [{"tier": "interpret"}, {"lockstep": True}, {"detect_nan": True}]
)
def test_other_ways_to_run(options: dict) -> None:
    train("lazy", 3)
    with torch_ltc.config(**options):
        got = train("lazy", 4)
    assert_close(got, train("cpu", 4))


@pytest.mark.compile_failures
def test_a_program_that_is_rejected_stays_pending() -> None:
    x = torch.randn(3).to("lazy")
    for _ in range(3):
        (x.exp() * 2).cpu()
    y = x.exp() * 2
    with torch_ltc.config(compile_failure="raise", force_compile_failure="aten::sin"):
        z = y.sin()
        for _ in range(2):
            with pytest.raises(RuntimeError, match="aten::sin"):
                torch_ltc.mark_step()
    again = [(x.exp() * 2).sin() + number for number in range(3)]
    torch_ltc.mark_step()
    for number, result in enumerate(again):
        assert_close(result, (x.cpu().exp() * 2).sin() + number)
    assert_close(z, (x.cpu().exp() * 2).sin())


def test_traces_of_many_sizes_are_cached() -> None:
    weight = torch.randn(4, 4, device="lazy")

    def epoch() -> None:
        for size in range(2, 42):
            (torch.ones(size, 4, device="lazy") @ weight).relu().sum().item()

    for _ in range(5):
        epoch()
    assert_all_reused(counted(epoch))
