"""If something that a captured step depends on changes between two calls, the results
equal eager's."""

from __future__ import annotations

import copy
import functools
import random
import re
import threading
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy
import pytest
import torch
import torch_ltc
from torch import nn
from torch.nn import functional as F

STEPS = 14
SCALE = 1.0
SETTINGS = SimpleNamespace(power=2)


class Run:
    """A model with its optimizer and batches, other objects that a step may refer to, and
    the losses."""

    def __init__(self, device: str, make: Callable[[Run], Any]) -> None:
        global SCALE
        SCALE, SETTINGS.power = 1.0, 2
        torch.manual_seed(0)
        random.seed(0)
        self.device = device
        self.model = nn.Sequential(
            nn.Linear(
                4, 8, bias=False
            ),  # before batch norm, a bias's gradient is noise
            nn.BatchNorm1d(8, momentum=0.2),
            nn.LeakyReLU(0.1),
            nn.Dropout(0.25),
            nn.Linear(8, 2),
        ).to(device)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-2)
        generator = torch.Generator().manual_seed(1)
        self.batches = [
            torch.randn(6, 4, generator=generator).to(device) for _ in range(STEPS)
        ]
        self.box: Any = None
        self.losses: list[torch.Tensor] = []
        self.handles: list[Any] = []
        function = make(self)
        self.call = torch_ltc.capture(function) if device == "lazy" else function
        torch.manual_seed(3)

    def loss(self, x: torch.Tensor) -> torch.Tensor:
        return (self.model(x) - 1).square().mean()

    def update(self, loss: torch.Tensor) -> torch.Tensor:
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.detach()


def plain(run: Run) -> Callable[[torch.Tensor], torch.Tensor]:
    return lambda x: run.update(run.loss(x))


def both(
    make: Callable[[Run], Any],
    changes: dict[int, Callable[[Run], None]],
    call: Callable[[Run, int], Any] | None = None,
) -> Run:
    """Runs steps on both devices, with `changes` before some of them, and compares losses
    and parameters. Returns the run on device lazy."""
    runs = []
    for device in ("cpu", "lazy"):
        run = Run(device, make)
        for number, x in enumerate(run.batches):
            if number in changes:
                changes[number](run)
            result = call(run, number) if call else run.call(x)
            run.losses.append(result.detach().clone())
        runs.append(run)
    eager, lazy = runs
    for number, (ours, theirs) in enumerate(zip(lazy.losses, eager.losses)):
        torch.testing.assert_close(
            ours.cpu(), theirs, rtol=1e-4, atol=1e-5, msg=f"step {number}"
        )
    for name, value in eager.model.state_dict().items():
        ours = lazy.model.state_dict()[name].cpu()
        torch.testing.assert_close(ours, value, rtol=1e-3, atol=1e-4, msg=name)
    for ours, theirs in zip(lazy.batches, eager.batches):
        torch.testing.assert_close(ours.cpu(), theirs)
    return lazy


# -- a changed object is detected, and the step captured again ----------------------


def change_global(run: Run) -> None:
    global SCALE
    SCALE = 3.0


def scaled_by_global(run: Run) -> Any:
    return lambda x: run.update(run.loss(x) * SCALE)


def with_box(box: Any, use: Callable[[Run, torch.Tensor], torch.Tensor]) -> Any:
    def make(run: Run) -> Any:
        run.box = copy.deepcopy(box)
        return lambda x: run.update(use(run, x))

    return make


def by_function(run: Run) -> Any:
    factor = 1.0

    def change() -> None:
        nonlocal factor
        factor = 2.5

    run.box = change

    def helper(loss: torch.Tensor) -> torch.Tensor:
        return loss * factor

    return lambda x: run.update(helper(run.loss(x)))


def rebound_tensor(run: Run) -> Any:
    weight = torch.ones(6, 1, device=run.device)

    def change() -> None:
        nonlocal weight
        weight = torch.full((6, 1), 0.5, device=run.device)

    run.box = change
    return lambda x: run.update(((run.model(x) - 1) * weight).square().mean())


def put(key: Any, value: Any) -> Callable[[Run], None]:
    def change(run: Run) -> None:
        run.box[key] = value

    return change


def set_attribute(path: str, value: Any) -> Callable[[Run], None]:
    def change(run: Run) -> None:
        owner: Any = run
        *outer, last = path.split(".")
        for name in outer:
            owner = owner[int(name)] if name.isdigit() else getattr(owner, name)
        setattr(owner, last, value)

    return change


def freeze(run: Run) -> None:
    run.model[0].weight.requires_grad_(False)


def replace_parameter(run: Run) -> None:
    run.model[4].bias = nn.Parameter(torch.zeros(2, device=run.device))


def add_group(run: Run) -> None:
    replace_parameter(run)
    run.optimizer.add_param_group({"params": [run.model[4].bias], "lr": 0.05})


def replace_child(run: Run) -> None:
    run.model[2] = nn.Tanh()


def hook_module(run: Run) -> None:
    run.handles.append(
        run.model[2].register_forward_hook(lambda module, given, result: result * 2)
    )


def hook_parameter(run: Run) -> None:
    run.handles.append(run.model[0].weight.register_hook(lambda g: g * 5))


def hook_optimizer(run: Run) -> None:
    def negate(optimizer: Any, args: Any, kwargs: Any) -> None:
        for parameter in run.model.parameters():
            parameter.grad.neg_()

    run.handles.append(run.optimizer.register_step_pre_hook(negate))


def unhook(run: Run) -> None:
    run.handles.pop().remove()


def halve(run: Run) -> None:
    with torch.no_grad():
        run.model[0].weight.mul_(0.5)


def load(run: Run) -> None:
    state = {k: v * 0.5 for k, v in run.model.state_dict().items()}
    run.model.load_state_dict(state)


def new_optimizer(run: Run) -> None:
    run.optimizer = torch.optim.SGD(run.model.parameters(), lr=0.05, momentum=0.9)


def change_betas(run: Run) -> None:
    run.optimizer.param_groups[0]["betas"] = (0.5, 0.9)
    run.optimizer.param_groups[0]["weight_decay"] = 0.1


def restart_count(run: Run) -> None:
    for state in run.optimizer.state.values():
        state["step"].fill_(1)


def new_gradients(run: Run) -> None:
    for parameter in run.model.parameters():
        parameter.grad = torch.ones_like(parameter)


def accumulating(run: Run) -> Any:
    def step(x: torch.Tensor) -> torch.Tensor:
        loss = run.loss(x)
        loss.backward()
        run.optimizer.step()
        return loss.detach()

    return step


GUARDED: dict[str, tuple[Any, dict[int, Callable[[Run], None]]]] = {
    "a global": (scaled_by_global, {7: change_global}),
    "an object's attribute": (
        lambda run: lambda x: run.update(run.loss(x) ** SETTINGS.power),
        {7: lambda run: setattr(SETTINGS, "power", 3)},
    ),
    "a closure's number": (by_function, {7: lambda run: run.box()}),
    "a closure's tensor": (rebound_tensor, {7: lambda run: run.box()}),
    "a list": (with_box([1.0], lambda r, x: r.loss(x) * r.box[0]), {7: put(0, 3.0)}),
    "a dict that decides": (
        with_box(
            {"mode": "square"},
            lambda r, x: (
                r.loss(x) if r.box["mode"] == "square" else (r.model(x) - 1).abs().sum()
            ),
        ),
        {7: put("mode", "abs"), 11: put("mode", "square")},
    ),
    "a dict's tensor": (
        with_box({}, lambda r, x: r.loss(x) * r.box.get("weight", 1.0)),
        {7: lambda r: put("weight", torch.tensor(2.0).to(r.device))(r)},
    ),
    "a default argument": (
        lambda run: functools.partial(lambda x, k: run.update(run.loss(x) * k), k=2.0),
        {7: lambda r: (r.call._function if r.device == "lazy" else r.call).keywords
         .update(k=3.0)},
    ),
    "dropout's p": (plain, {7: set_attribute("model.3.p", 0.6)}),
    "dropout's p becomes 0": (plain, {7: set_attribute("model.3.p", 0.0)}),
    "a slope": (plain, {7: set_attribute("model.2.negative_slope", 0.5)}),
    "momentum of batch norm": (plain, {7: set_attribute("model.1.momentum", 0.5)}),
    "eps of batch norm": (plain, {7: set_attribute("model.1.eps", 0.1)}),
    "eval and train": (
        plain,
        {6: lambda r: r.model.eval(), 10: lambda r: r.model.train()},
    ),
    "one module's mode": (plain, {7: lambda r: r.model[3].eval()}),
    "another forward": (
        plain,
        {7: lambda r: setattr(r.model[2], "forward", lambda x: x.sin())},
    ),
    "a module's hook": (plain, {6: hook_module, 10: unhook}),
    "a parameter's hook": (plain, {6: hook_parameter, 10: unhook}),
    "an optimizer's hook": (plain, {6: hook_optimizer, 10: unhook}),
    "a frozen parameter": (plain, {7: freeze}),
    "a parameter": (plain, {7: replace_parameter}),
    "a parameter and its group": (plain, {7: add_group}),
    "a child": (plain, {7: replace_child}),
    "a write": (plain, {7: halve, 8: halve}),
    "a loaded state": (plain, {7: load}),
    "data": (
        plain,
        {7: lambda r: setattr(r.model[0].weight, "data", r.model[0].weight.data * 0.5)},
    ),
    "cleared state": (plain, {7: lambda r: r.optimizer.state.clear()}),
    "another optimizer": (plain, {7: new_optimizer}),
    "betas and decay": (plain, {7: change_betas}),
    "a step count": (plain, {7: restart_count}),
    "gradients set to none": (
        accumulating, {i: lambda r: r.optimizer.zero_grad() for i in range(7, STEPS)},
    ),
    "gradients replaced": (accumulating, {7: new_gradients}),
    "gradients set to zero": (
        accumulating,
        {7: lambda r: r.optimizer.zero_grad(set_to_none=False)},
    ),
    "a seed": (plain, {i: lambda r: torch.manual_seed(9) for i in (3, 7, 8)}),
}  # fmt: skip


@pytest.mark.parametrize("name", GUARDED)
def test_a_change_is_seen(name: str) -> None:
    make, changes = GUARDED[name]
    lazy = both(make, changes)
    assert lazy.call.replays >= 4, lazy.call.fallbacks


def test_nothing_changes() -> None:
    lazy = both(plain, {})
    assert lazy.call.replays >= STEPS - 3 and not lazy.call.fallbacks


def test_other_objects_may_change() -> None:
    """Objects that the function doesn't read aren't compared."""
    history: list[float] = []

    def change(run: Run) -> None:
        history.append(1.0)
        run.epoch = len(history)
        run.model.note = len(history)

    lazy = both(plain, dict.fromkeys(range(STEPS), change))
    assert lazy.call.replays >= STEPS - 4, lazy.call.fallbacks


def test_the_reason_names_object_and_values() -> None:
    lazy = both(plain, {7: set_attribute("model.3.p", 0.5)})
    (reason,) = lazy.call.fallbacks
    assert reason.endswith("model.3.p changed from 0.25 to 0.5")


def test_modes_of_pytorch() -> None:
    def call(run: Run, number: int) -> torch.Tensor:
        x = run.batches[number]
        if number in (6, 7):
            with torch.autocast(run.device, dtype=torch.bfloat16):
                return run.call(x).float()
        return run.call(x)

    runs = []
    for device in ("cpu", "lazy"):
        run = Run(device, plain)
        runs.append([call(run, number).cpu() for number in range(STEPS)])
    torch.testing.assert_close(*runs, rtol=2e-2, atol=2e-2)
    assert any("autocast" in reason for reason in run.call.fallbacks)


# -- arguments -----------------------------------------------------------------


def two(run: Run) -> Any:
    return lambda a, b: run.update((run.model(a) - b.mean()).square().mean())


ARGUMENTS: dict[str, Callable[[Run, int], tuple[tuple, dict]]] = {
    "the same twice, then two": lambda r, i: (
        (r.batches[i], r.batches[i if i < 7 else 0]), {}
    ),
    "two, then the same twice": lambda r, i: (
        (r.batches[i], r.batches[0 if i < 7 else i]), {}
    ),
    "an alias, then another": lambda r, i: (
        (r.batches[i], r.batches[i].detach() if i < 7 else r.batches[0]), {}
    ),
    "names in another order": lambda r, i: (
        (), dict([("a", r.batches[i]), ("b", r.batches[0])][:: 1 if i < 7 else -1])
    ),
    "transposed": lambda r, i: (
        (r.batches[i], r.batches[i] if i < 7 else r.batches[i].t().contiguous().t()), {}
    ),
    "another dtype": lambda r, i: (
        (r.batches[i], r.batches[i] if i < 7 else r.batches[i].double().float()), {}
    ),
    "another size": lambda r, i: ((r.batches[i][: 6 if i < 7 else 4], r.batches[i]), {}),
}  # fmt: skip


@pytest.mark.parametrize("name", ARGUMENTS)
def test_arguments(name: str) -> None:
    def call(run: Run, number: int) -> torch.Tensor:
        positional, named = ARGUMENTS[name](run, number)
        return run.call(*positional, **named)

    lazy = both(two, {}, call)
    assert lazy.call.replays >= 4, lazy.call.fallbacks


def test_a_model_and_an_optimizer_as_arguments() -> None:
    def make(run: Run) -> Any:
        def step(model: nn.Module, optimizer: torch.optim.Optimizer, batch: dict):
            optimizer.zero_grad()
            loss = model(batch["x"]).square().mean()
            loss.backward()
            optimizer.step()
            return loss.detach()

        return step

    def call(run: Run, number: int) -> torch.Tensor:
        return run.call(run.model, run.optimizer, {"x": run.batches[number]})

    lazy = both(make, {7: set_attribute("model.3.p", 0.6)}, call)
    assert lazy.call.replays >= 6, lazy.call.fallbacks


def test_writes_to_arguments() -> None:
    def make(run: Run) -> Any:
        def step(x: torch.Tensor) -> torch.Tensor:
            x.add_(0.5)
            return run.update(run.loss(x))

        return step

    lazy = both(make, {})
    assert lazy.call.replays >= 8, lazy.call.fallbacks


def test_writes_to_arguments_that_have_views() -> None:
    """Views of the arguments see the step's writes to them."""

    def make(run: Run) -> Any:
        run.box = [x[:2] for x in run.batches]

        def step(x: torch.Tensor) -> torch.Tensor:
            x.mul_(0.5)
            return run.update(run.loss(x))

        return step

    runs = []
    for device in ("cpu", "lazy"):
        run = Run(device, make)
        for x in run.batches:
            run.call(x)
        runs.append([view.cpu() for view in run.box])
    torch.testing.assert_close(*runs)


# -- results -------------------------------------------------------------------


def test_returned_parameters_are_the_parameters() -> None:
    def make(run: Run) -> Any:
        def step(x: torch.Tensor) -> Any:
            loss = run.update(run.loss(x))
            return loss, run.model[0].weight, loss, x

        return step

    run = Run("lazy", make)
    results = [run.call(x) for x in run.batches]
    assert run.call.replays >= 8, run.call.fallbacks
    for (loss, weight, again, x), batch in zip(results, run.batches):
        assert weight is run.model[0].weight and again is loss and x is batch


def test_results_without_a_graph_say_so() -> None:
    model = nn.Linear(3, 1).to("lazy")

    @torch_ltc.capture
    def step(x: torch.Tensor) -> torch.Tensor:
        loss = model(x).square().mean()
        loss.backward()
        return loss

    x = torch.ones(2, 3, device="lazy")
    losses = [step(x) for _ in range(5)]
    assert step.replays and all(loss.requires_grad for loss in losses)
    with pytest.raises(
        RuntimeError, match="captured step returned has no autograd graph"
    ):
        losses[-1].backward()


def test_kept_gradients_keep_their_values() -> None:
    runs = []
    for device in ("cpu", "lazy"):
        run = Run(device, plain)
        kept = []
        for x in run.batches:
            run.call(x)
            kept.append(run.model[0].weight.grad)
        runs.append([gradient.cpu() for gradient in kept])
    torch.testing.assert_close(*runs, rtol=1e-3, atol=1e-5)


# -- operations that a replay couldn't repeat -----------------------------------------


def counting(run: Run) -> Any:
    run.box = [0]

    def step(x: torch.Tensor) -> torch.Tensor:
        run.box[0] += 1
        return run.update(run.loss(x) * (1.0 if run.box[0] < 7 else 2.0))

    return step


def remembering(run: Run) -> Any:
    def step(x: torch.Tensor) -> torch.Tensor:
        loss = run.update(run.loss(x))
        run.last = loss
        return loss

    return step


def appending(run: Run) -> Any:
    run.box = []

    def step(x: torch.Tensor) -> torch.Tensor:
        loss = run.update(run.loss(x))
        run.box.append(loss)
        return loss

    return step


def drawing(draw: Callable[[], float]) -> Any:
    return lambda run: lambda x: run.update(run.loss(x) * (1 + 0 * draw()))


def iterating(run: Run) -> Any:
    iterator = iter([1.0] * 7 + [2.0] * STEPS)
    return lambda x: run.update(run.loss(x) * next(iterator))


def printing(run: Run) -> Any:
    def step(x: torch.Tensor) -> torch.Tensor:
        print("step", end="")
        return run.update(run.loss(x))

    return step


def scheduled(run: Run) -> Any:
    schedule = torch.optim.lr_scheduler.ExponentialLR(run.optimizer, 0.8)

    def step(x: torch.Tensor) -> torch.Tensor:
        loss = run.update(run.loss(x))
        schedule.step()
        return loss

    return step


def seeding(run: Run) -> Any:
    def step(x: torch.Tensor) -> torch.Tensor:
        torch.manual_seed(5)
        return run.update(run.loss(x))

    return step


def counting_in_a_variable(run: Run) -> Any:
    calls = 0

    def step(x: torch.Tensor) -> torch.Tensor:
        nonlocal calls
        calls += 1
        return run.update(run.loss(x) * (1.0 if calls < 7 else 2.0))

    return step


REFUSED = {
    "a variable": (counting_in_a_variable, r"changes calls \(at test_guards.py:\d+\)"),
    "a counter": (counting, r"changes run.box\[0\] \(at test_guards.py:\d+\)"),
    "an attribute": (remembering, r"changes run.last \(at test_guards.py:\d+\)"),
    "a list": (appending, r"changes run.box \(at"),
    "random": (drawing(random.random), "random"),
    "numpy": (drawing(numpy.random.rand), "random"),
    "time": (drawing(time.time), r"time.time at test_guards.py:\d+"),
    "an iterator": (iterating, "'iterator', an iterator"),
    "print": (printing, r"print at test_guards.py:\d+"),
    "a scheduler": (scheduled, r"scheduler.step\(\)"),
    "a seed": (seeding, r"random generator's state at test_guards.py:\d+"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_a_replay_could_not_repeat(name: str) -> None:
    make, reason = REFUSED[name]
    lazy = both(make, {})
    assert lazy.call.replays == 0
    found = list(lazy.call.fallbacks)
    assert any(re.search(reason, text) for text in found), found


@pytest.mark.parametrize("read", ["item", "scalar operand", "index", "tolist"])
def test_values_of_cpu_arguments(read: str) -> None:
    @torch_ltc.capture
    def step(x: torch.Tensor, n: torch.Tensor) -> torch.Tensor:
        if read == "item":
            return x * n.item()
        if read == "index":
            return x[: int(n + 1)] * 2
        if read == "tolist":
            return x * n.tolist()
        return x * n

    x = torch.arange(6.0)
    for number in (2, 2, 2, 3, 4):
        n = torch.tensor(number)
        expected = step.__wrapped__(x, n)
        assert torch.equal(step(x.to("lazy"), n).cpu(), expected)


# -- functions that can be captured ---------------------------------------------------


class Trainer:
    def __init__(self) -> None:
        torch.manual_seed(0)
        self.model = nn.Linear(3, 1).to("lazy")
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.calls = 0

    @torch_ltc.capture
    def step(self, x: torch.Tensor) -> torch.Tensor:
        """Trains."""
        self.optimizer.zero_grad()
        loss = self.model(x).square().mean()
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    @classmethod
    @torch_ltc.capture
    def twice(cls, x: torch.Tensor) -> torch.Tensor:
        return x * 2


def test_methods() -> None:
    first, second = Trainer(), Trainer()
    x = torch.ones(4, 3, device="lazy")
    losses = []
    for _ in range(6):
        first.calls += 1  # `step` doesn't read it
        losses.append(first.step(x).item())
    assert losses == [second.step(x).item() for _ in range(6)]
    assert first.step.replays == second.step.replays == 4
    assert Trainer.step.__doc__ == "Trains."
    copied = copy.deepcopy(first)
    assert [copied.step(x).item() for _ in range(4)] == [
        first.step(x).item() for _ in range(4)
    ]
    assert copied.model.weight is not first.model.weight
    assert [Trainer.twice(x).sum().item() for _ in range(4)] == [24.0] * 4


@pytest.mark.parametrize("kind", ["partial", "callable object", "module", "builtin"])
def test_callables(kind: str) -> None:
    class Doubler:
        def __call__(self, x: torch.Tensor) -> torch.Tensor:
            return x * 2

    module = nn.ReLU()
    function = {
        "partial": functools.partial(torch.mul, other=2),
        "callable object": Doubler(),
        "module": module,
        "builtin": torch.neg,
    }[kind]
    captured = torch_ltc.capture(function)
    for number in range(5):
        x = torch.full((3,), float(number))
        assert torch.equal(captured(x.to("lazy")).cpu(), function(x))
    assert captured.replays == 3, captured.fallbacks


def test_what_is_no_function_is_refused() -> None:
    async def coroutine() -> None: ...

    def generator():
        yield 1

    for value, text in (
        (3, "a int"),
        ("step", "a str"),
        (coroutine, "a coroutine function"),
        (generator, "a generator function"),
        (nn.Linear, "a class"),
    ):
        with pytest.raises(TypeError, match=f"needs a function.*{text}"):
            torch_ltc.capture(value)


def test_threads() -> None:
    def call(run: Run, number: int) -> torch.Tensor:
        results = []
        thread = threading.Thread(
            target=lambda: results.append(run.call(run.batches[number]))
        )
        thread.start()
        thread.join()
        return results[0]

    lazy = both(plain, {}, call)
    assert lazy.call.replays >= 6, lazy.call.fallbacks


def test_an_exception_in_the_step() -> None:
    def make(run: Run) -> Any:
        def step(x: torch.Tensor, fail: bool = False) -> torch.Tensor:
            loss = run.loss(x)
            if fail:
                raise ValueError("mine")
            return run.update(loss)

        return step

    def call(run: Run, number: int) -> torch.Tensor:
        if number in (1, 6):
            with pytest.raises(ValueError, match="mine"):
                run.call(run.batches[number], fail=True)
        return run.call(run.batches[number])

    assert both(make, {}, call).call.replays >= 4


def test_constants_are_listed() -> None:
    def make(run: Run) -> Any:
        return lambda x: F.dropout(run.loss(x) * 2.75, 0.2).detach()

    run = Run("lazy", make)
    for x in run.batches[:4]:
        run.call(x)
    lines = run.call.constants
    assert any(
        line.startswith("0.1 from LeakyReLU.negative_slope at") for line in lines
    )
    assert any(line.startswith("2.75 from") for line in lines), lines
    assert all("an unknown line" not in line for line in lines), lines
