"""Every optimizer of torch.optim has eager's results, in each of its implementations."""

from __future__ import annotations

import copy
import inspect
from typing import Any

import pytest
import torch
from comparison import assert_close
from torch import nn
from torch.optim.swa_utils import SWALR, AveragedModel, get_ema_multi_avg_fn

OPTIMIZERS = {
    name: kind
    for name, kind in vars(torch.optim).items()
    if isinstance(kind, type)
    and issubclass(kind, torch.optim.Optimizer)
    and name not in ("Optimizer", "SparseAdam", "LBFGS")
}

VARIANTS: list[dict[str, Any]] = [
    {},
    {"foreach": False},
    {"foreach": True},
    {"fused": True},
    {"capturable": True},
    {"differentiable": True},
]


def model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 2))


def run(kind: type, device: str, **options: Any) -> list[torch.Tensor]:
    net = model().to(device)
    optimizer = kind(net.parameters(), lr=0.01, **options)
    x = torch.linspace(-1, 1, 20).reshape(5, 4).to(device)
    for _ in range(3):
        optimizer.zero_grad()
        net(x).square().mean().backward()
        optimizer.step()
    state = [
        value
        for entry in optimizer.state.values()
        for value in entry.values()
        if isinstance(value, torch.Tensor)
    ]
    return [p.detach().cpu() for p in net.parameters()] + [v.cpu() for v in state]


@pytest.mark.parametrize(
    "options", VARIANTS, ids=lambda o: "".join(o) + str([*o.values()])
)
@pytest.mark.parametrize("name", OPTIMIZERS)  # fmt: skip
def test_follows_eager(name: str, options: dict[str, Any]) -> None:
    kind = OPTIMIZERS[name]
    if not set(options) <= set(inspect.signature(kind).parameters):
        pytest.skip("the optimizer has no such option")
    try:
        actual = run(kind, "lazy", **options)
    except (AssertionError, RuntimeError, ValueError) as error:
        # Either PyTorch's error names the devices that support the option, or the call
        # fails on both devices.
        assert len(str(error)) < 300, error
        if not (options.get("fused") or options.get("capturable")):
            with pytest.raises(type(error)):
                run(kind, "cpu", **options)
        return
    if options.get("capturable"):  # rejected for CPU tensors
        options = {}
    expected = run(kind, "cpu", **options)
    assert_close(actual, expected, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("search", [None, "strong_wolfe"])
def test_lbfgs(search: str | None) -> None:
    results = {}
    for device in ("cpu", "lazy"):
        net = model().to(device)
        optimizer = torch.optim.LBFGS(
            net.parameters(), lr=0.1, max_iter=4, line_search_fn=search
        )
        x = torch.linspace(-1, 1, 20).reshape(5, 4).to(device)

        def closure(net=net, optimizer=optimizer, x=x) -> torch.Tensor:
            optimizer.zero_grad()
            loss = (net(x) - 1).square().mean()
            loss.backward()
            return loss

        results[device] = [float(optimizer.step(closure)) for _ in range(3)]
    assert_close(results["lazy"], results["cpu"], rtol=1e-3, atol=1e-5)


def test_averaged_models() -> None:
    results = {}
    for device in ("cpu", "lazy"):
        net = model().to(device)
        swa = AveragedModel(net)
        ema = AveragedModel(net, multi_avg_fn=get_ema_multi_avg_fn(0.9))
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
        schedule = SWALR(optimizer, swa_lr=0.05)
        x = torch.linspace(-1, 1, 20).reshape(5, 4).to(device)
        for _ in range(4):
            optimizer.zero_grad()
            net(x).square().mean().backward()
            optimizer.step()
            swa.update_parameters(net)
            ema.update_parameters(net)
            schedule.step()
        copied = copy.deepcopy(ema)
        results[device] = [
            p.detach().cpu() for m in (swa, copied) for p in m.parameters()
        ]
    assert_close(results["lazy"], results["cpu"], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_a_loaded_state_of_another_dtype(name: str, dtype: torch.dtype) -> None:
    def run(device: str) -> list[torch.Tensor]:
        parameter = nn.Parameter(torch.linspace(-1, 1, 6).reshape(2, 3).to(device))
        other = nn.Parameter(parameter.detach().to(dtype))
        first, second = (OPTIMIZERS[name]([p], lr=0.01) for p in (parameter, other))
        parameter.grad = torch.ones(2, 3, device=device)
        first.step()
        second.load_state_dict(first.state_dict())
        for _ in range(2):
            other.grad = other.detach() * 2
            second.step()
        return [other.detach().cpu().float()]

    assert_close(run("lazy"), run("cpu"), rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("kind", [torch.optim.Adam, torch.optim.AdamW, torch.optim.SGD])
def test_fused_rejects_complex_parameters(kind: type) -> None:
    for device in ("cpu", "lazy"):
        parameter = nn.Parameter(torch.ones(2, dtype=torch.complex64, device=device))
        optimizer = kind([parameter], lr=0.01, fused=True)
        parameter.grad = torch.ones_like(parameter)
        with pytest.raises(
            RuntimeError, match="requires all the params to be floating"
        ):
            optimizer.step()
