"""Captured steps have eager's results, and are traced again when a guard fails."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest
import torch
import torch_ltc
from comparison import assert_close
from torch import nn
from torch.nn import functional as F

OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.05),
    "momentum": lambda p: torch.optim.SGD(
        p, lr=0.05, momentum=0.9, nesterov=True, weight_decay=1e-3
    ),
    "adam": lambda p: torch.optim.Adam(p, lr=1e-2),
    "adamw": lambda p: torch.optim.AdamW(p, lr=1e-2),
    "adamw loop": lambda p: torch.optim.AdamW(p, lr=1e-2, foreach=False),
    "amsgrad": lambda p: torch.optim.AdamW(p, lr=1e-2, amsgrad=True),
    "rmsprop": lambda p: torch.optim.RMSprop(p, lr=1e-3, momentum=0.5),
    "adagrad": lambda p: torch.optim.Adagrad(p, lr=1e-2, lr_decay=0.1),
}


class Training:
    """A small model and its training loop on one device."""

    def __init__(self, device: str, optimizer: str = "adamw", **options) -> None:
        torch.manual_seed(0)
        self.device = device
        self.model = nn.Sequential(
            nn.Linear(8, 16),
            nn.ReLU(),
            nn.Dropout(0.2),
            nn.LayerNorm(16),
            nn.Linear(16, 3),
        ).to(device)
        self.optimizer = OPTIMIZERS[optimizer](self.model.parameters())
        self.call = (
            torch_ltc.capture(self.step, **options) if device == "lazy" else self.step
        )
        self.generator = torch.Generator().manual_seed(1)
        self.losses: list[torch.Tensor] = []
        torch.manual_seed(2)

    def step(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        self.optimizer.zero_grad()
        loss = F.cross_entropy(self.model(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        return loss.detach()

    def batch(self, size: int = 16) -> tuple[torch.Tensor, torch.Tensor]:
        x = torch.randn(size, 8, generator=self.generator)
        y = torch.randint(3, (size,), generator=self.generator)
        return x.to(self.device), y.to(self.device)

    def run(self, steps: int, size: int = 16) -> None:
        for _ in range(steps):
            self.losses.append(self.call(*self.batch(size)))


def both(
    script: Callable[[Training], None], optimizer: str = "adamw", **options
) -> Training:
    """Runs a script on both devices and compares losses and parameters. Returns the
    training on device lazy."""
    eager, lazy = Training("cpu", optimizer), Training("lazy", optimizer, **options)
    torch.manual_seed(2)
    script(eager)
    torch.manual_seed(2)
    script(lazy)
    assert_close(lazy.losses, eager.losses, rtol=1e-4, atol=1e-5)
    state = lazy.model.state_dict()
    for name, value in eager.model.state_dict().items():
        assert_close(state[name], value, rtol=1e-4, atol=1e-5)
    return lazy


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_follows_eager(optimizer: str) -> None:
    lazy = both(lambda t: t.run(12), optimizer)
    assert lazy.call.replays >= 8 and not lazy.call.fallbacks


def test_replays_trace_and_compile_nothing() -> None:
    lazy = Training("lazy")
    lazy.run(5)
    before = torch_ltc.metrics()
    lazy.run(10)
    after = torch_ltc.metrics()
    for name in ("traced_ops", "compilations", "fallback_calls", "implicit_syncs"):
        assert after[name] == before[name], name
    assert after["replayed_steps"] - before["replayed_steps"] == 10
    assert after["steps"] - before["steps"] == 10
    assert torch_ltc.step_log()[-1]["origin"] == "captured"


def test_kept_losses_stay() -> None:
    lazy = Training("lazy")
    lazy.run(10)
    assert len({loss.item() for loss in lazy.losses}) == 10


def test_schedule() -> None:
    def script(training: Training) -> None:
        schedule = torch.optim.lr_scheduler.ExponentialLR(training.optimizer, 0.8)
        for _ in range(10):
            training.run(1)
            schedule.step()

    assert both(script).call.replays >= 6


def test_rate_set_by_hand_is_learnt_once() -> None:
    def script(training: Training) -> None:
        for rate in (1e-2, 5e-3, 2e-3, 1e-3):
            training.optimizer.param_groups[0]["lr"] = rate
            training.run(5)

    lazy = both(script)
    # When the learning rate changes for the first time, the step is traced, which shows
    # which numbers depend on the rate.
    assert lazy.call.fallbacks == {"a hyperparameter changed for the first time": 1}


def test_gradients_and_optimizer_state_are_there() -> None:
    def script(training: Training) -> None:
        training.run(8)

    lazy = both(script)
    eager = Training("cpu")
    torch.manual_seed(2)
    script(eager)
    for ours, theirs in zip(lazy.model.parameters(), eager.model.parameters()):
        assert_close(ours.grad, theirs.grad, rtol=1e-4, atol=1e-5)
        mine, its = lazy.optimizer.state[ours], eager.optimizer.state[theirs]
        assert mine["step"].item() == its["step"].item() == 8
        assert_close(mine["exp_avg"], its["exp_avg"], rtol=1e-4, atol=1e-6)


def write_outside(training: Training) -> None:
    with torch.no_grad():
        training.model[0].weight.mul_(0.5)


def write_through_a_view(training: Training) -> None:
    with torch.no_grad():
        training.model[0].weight[0].zero_()


def load(training: Training) -> None:
    state = {name: value * 0.9 for name, value in training.model.state_dict().items()}
    training.model.load_state_dict(state)


def load_optimizer(training: Training) -> None:
    state = copy.deepcopy(training.optimizer.state_dict())
    for value in state["state"].values():
        value["exp_avg"] = value["exp_avg"] * 0.5
    training.optimizer.load_state_dict(state)


def evaluate(training: Training) -> None:
    training.model.eval()


def freeze(training: Training) -> None:
    training.model[0].bias.requires_grad_(False)
    training.model[0].bias.grad = None


def replace(training: Training) -> None:
    torch.manual_seed(9)
    training.model[1] = nn.Tanh()


def switch(training: Training) -> None:
    training.optimizer.param_groups[0]["maximize"] = True


CHANGES = {
    "changed outside the step": write_outside,
    "optimizer's state was replaced": load_optimizer,
    "training mode": evaluate,
    "requires_grad": freeze,
    "a different parameter, buffer or child": replace,
    "an option of an optimizer": switch,
}


def test_several_writes_outside_are_seen() -> None:
    """Writes outside of the step are detected even if the new value is in the memory that
    the step's result had."""

    def script(training: Training) -> None:
        training.run(5)
        for writes in range(2, 8):
            for _ in range(writes):
                write_outside(training)
            training.run(1)

    assert both(script).call.replays <= 2


@pytest.mark.parametrize("reason", CHANGES)
def test_a_changed_guard_is_named(reason: str) -> None:
    def script(training: Training) -> None:
        training.run(6)
        CHANGES[reason](training)
        training.run(6)

    lazy = both(script)
    assert lazy.call.replays >= 5
    assert any(reason in text for text in lazy.call.fallbacks), lazy.call.fallbacks


@pytest.mark.parametrize("change", [write_through_a_view, load])
def test_writes_outside_are_seen(change: Callable[[Training], None]) -> None:
    def script(training: Training) -> None:
        for _ in range(3):
            training.run(5)
            change(training)
        training.run(2)

    assert both(script).call.fallbacks


def test_other_sizes() -> None:
    def script(training: Training) -> None:
        for size in (16, 16, 7):
            training.run(5, size)

    lazy = both(script)
    assert lazy.call.fallbacks == {"the sizes of the arguments changed": 1}


def test_an_alias_sees_every_step() -> None:
    """As in eager, `detach` shares memory, so the step isn't replayed while the alias
    exists."""

    def script(training: Training) -> None:
        training.run(6)
        alias = training.model[0].weight.detach()
        training.run(2)
        training.losses.append(alias.sum().cpu())

    lazy = both(script)
    assert any("has a view or an alias" in text for text in lazy.call.fallbacks)


def test_views_of_before_see_every_step() -> None:
    def script(training: Training) -> None:
        parts = [p.detach().view(-1)[:2] for p in training.model.parameters()]
        for _ in range(10):
            training.run(1)
            training.losses += [part.sum().cpu() for part in parts]

    assert both(script).call.replays >= 6


def test_copies_keep_their_values() -> None:
    """Replays don't change clones of parameters: a buffer that another tensor holds isn't
    donated."""

    def script(training: Training) -> None:
        training.run(6)
        copies = [p.detach().clone() for p in training.model.parameters()]
        training.run(4)
        training.losses += [copy.sum().cpu() for copy in copies]

    assert both(script).call.replays >= 6


def test_gradients_dropped_outside() -> None:
    def script(training: Training) -> None:
        training.run(6)
        training.optimizer.zero_grad()
        training.run(2)
        training.losses.append(training.model[0].weight.grad.sum().cpu())

    both(script)


def test_accumulated_gradients() -> None:
    """Gradients that are never set to None are part of the captured step's state."""

    def make(device: str):
        torch.manual_seed(0)
        model = nn.Linear(4, 2).to(device)

        def step(x: torch.Tensor) -> torch.Tensor:
            loss = model(x).square().mean()
            loss.backward()
            return loss.detach()

        return model, torch_ltc.capture(step) if device == "lazy" else step

    gradients = []
    for device in ("cpu", "lazy"):
        model, step = make(device)
        for number in range(8):
            step(torch.full((3, 4), float(number)).to(device))
        gradients.append(model.weight.grad.cpu())
    assert_close(gradients[1], gradients[0])


def test_pending_arguments() -> None:
    """Pending arguments are computed before the replay."""

    def script(training: Training) -> None:
        for _ in range(8):
            x, y = training.batch()
            training.losses.append(training.call(x * 2 + 1, y))

    assert both(script).call.replays >= 4


def test_cpu_arguments_are_uploaded() -> None:
    weight = torch.ones(4, device="lazy")

    @torch_ltc.capture
    def step(x: torch.Tensor, *, offset: torch.Tensor) -> dict[str, list[torch.Tensor]]:
        y = x.to("lazy") * weight + offset
        return {"sums": [y.sum(), y.max()]}

    for number in range(6):
        x = torch.arange(4.0) + number
        result = step(x, offset=torch.full((4,), 2.0, device="lazy"))
        assert [t.item() for t in result["sums"]] == [x.sum() + 8, x.max() + 2]
    assert step.replays == 4


@pytest.mark.parametrize("draw", ["bernoulli", "dropout", "rand_like"])
def test_random_numbers_are_drawn_again(draw: str) -> None:
    draws = {
        "bernoulli": torch.bernoulli,
        "dropout": lambda x: F.dropout(x, 0.4),
        "rand_like": torch.rand_like,
    }

    def step(x: torch.Tensor) -> torch.Tensor:
        return draws[draw](x) + x

    results = []
    for device in ("cpu", "lazy"):
        call = torch_ltc.capture(step) if device == "lazy" else step
        x = torch.full((5, 7), 0.3).to(device)
        torch.manual_seed(4)
        results.append([call(x).cpu() for _ in range(8)])
    assert call.replays >= 4, call.fallbacks
    assert not results[0][0].equal(results[0][1])
    assert_close(results[1], results[0])


def test_replayed_steps_are_in_the_step_log() -> None:
    training = Training("lazy")
    training.run(8)
    last, before = torch_ltc.step_log()[-1], torch_ltc.step_log()[-2]
    assert last["trigger"] == "capture" and last["origin"] == "captured"
    assert last["time"] >= before["time"] > 0
    assert last["ops"] == before["ops"] > 0
    assert last["live_tensors"] > 0 and last["allocated_bytes"] > 0


def test_numbers_among_the_arguments() -> None:
    """Replays compute with the number that is passed: each value of a number argument has
    its own captured step."""

    @torch_ltc.capture
    def step(x: torch.Tensor, factor: float) -> torch.Tensor:
        return x * factor

    x = torch.ones(3, device="lazy")
    for factor in (2.0, 3.0, 2.0):
        for _ in range(4):
            assert step(x, factor).sum().item() == 3 * factor
    assert step.replays > 0


@pytest.mark.parametrize("case", ["item", "cpu tensor", "object", "number"])
def test_what_cannot_be_captured_is_traced(case: str) -> None:
    table = {"count": 0}

    def step(x: torch.Tensor):
        table["count"] += 1
        if case == "item":
            return x * x.sum().item()
        if case == "cpu tensor":
            return x + torch.full((3,), float(table["count"])).to("lazy")
        if case == "number":
            return x * (0.5 * table["count"])
        return x + 1, object()

    reasons = {
        "item": "reads values",
        "cpu tensor": "must be arguments",
        "number": "no formula",
        "object": "class object",
    }
    captured = torch_ltc.capture(step)
    x = torch.ones(3, device="lazy")
    for number in range(1, 12):
        result = captured(x)
        if case == "cpu tensor":
            assert result.sum().item() == 3 * (1 + number)
        if case == "number":
            assert result.sum().item() == pytest.approx(1.5 * number)
    assert captured.replays == 0 and captured.traces == 11
    assert any(reasons[case] in text for text in captured.fallbacks)


def test_scheduler_inside_is_rejected() -> None:
    lazy = Training("lazy")
    schedule = torch.optim.lr_scheduler.ExponentialLR(lazy.optimizer, 0.5)

    @torch_ltc.capture
    def step(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        loss = lazy.step(x, y)
        schedule.step()
        return loss

    for _ in range(6):
        step(*lazy.batch())
    assert step.replays == 0
    assert any("scheduler.step()" in text for text in step.fallbacks)


@pytest.mark.parametrize("kind", ["number", "op"])
def test_check_mode_finds_hidden_state(kind: str) -> None:
    """`check_every` finds changes of state that only C++ code reads."""
    hidden = torch.Generator().manual_seed(1)

    def step(x: torch.Tensor) -> torch.Tensor:
        value = hidden.initial_seed()
        if kind == "number":
            return x * float(value)
        return torch.sin(x) if value == 1 else torch.cos(x)

    captured = torch_ltc.capture(step, check_every=4)
    x = torch.ones(3, device="lazy")
    for _ in range(10):
        captured(x)
    assert captured.replays > 0
    hidden.manual_seed(2)
    with pytest.raises(torch_ltc.CaptureMismatch, match=r"docs/capture\.md"):
        for _ in range(4):
            captured(x)
    assert captured(x)[0].item() == pytest.approx(step(x)[0].item())


def test_check_mode_of_a_sound_step() -> None:
    lazy = both(lambda t: t.run(20), check_every=5)
    assert lazy.call.replays >= 8 and not lazy.call.fallbacks


def test_an_exception_leaves_everything_usable() -> None:
    lazy = Training("lazy")
    lazy.run(5)
    with pytest.raises((RuntimeError, IndexError)):
        lazy.call(torch.ones(2, 5, device="lazy"), torch.zeros(2, device="lazy").long())
    torch_ltc.mark_step()
    lazy.run(5)
    assert lazy.call.replays > 2


def test_captured_in_captured_is_rejected() -> None:
    inner = torch_ltc.capture(lambda x: x + 1)
    outer = torch_ltc.capture(lambda x: inner(x) * 2)
    with pytest.raises(RuntimeError, match="another captured step"):
        outer(torch.ones(2, device="lazy"))
