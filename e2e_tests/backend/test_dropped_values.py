"""The outdated value of a large view is dropped at the end of a step. Ops on such views,
and ops that read the memory of their operand, have eager's results. The operand of a view
that nothing else holds isn't computed."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch_ltc
from torch import Tensor

N = 40_960

VIEWS: dict[str, Callable[[Tensor], tuple[Tensor, ...]]] = {
    "split": lambda v: v.split([7, N - 7], -1),
    "chunk": lambda v: v.chunk(3, -1),
    "unbind": lambda v: v.unbind(0),
    "tensor_split": lambda v: v.tensor_split(3, -1),
    "slice": lambda v: (v[..., :7], v[..., 7:]),
    "narrow": lambda v: (v.narrow(2, 0, 7),),
    "diagonal": lambda v: (v.diagonal(0, 0, 2),),
    "unfold": lambda v: (v.unfold(2, 5, N // 2),),
    "as_strided": lambda v: (v.as_strided((5, 5), (1, 1)),),
    "view(dtype)": lambda v: (v.view(torch.int32), v[..., :2].view(torch.int32)),
    "detach": lambda v: (v.detach()[..., :7],),
    "data": lambda v: (v.data[..., :7],),
    "transpose_": lambda v: (v.transpose_(0, 2)[:7],),
    "squeeze_": lambda v: (v.squeeze_()[:, :7],),
    "unsqueeze_": lambda v: (v.unsqueeze_(0)[..., :7],),
    "as_strided_": lambda v: (v.as_strided_((5, 5), (1, 1)),),
    "set_": lambda v: (torch.zeros_like(v).set_(v)[..., :7],),
}


@pytest.mark.parametrize("name", VIEWS)
def test_views_of_dropped_values(name: str) -> None:
    results = {}
    for device in ("cpu", "lazy"):
        view = torch.arange(3 * N).reshape(3, N).to(device).unsqueeze(-2)
        view.diagonal(0, 1, 2).sub_(1)
        torch_ltc.mark_step()
        views = VIEWS[name](view)
        torch_ltc.mark_step()
        results[device] = [v.cpu() for v in views]
    for ours, expected in zip(results["lazy"], results["cpu"]):
        assert ours.equal(expected)


@pytest.mark.parametrize("tier", ["compile", "interpret"])
@pytest.mark.parametrize("offset", [None, 4, 6])
def test_ops_that_read_the_memory_of_a_view(offset: int | None, tier: str) -> None:
    def scattered(x: Tensor) -> list[Tensor]:
        part = -torch.ones(2, device=x.device)
        return [
            torch.as_strided_scatter(x[4:], part, (2,), (3,), offset),
            torch.as_strided_copy(x[4:], (2,), (3,), offset),
            torch.as_strided_scatter(x.view(3, 4)[1:].t(), part, (2,), (1,), offset),
        ]

    with torch_ltc.config(tier=tier):
        x = torch.arange(12.0)
        for ours, expected in zip(scattered(x.to("lazy")), scattered(x)):
            assert ours.cpu().equal(expected)


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x.expand(1 << 42)[7],
        lambda x: x.expand(1 << 20, 1 << 22)[3, 5:7],
        lambda x: x.detach().expand(2, 1 << 41).t()[-1],
    ],
)
def test_the_operand_of_a_view_is_not_computed(view: Callable) -> None:
    with torch_ltc.config(tier="interpret"):
        x = torch.full((1,), 3.0, device="lazy")
        result = view(x)
        torch_ltc.mark_step(wait=True)
        assert (result.cpu() == 3).all()


@pytest.mark.parametrize("gradient", [False, True])
def test_the_operand_of_a_view_is_no_result(gradient: bool) -> None:
    x = torch.ones(8, device="lazy", requires_grad=gradient)
    torch_ltc.mark_step(wait=True)
    y = x.view(2, 4).t()
    kept = x.view(4, 2)
    z = kept.t()[1]
    torch_ltc.mark_step(wait=True)
    returned = torch_ltc.debug.dump(-1, "ir").splitlines()[-1]
    assert returned.count("%") == len([y, kept, z])
    # Autograd can still repeat the views after a write.
    with torch.no_grad():
        x.mul_(3)
    for ours in (y, kept, z):
        assert ours.cpu().unique().tolist() == [3.0]
