"""An op on lists of tensors is traced as one node for each element if gradients are off."""

from __future__ import annotations

import pytest
import torch
import torch_ltc
from comparison import assert_close

IN_PLACE = {
    "mul by a number": lambda a, b: torch._foreach_mul_(a, 0.9),
    "add numbers": lambda a, b: torch._foreach_add_(a, [0.5] * len(a)),
    "add tensors": lambda a, b: torch._foreach_add_(a, b, alpha=-0.3),
    "sub tensors": lambda a, b: torch._foreach_sub_(a, b, alpha=2),
    "lerp": lambda a, b: torch._foreach_lerp_(a, b, 0.25),
    "addcmul": lambda a, b: torch._foreach_addcmul_(a, b, b, 0.1),
    "addcdiv": lambda a, b: torch._foreach_addcdiv_(a, b, a, [0.1] * len(a)),
    "sqrt": lambda a, b: torch._foreach_sqrt_(torch._foreach_abs(a)),
    "maximum": lambda a, b: torch._foreach_maximum_(a, b),
    "pow": lambda a, b: torch._foreach_pow_(a, 2),
    "zero": lambda a, b: torch._foreach_zero_(a),
    "copy": lambda a, b: torch._foreach_copy_(a, b),
}


def lists(device: str, dtype: torch.dtype = torch.float32) -> list[list[torch.Tensor]]:
    generator = torch.Generator().manual_seed(0)
    return [
        [
            torch.randn(n + 1, 3, generator=generator).to(dtype).to(device)
            for n in range(3)
        ]
        for _ in range(2)
    ]


@pytest.mark.parametrize("name", IN_PLACE)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_in_place(name: str, dtype: torch.dtype) -> None:
    def run(device: str) -> list[torch.Tensor]:
        a, b = lists(device, dtype)
        with torch.no_grad():
            IN_PLACE[name](a, b)
        return a

    assert_close(run("lazy"), run("cpu"))


def test_integers() -> None:
    def run(device: str) -> list[torch.Tensor]:
        a = [(10 * tensor).long() for tensor in lists(device)[0]]
        with torch.no_grad():
            torch._foreach_mul_(a, 3)
        return a

    assert_close(run("lazy"), run("cpu"))


def test_results_are_new() -> None:
    a, b = lists("lazy")
    with torch.no_grad():
        sums = torch._foreach_add(a, b, alpha=2)
    assert_close(sums, [x + 2 * y for x, y in zip(*lists("cpu"))])
    assert_close(a, lists("cpu")[0])
    assert all(not result.requires_grad for result in sums)


def test_views_see_the_update() -> None:
    """Updates of bases are visible in views that were created before, and vice versa."""
    for device in ("lazy", "cpu"):
        (a, b), rows = lists(device), []
        with torch.no_grad():
            rows = [tensor[0] for tensor in a]
            torch._foreach_mul_(a, 3.0)  # the bases
            torch._foreach_add_(rows, [tensor[0] for tensor in b])  # the views
        if device == "lazy":
            ours = [t.cpu() for t in a + rows]
        else:
            assert_close(ours, a + rows)


def test_detached_alias_and_parameter() -> None:
    parameter = torch.nn.Parameter(torch.ones(4, device="lazy"))
    alias = parameter.detach()
    before = parameter._version
    with torch.no_grad():
        torch._foreach_mul_([parameter], 0.5)
        torch._foreach_add_([parameter], 1.0)
    assert parameter._version == before + 2 and parameter.requires_grad
    assert_close([parameter.detach(), alias], [torch.full((4,), 1.5)] * 2)


def test_a_saved_tensor_that_was_written_is_noticed() -> None:
    x = torch.ones(3, device="lazy", requires_grad=True)
    w = torch.ones(3, device="lazy")
    y = (x * w).sum()
    with torch.no_grad():
        torch._foreach_mul_([w], 2.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


def test_gradients_flow_where_they_are_on() -> None:
    def gradient(device: str) -> torch.Tensor:
        a, b = lists(device)
        leaf = a[0].requires_grad_()
        torch._foreach_mul([leaf], [b[0]])[0].sum().backward()
        return leaf.grad

    assert_close([gradient("lazy")], [gradient("cpu")])


def test_a_number_that_changes_does_not_recompile() -> None:
    a, b = lists("lazy")
    torch_ltc.mark_step(wait=True)
    for step in range(5):
        with torch.no_grad():
            torch._foreach_addcdiv_(a, b, b, [0.1 / (step + 2)] * 3)
        torch_ltc.mark_step()
        if step == 1:
            compilations = torch_ltc.metrics()["compilations"]
    assert torch_ltc.metrics()["compilations"] == compilations


def test_optimizers_take_the_foreach_form(monkeypatch) -> None:
    parameters = [torch.nn.Parameter(torch.ones(2, device="lazy")) for _ in range(20)]
    optimizer = torch.optim.NAdam(parameters, lr=0.1)
    for parameter in parameters:
        parameter.grad = torch.ones(2, device="lazy")
    calls = []
    original = torch._foreach_lerp_
    monkeypatch.setattr(
        torch, "_foreach_lerp_", lambda *a, **k: (calls.append(1), original(*a, **k))[1]
    )
    optimizer.step()
    assert calls == [1]


@pytest.mark.parametrize("dtype", [torch.int32, torch.bool])
def test_a_list_of_integers_has_the_errors_of_its_elements(dtype: torch.dtype) -> None:
    for function in (torch._foreach_exp_, lambda a: torch._foreach_mul_(a, 0.5)):
        for device in ("cpu", "lazy"):
            with pytest.raises(
                RuntimeError, match="Float can't be cast to the desired"
            ):
                function(lists(device, dtype)[0])


def test_a_list_of_integers_is_written_in_place() -> None:
    results = []
    for device in ("cpu", "lazy"):
        a, b = ([t * 9 for t in each] for each in lists(device, torch.int64))
        view, versions = a[0][:1], [t._version for t in a]
        torch._foreach_add_(a, b, alpha=2)
        torch._foreach_neg_(a)
        assert all(t._version > v for t, v in zip(a, versions))
        results.append([*a, view])
    assert_close(results[1], results[0])


#: Sizes and strides of memory that is row-major, although a dim of size 1 has another
#: stride than in a new tensor: such as a channels-last weight with one input channel.
AMBIGUOUS = [
    ((8, 1, 3, 3), (9, 1, 3, 1)),
    ((8, 3, 1, 1), (3, 1, 3, 3)),
    ((1, 5), (1, 1)),
]


def _ambiguous(device: str) -> list[torch.Tensor]:
    memory = torch.linspace(0.1, 1.0, 90)
    return [
        torch.empty_strided(sizes, strides, device=device).copy_(
            memory[: torch.Size(sizes).numel()].view(sizes)
        )
        for sizes, strides in AMBIGUOUS
    ]


@pytest.mark.parametrize("name", IN_PLACE)
def test_written_tensors_keep_their_strides(name: str) -> None:
    results = {}
    for device in ("cpu", "lazy"):
        a, b = _ambiguous(device), _ambiguous(device)
        a[0] = a[0][1:]  # a view
        b[0] = b[0][1:].contiguous()
        with torch.no_grad():
            IN_PLACE[name](a, b)
        results[device] = a
    for lazy, cpu in zip(results["lazy"], results["cpu"], strict=True):
        assert lazy.stride() == cpu.stride()
        assert lazy.storage_offset() == cpu.storage_offset()
        assert_close(lazy.cpu(), cpu)


OPTIMIZERS = {
    "SGD": lambda p: torch.optim.SGD(p, 0.1, momentum=0.9),
    "Adam": lambda p: torch.optim.Adam(p, 0.1),
    "AdamW, amsgrad": lambda p: torch.optim.AdamW(p, 0.1, amsgrad=True),
    "Adam, fused": lambda p: torch.optim.Adam(p, 0.1, fused=True),
    "RMSprop": lambda p: torch.optim.RMSprop(p, 0.1, momentum=0.9),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_parameters_and_states_keep_their_strides(name: str) -> None:
    results = {}
    for device in ("cpu", "lazy"):
        parameters = [torch.nn.Parameter(tensor) for tensor in _ambiguous(device)]
        optimizer = OPTIMIZERS[name](parameters)
        for _ in range(3):
            for parameter in parameters:
                parameter.grad = parameter.detach().contiguous() * 0.5
            optimizer.step()
        states = [optimizer.state[parameter].values() for parameter in parameters]
        results[device] = parameters + [s for state in states for s in state]
    for lazy, cpu in zip(results["lazy"], results["cpu"], strict=True):
        if isinstance(cpu, torch.Tensor):
            assert lazy.stride() == cpu.stride()
            assert_close(lazy.cpu(), cpu)
