"""If an object that a captured step depends on changes between two calls, the results equal
eager's: the change is detected, and the step is captured again."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from capture.guarded_run import STEPS, Run, both, plain, set_attribute
from comparison import assert_close
from torch import nn

SCALE = 1.0
SETTINGS = SimpleNamespace(power=2)


def change_global(run: Run) -> None:
    global SCALE
    SCALE = 3.0


def scaled_by_global(run: Run) -> Any:
    global SCALE
    SCALE = 1.0
    return lambda x: run.update(run.loss(x) * SCALE)


def with_power(run: Run) -> Any:
    SETTINGS.power = 2
    return lambda x: run.update(run.loss(x) ** SETTINGS.power)


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
        with_power, {7: lambda run: setattr(SETTINGS, "power", 3)},
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
    assert_close(*runs, rtol=2e-2, atol=2e-2)
    assert any("autocast" in reason for reason in run.call.fallbacks)
