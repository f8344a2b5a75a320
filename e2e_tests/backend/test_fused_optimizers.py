"""Optimizers with fused=True trace the computation of eager's fused CPU kernels."""

from __future__ import annotations

import copy
import itertools
from typing import Any

import pytest
import torch
import torch_ltc
from comparison import assert_close, largest
from torch import nn

SHAPES = ((4, 3), (7,), (), (2, 3, 4, 5))
DTYPES = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
#: Tolerances relative to a tensor's largest element, or to 1 if all elements are smaller.
#: For 16-bit dtypes, whose results are rounded only once, the tolerance is 4 eps.
TOLERANCE = {torch.float32: 2e-6, torch.float64: 1e-14}

ADAM = [
    {},
    {"weight_decay": 0.1},
    {"betas": (0.5, 0.9), "eps": 1e-3},
    {"amsgrad": True},
    {"maximize": True, "weight_decay": 0.1, "amsgrad": True},
]
CASES: list[tuple[type, dict[str, Any]]] = [
    *itertools.product((torch.optim.Adam, torch.optim.AdamW), ADAM),
    (torch.optim.SGD, {}),
    (torch.optim.SGD, {"momentum": 0.9}),
    (torch.optim.SGD, {"momentum": 0.9, "nesterov": True, "weight_decay": 0.1}),
    (torch.optim.SGD, {"momentum": 0.9, "dampening": 0.3, "maximize": True}),
    (torch.optim.Adagrad, {}),
    (torch.optim.Adagrad, {"lr_decay": 0.1, "weight_decay": 0.1}),
    (torch.optim.Adagrad, {"initial_accumulator_value": 0.3, "maximize": True}),
]
IDS = [f"{kind.__name__} {'-'.join(options)}" for kind, options in CASES]


def run(
    device: str,
    kind: type,
    dtype: torch.dtype = torch.float32,
    rate: str = "number",
    scaled: bool = False,
    channels_last: bool = False,
    steps: int = 4,
    **options: Any,
) -> list[torch.Tensor]:
    """Returns parameters, gradients and states after some steps. The learning rate varies
    if it is a number."""
    torch.manual_seed(0)
    shapes = SHAPES
    if kind is torch.optim.SGD and dtype.itemsize == 2:
        # Eager's kernel (torch 2.13) doesn't store the results of its vectorized loop, so
        # only small tensors are compared.
        shapes = SHAPES[:3]
    values = [torch.randn(shape, dtype=dtype).to(device) for shape in shapes]
    if channels_last:
        values[3] = values[3].to(memory_format=torch.channels_last)
    parameters = [value.requires_grad_() for value in values]
    lr: Any = 0.05
    if rate != "number":
        lr = torch.tensor(0.05, device="cpu" if rate == "on the CPU" else device)
    optimizer = kind(parameters, lr=lr, fused=True, **options)
    for step in range(steps):
        if rate == "number":
            optimizer.param_groups[0]["lr"] = 0.05 / (step + 1)
        for parameter in parameters:
            parameter.grad = (parameter.detach() * 2 + step).sin()
        if scaled:  # as set by GradScaler; the third step is skipped
            optimizer.grad_scale = torch.tensor(4.0, device=device)
            optimizer.found_inf = torch.tensor(float(step == 2), device=device)
        optimizer.step()
    states = [
        value
        for parameter in parameters
        for _, value in sorted(optimizer.state[parameter].items())
        if isinstance(value, torch.Tensor)
    ]
    tensors = [*parameters, *(p.grad for p in parameters), *states]
    return [tensor.detach() for tensor in tensors]


def compare(kind: type, dtype: torch.dtype = torch.float32, **options: Any) -> None:
    expected = run("cpu", kind, dtype, **options)
    torch_ltc.reset_metrics()
    actual = run("lazy", kind, dtype, **options)
    torch_ltc.mark_step()
    assert torch_ltc.fallbacks() == []
    tolerance = TOLERANCE.get(dtype, 4 * torch.finfo(dtype).eps)
    for a, e in zip(actual, expected, strict=True):
        assert a.stride() == e.stride()
        assert_close(a, e, 0, tolerance * largest(e, 1.0))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize(("kind", "options"), CASES, ids=IDS)
def test_eagers_numbers(kind: type, options: dict[str, Any], dtype) -> None:
    compare(kind, dtype, **options)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize(("kind", "options"), CASES, ids=IDS)
def test_scaled_gradients_and_skipped_steps(kind, options, dtype) -> None:
    compare(kind, dtype, scaled=True, **options)


@pytest.mark.parametrize("rate", ["on the CPU", "on the device"])
@pytest.mark.parametrize(
    "kind",
    [torch.optim.Adam, torch.optim.AdamW, torch.optim.SGD, torch.optim.Adagrad],
)
def test_rates_that_are_tensors(kind: type, rate: str) -> None:
    compare(kind, rate=rate)


@pytest.mark.parametrize("kind", [torch.optim.AdamW, torch.optim.SGD])
def test_strides_of_parameters_stay(kind: type) -> None:
    compare(kind, channels_last=True, weight_decay=0.1)


@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize(("kind", "options"), CASES, ids=IDS)
def test_other_rates_and_counts_are_no_new_programs(kind, options, scaled) -> None:
    def programs() -> int:
        metrics = torch_ltc.metrics()
        return metrics["compilations"] + metrics["program_disk_hits"]

    run("lazy", kind, scaled=scaled, steps=3, **options)
    before = programs()
    run("lazy", kind, scaled=scaled, steps=6, **options)
    assert programs() == before


def test_a_default_step_is_one_op_for_each_parameter() -> None:
    parameters = [nn.Parameter(torch.ones(3, device="lazy")) for _ in range(5)]
    optimizer = torch.optim.AdamW(parameters, fused=True)
    with torch_ltc.config(auto_step=False):
        for step in range(3):
            for parameter in parameters:
                parameter.grad = torch.ones(3, device="lazy")
            torch_ltc.mark_step(wait=True)
            torch_ltc.reset_metrics()
            optimizer.step()
            # The first step also creates two moments for each parameter.
            assert torch_ltc.metrics()["traced_ops"] == (5 if step else 15)
            torch_ltc.mark_step()
    assert torch_ltc.metrics()["implicit_syncs"] == 0


@pytest.mark.parametrize("fused", [True, False, None])
@pytest.mark.parametrize("kind", [torch.optim.AdamW, torch.optim.Adagrad])
def test_states_are_loaded(kind: type, fused: bool | None) -> None:
    """An optimizer continues from the state of a fused eager optimizer, which keeps step
    counts on the parameters' device."""
    results = []
    for device in ("cpu", "lazy"):
        torch.manual_seed(1)
        parameter = torch.randn(4).to(device).requires_grad_()
        first = torch.randn(4).requires_grad_()
        source = kind([first], lr=0.1, fused=True)
        first.grad = torch.ones(4)
        source.step()
        optimizer = kind([parameter], lr=0.1, fused=fused)
        state = copy.deepcopy(source.state_dict())
        state["param_groups"][0]["fused"] = fused
        optimizer.load_state_dict(state)
        for _ in range(3):
            parameter.grad = parameter.detach() * 2
            optimizer.step()
        results.append(
            [parameter.detach().cpu(), float(optimizer.state[parameter]["step"])]
        )
    assert_close(results[1][0], results[0][0])
    assert results[1][1] == results[0][1] == 4


def test_the_ops_by_themselves() -> None:
    """The fused ops accept step counts on the device if they are called directly, as
    optimizers outside of torch call them."""
    results = {}
    for device in ("cpu", "lazy"):
        parameter, grad = (torch.linspace(-1, 1, 6).to(device) for _ in range(2))
        average, square = (torch.zeros(6, device=device) for _ in range(2))
        step = torch.tensor(1.0, device=device)
        view = parameter[2:4]
        with torch.no_grad():
            torch._fused_adamw_(
                [parameter], [grad], [average], [square], [], [step],
                lr=0.1, beta1=0.9, beta2=0.99, weight_decay=0.1, eps=1e-8,
                amsgrad=False, maximize=False,
            )  # fmt: skip
        results[device] = [t.cpu() for t in (parameter, average, square, view)]
    assert_close(results["lazy"], results["cpu"])
