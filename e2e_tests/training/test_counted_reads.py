"""Steps of common programs read no values before they end, and run no ops eagerly, unless
a table in docs/frameworks.md gives the reason."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from functools import partial

import pytest
import torch
import torch_ltc
from torch import nn
from torch.nn import functional
from torch.optim import swa_utils
from torch.utils._pytree import tree_map_only

X = torch.rand(6, 4, generator=torch.Generator().manual_seed(0))
Y = torch.arange(6) % 3

Step = Callable[[], object]


def training(
    before: Callable[[nn.Module], object] = lambda model: None,
    after: Callable[[nn.Module, torch.Tensor], object] = lambda model, loss: None,
    loss_of: Callable[..., torch.Tensor] = functional.cross_entropy,
    optimizer: Callable = lambda parameters: torch.optim.SGD(parameters, 0.01),
) -> Step:
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3)).to("lazy")
    opt, x, y = optimizer(model.parameters()), X.to("lazy"), Y.to("lazy")

    def step() -> None:
        opt.zero_grad()
        loss = loss_of(model(x), y)
        loss.backward()
        before(model)
        opt.step()
        after(model, loss)

    return step


def averaging(**arguments) -> Step:
    model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8)).to("lazy")
    averaged = swa_utils.AveragedModel(model, **arguments)
    opt, x = torch.optim.SGD(model.parameters(), 0.01), X.to("lazy")

    def step() -> None:
        opt.zero_grad()
        model(x).square().mean().backward()
        opt.step()
        averaged.update_parameters(model)

    return step


def scaled() -> Step:
    scaler = torch.amp.GradScaler("lazy")
    model = nn.Linear(4, 3).to("lazy")
    opt, x = torch.optim.SGD(model.parameters(), 0.01), X.to("lazy")

    def step() -> None:
        opt.zero_grad()
        scaler.scale(model(x).square().mean()).backward()
        scaler.unscale_(opt)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(opt)
        scaler.update()

    return step


def lbfgs() -> Step:
    model = nn.Linear(4, 3).to("lazy")
    x, y = X.to("lazy"), Y.to("lazy")
    opt = torch.optim.LBFGS(model.parameters(), max_iter=4)

    def closure() -> torch.Tensor:
        opt.zero_grad()
        loss = functional.cross_entropy(model(x), y)
        loss.backward()
        return loss

    return lambda: opt.step(closure)


def accumulated() -> Callable[[nn.Module, torch.Tensor], None]:
    total = [torch.zeros((), device="lazy")]

    def add(model: nn.Module, loss: torch.Tensor) -> None:
        wrong = torch.isnan(loss) | torch.isinf(loss)
        total[0] = total[0] + torch.where(wrong, total[0], loss.detach())

    return add


def zeroed(logits: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    logits = logits.clone()
    logits[logits < 0] = 0.0
    return logits.mean()


def ignoring(logits: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return functional.cross_entropy(logits, y.masked_fill(y == 1, -100))


def clip(**arguments) -> Callable[[nn.Module], object]:
    return lambda model: nn.utils.clip_grad_norm_(model.parameters(), 1.0, **arguments)


def by(name: str, **arguments) -> Step:
    return training(
        optimizer=lambda p: getattr(torch.optim, name)(p, lr=0.01, **arguments)
    )


# Programs, and the greatest number of implicit syncs that one of their steps may cause.
PROGRAMS: dict[str, tuple[Callable[[], Step], int]] = {
    **{
        name: (lambda name=name: by(name), 0)
        for name in ("SGD", "Adam", "AdamW", "Adadelta", "Adagrad", "Adamax", "NAdam")
    },
    "RAdam": (lambda: by("RAdam"), 0),
    "RMSprop": (lambda: by("RMSprop", momentum=0.9, centered=True), 0),
    "Rprop": (lambda: by("Rprop"), 0),
    "clipped by norm": (lambda: training(clip()), 0),
    "clipped by largest": (lambda: training(clip(norm_type=float("inf"))), 0),
    "clipped, or an error": (lambda: training(clip(error_if_nonfinite=True)), 1),
    "scaled gradients": (scaled, 1),
    "loss read": (lambda: training(after=lambda model, loss: loss.item()), 0),
    "loss printed": (lambda: training(after=lambda model, loss: f"{loss:.3f}"), 0),
    "weight printed": (lambda: training(after=lambda m, loss: str(m[0].weight)), 0),
    "loss accumulated": (lambda: training(after=accumulated()), 0),
    "ignored classes": (lambda: training(loss_of=ignoring), 0),
    "written by mask": (lambda: training(loss_of=zeroed), 0),
    "weights compared": (
        lambda: training(after=lambda m, loss: torch.equal(m[0].bias, m[0].bias)),
        0,
    ),
    "averaged": (averaging, 0),
    "averaged with buffers": (lambda: averaging(use_buffers=True), 0),
    "moving average": (
        lambda: averaging(multi_avg_fn=swa_utils.get_ema_multi_avg_fn(0.9)),
        0,
    ),
    "LBFGS": (lbfgs, 20),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_reads_of_a_step(name: str) -> None:
    make, most = PROGRAMS[name]
    torch.manual_seed(0)
    step = make()
    for _ in range(3):
        step()
        torch_ltc.mark_step()
    torch_ltc.reset_metrics()
    for _ in range(2):
        step()
        torch_ltc.mark_step()
    assert torch_ltc.metrics()["implicit_syncs"] <= 2 * most, torch_ltc.syncs()
    assert torch_ltc.metrics()["fallback_calls"] == 0, torch_ltc.fallbacks()


def through_a_file(state: dict) -> dict:
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    return torch.load(file, map_location="lazy")


def moved(state: dict) -> dict:
    return tree_map_only(torch.Tensor, lambda value: value.to("lazy", copy=True), state)


@pytest.mark.parametrize("load", [through_a_file, moved])
@pytest.mark.parametrize(
    "kind",
    [
        partial(torch.optim.Adam, amsgrad=True),
        partial(torch.optim.Adam, foreach=False),
        *(
            getattr(torch.optim, name)
            for name in (
                "Adadelta",
                "Adafactor",
                "Adagrad",
                "AdamW",
                "Adamax",
                "NAdam",
                "RAdam",
                "RMSprop",
                "Rprop",
            )
        ),
    ],
    ids=str,
)
def test_a_resumed_loop_equals_one_that_was_not_interrupted(
    kind: Callable, load: Callable[[dict], dict]
) -> None:
    """After `load_state_dict`, which may put an optimizer's step counts on the device,
    steps read them without additional syncs."""
    models = [nn.Linear(4, 3).to("lazy") for _ in range(2)]
    optimizers = [kind(model.parameters(), lr=0.01) for model in models]
    x = X.to("lazy")

    def steps(number: int) -> int:
        torch_ltc.mark_step(wait=True)
        torch_ltc.reset_metrics()
        for _ in range(3):
            optimizers[number].zero_grad()
            models[number](x).square().mean().backward()
            optimizers[number].step()
        return torch_ltc.metrics()["implicit_syncs"]

    steps(0)
    models[1].load_state_dict(load(models[0].state_dict()))
    optimizers[1].load_state_dict(load(optimizers[0].state_dict()))
    reads = [steps(number) for number in range(2)]
    assert reads[1] == reads[0]
    for straight, resumed in zip(models[0].parameters(), models[1].parameters()):
        assert torch.equal(straight, resumed)


def python_calls(function: Step) -> int:
    calls = 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        function()
    finally:
        sys.setprofile(None)
    return calls


def test_lbfgs_calls_no_python_for_each_op() -> None:
    counts = {}
    for device in ("cpu", "lazy"):
        torch.manual_seed(0)
        p = torch.randn(6).to(device).requires_grad_()
        opt = torch.optim.LBFGS([p], max_iter=12, history_size=12)

        def closure(p: torch.Tensor = p) -> torch.Tensor:
            p.grad = None
            loss = (p.exp() - p).sum()
            loss.backward()
            return loss

        opt.step(closure)
        counts[device] = python_calls(partial(opt.step, closure))
    assert counts["lazy"] < 2 * counts["cpu"], counts


def test_lbfgs_leaves_add_as_it_was() -> None:
    p = torch.ones(3, device="lazy", requires_grad=True)
    opt = torch.optim.LBFGS([p])
    add_ = torch.Tensor.add_

    def closure() -> torch.Tensor:
        assert torch.Tensor.add_ is add_
        raise ArithmeticError

    with pytest.raises(ArithmeticError):
        opt.step(closure)
    assert torch.Tensor.add_ is add_
    assert "add_" not in vars(torch.Tensor)
