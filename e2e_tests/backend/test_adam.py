"""A step of Adam with default options is one node for each parameter; special cases use
torch's implementation."""

from __future__ import annotations

import pytest
import torch
import torch_ltc
from comparison import assert_close
from torch import nn


def train(device: str, kind=torch.optim.AdamW, dtype=torch.float32, steps=4, **options):
    """Returns the parameters and the optimizer's state after some steps."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 2)).to(device, dtype)
    optimizer = kind(model.parameters(), lr=0.05, **options)
    x = torch.randn(8, 4, dtype=dtype).to(device)
    for step in range(steps):
        optimizer.param_groups[0]["lr"] = 0.05 / (step + 1)
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()
    state = [value for entry in optimizer.state.values() for value in entry.values()]
    return [value.detach().cpu() for value in (*model.parameters(), *state)]


def nodes(kind=torch.optim.AdamW, **options) -> int:
    """Returns the number of nodes that an optimizer step traces for one parameter."""
    parameter = nn.Parameter(torch.ones(3, device="lazy"))
    optimizer = kind([parameter], **options)
    with torch_ltc.config(auto_step=False):
        for _ in range(2):
            parameter.grad = torch.ones(3, device="lazy")
            torch_ltc.mark_step(wait=True)
            before = torch_ltc.metrics()["traced_ops"]
            optimizer.step()
            count = torch_ltc.metrics()["traced_ops"] - before
            torch_ltc.mark_step()
    return count


ONE_NODE = {
    "AdamW": {},
    "AdamW without decay": {"weight_decay": 0.0},
    "betas": {"betas": (0.5, 0.9), "eps": 1e-3},
    "Adam": {"kind": torch.optim.Adam},
    "float64": {"dtype": torch.float64},
}
TORCHS_WAY = {
    "amsgrad": {"amsgrad": True},
    "maximize": {"maximize": True},
    "loop": {"foreach": False},
    "bfloat16": {"dtype": torch.bfloat16},
}


@pytest.mark.parametrize("name", ONE_NODE)
def test_one_node_has_eagers_numbers(name: str) -> None:
    assert_close(train("lazy", **ONE_NODE[name]), train("cpu", **ONE_NODE[name]))


@pytest.mark.parametrize("name", TORCHS_WAY)
def test_special_forms_have_eagers_numbers(name: str) -> None:
    tolerance = {"rtol": 0.05, "atol": 0.02} if name == "bfloat16" else {}
    assert_close(
        train("lazy", **TORCHS_WAY[name]), train("cpu", **TORCHS_WAY[name]), **tolerance
    )


def test_costs() -> None:
    assert nodes() == nodes(torch.optim.Adam) == 1
    assert nodes(torch.optim.Adam, weight_decay=0.1) == 2
    assert nodes(amsgrad=True) > 5


def test_weight_decay_of_adam_is_of_the_gradient() -> None:
    options = {"kind": torch.optim.Adam, "weight_decay": 0.1}
    assert_close(train("lazy", **options), train("cpu", **options))


def test_other_rates_are_no_new_programs() -> None:
    train("lazy", betas=(0.8, 0.9))
    compilations = torch_ltc.metrics()["compilations"]
    train("lazy", betas=(0.7, 0.95), steps=6, eps=1e-6)
    assert torch_ltc.metrics()["compilations"] == compilations


def test_parameters_and_state_keep_their_memory() -> None:
    """The buffers of parameters and state are donated: after the second step, no step
    allocates more memory."""
    parameter = nn.Parameter(torch.ones(1000, 100, device="lazy"))
    optimizer = torch.optim.AdamW([parameter])
    gradient = torch.ones(1000, 100, device="lazy")
    peaks = []
    for _ in range(4):
        parameter.grad = gradient
        optimizer.step()
        torch_ltc.wait_device_ops()
        peaks.append(torch_ltc.step_log()[-1]["allocated_bytes"])
    assert peaks[-1] == peaks[1]


def test_versions_and_counts() -> None:
    def run(device: str) -> list[int]:
        parameter = nn.Parameter(torch.ones(2, device=device))
        optimizer = torch.optim.AdamW([parameter], foreach=True)
        parameter.grad = torch.ones(2, device=device)
        optimizer.step()
        state = optimizer.state[parameter]
        before = [state[key]._version for key in ("exp_avg", "exp_avg_sq", "step")]
        parameter_before = parameter._version
        optimizer.step()
        after = [state[key]._version for key in ("exp_avg", "exp_avg_sq", "step")]
        changed = [b > a for a, b in zip(before, after)]
        return [*changed, parameter._version > parameter_before, int(state["step"])]

    assert run("lazy") == run("cpu") == [True, True, True, True, 2]


def test_a_parameter_in_two_places_is_stepped_twice() -> None:
    def run(device: str) -> torch.Tensor:
        parameter = nn.Parameter(torch.ones(2, device=device))
        optimizer = torch.optim.AdamW([{"params": [parameter]}], lr=0.1)
        view = parameter.detach()[:1]
        for _ in range(2):
            parameter.grad = torch.ones(2, device=device)
            optimizer.step()
        return torch.cat([parameter.detach(), view]).cpu()

    assert_close(run("lazy"), run("cpu"))


class CountsCalls(torch.optim.AdamW):
    """Overrides `step` and calls `_init_group`, both of which must work as in eager."""

    calls = 0

    def step(self, closure=None):
        self.calls += 1
        groups = [[] for _ in range(6)]
        self._init_group(self.param_groups[0], *groups)
        assert groups[0] and len(groups[0]) == len(groups[1]) == len(groups[5])
        return super().step(closure)


OTHER_USES = {
    "a closure": lambda p: run_closure(torch.optim.AdamW([p], lr=0.1)),
    "a subclass": lambda p: run_steps(CountsCalls([p], lr=0.1)),
    "lost state": lambda p: run_steps(torch.optim.AdamW([p], lr=0.1), forget=True),
    "groups": lambda p: run_steps(
        torch.optim.AdamW([{"params": [p], "lr": 0.1}, {"params": [twin(p)]}])
    ),
    "a group that is special": lambda p: run_steps(
        torch.optim.AdamW([{"params": [p]}, {"params": [twin(p)], "amsgrad": True}])
    ),
    "a rate that is a tensor": lambda p: run_steps(
        torch.optim.AdamW([p], lr=torch.tensor(0.1), foreach=False)
    ),
}


def twin(parameter: nn.Parameter) -> nn.Parameter:
    return nn.Parameter(parameter.detach().clone() + 1)


def run_steps(optimizer, forget: bool = False) -> list[torch.Tensor]:
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    for _ in range(3):
        for parameter in parameters:
            parameter.grad = parameter.detach() * 2
        optimizer.step()
        if forget:
            optimizer.state.clear()
    return [parameter.detach().cpu() for parameter in parameters]


def run_closure(optimizer) -> list[torch.Tensor]:
    (parameter,) = optimizer.param_groups[0]["params"]

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss = parameter.square().sum()
        loss.backward()
        return loss

    losses = [optimizer.step(closure).detach().cpu() for _ in range(3)]
    return [*losses, parameter.detach().cpu()]


@pytest.mark.parametrize("name", OTHER_USES)
def test_other_uses(name: str) -> None:
    use = OTHER_USES[name]
    results = [
        use(nn.Parameter(torch.tensor([1.0, -2.0], device=device)))
        for device in ("lazy", "cpu")
    ]
    assert_close(*results)


def test_hooks_and_schedulers_see_each_step() -> None:
    parameter = nn.Parameter(torch.ones(2, device="lazy"))
    optimizer = torch.optim.Adam([parameter], lr=0.1)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    seen = []
    optimizer.register_step_pre_hook(lambda *_: seen.append("before"))
    optimizer.register_step_post_hook(lambda *_: seen.append("after"))
    for _ in range(2):
        parameter.grad = torch.ones(2, device="lazy")
        optimizer.step()
        schedule.step()
    assert seen == ["before", "after"] * 2
    assert optimizer.param_groups[0]["lr"] == pytest.approx(0.001)
