"""Leaves that are views have eager's gradients, for each op that returns a view."""

from __future__ import annotations

import pytest
import torch
import torch_ltc
from comparison import assert_close


def _without_gradients(base: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        return base[1:, 1:]


#: Views of `base`, of shape [6, 8], that don't require gradients yet.
LEAVES = {
    "rows": lambda base: base.detach()[1:],
    "columns": lambda base: base.detach()[:, ::2],
    "transposed": lambda base: base.detach().t(),
    "flat": lambda base: base.detach().view(-1)[5:45],
    "row": lambda base: base.detach()[1],
    "diagonal": lambda base: base.detach().diagonal(),
    "as_strided": lambda base: base.detach().as_strided((4, 6), (8, 1), 3),
    "part": lambda base: base.detach().split(3)[1],
    "of no_grad": _without_gradients,
    "data": lambda base: base.data[2:],
    "parameter": lambda base: torch.nn.Parameter(base.detach()[1:]),
}


def _written(x: torch.Tensor) -> torch.Tensor:
    y = x.clone()
    y.transpose(0, -1)[1:].mul_(2)
    y.as_strided((2,), (1,), y.storage_offset()).add_(y.sum())
    return y


VIEWS = {
    "as_strided": lambda x: x.as_strided((2, 3), (1, 2)),
    "as_strided with an offset": lambda x: x.as_strided((2, 2), (3, 1), x.storage_offset() + 1),
    "as_strided of itself twice": lambda x: x.as_strided((3, 3), (1, 1), x.storage_offset()),
    "as_strided of a view": lambda x: x[..., 1:].as_strided((2, 2), (1, 1)),
    "as_strided outside of the view": lambda x: x[2:].as_strided((3,), (1,), x.storage_offset()),
    "stft": lambda x: torch.view_as_real(torch.stft(x.reshape(-1)[:8], 4, 2, window=torch.ones(4, device=x.device), return_complex=True, center=False)),
    "slice": lambda x: x[1:],
    "select": lambda x: x.select(0, 1),
    "transpose": lambda x: x.transpose(0, -1),
    "reshape": lambda x: x.reshape(-1),
    "expand": lambda x: x.expand(2, *x.shape),
    "unfold": lambda x: x.unfold(0, 2, 1),
    "split": lambda x: x.split(2)[-1],
    "unbind": lambda x: x.unbind()[1],
    "unsqueeze": lambda x: x.unsqueeze(1),
    "unflatten": lambda x: x.unflatten(0, (1, -1)),
    "movedim": lambda x: x.movedim(0, -1),
    "view_as": lambda x: x.view_as(x),
    "alias": torch.ops.aten.alias,
    "written": _written,
}  # fmt: skip


def _gradient(leaf: str, view: str, device: str, is_cut: bool) -> list:
    base = torch.linspace(-1, 2, 48).reshape(6, 8).to(device).requires_grad_()
    x = LEAVES[leaf](base).requires_grad_()
    result = VIEWS[view](x)
    weight = torch.linspace(0.5, 1.5, result.numel()).reshape(result.shape).to(device)
    if is_cut:
        torch_ltc.mark_step()
    (result * result * weight).sum().backward()
    assert base.grad is None
    return [x.grad, result.detach()]


@pytest.mark.parametrize("leaf", LEAVES)
@pytest.mark.parametrize("view", VIEWS)
def test_gradient(view: str, leaf: str) -> None:
    is_cut = (len(view) + len(leaf)) % 2 == 0
    expected = _gradient(leaf, view, "cpu", False)
    for lazy, eager in zip(_gradient(leaf, view, "lazy", is_cut), expected):
        assert_close(lazy, eager, rtol=1e-4, atol=1e-5)
        assert lazy.stride() == eager.stride()


def test_what_lies_outside_of_a_view_has_no_gradient() -> None:
    """as_strided reads the base's memory, but is differentiated with respect to the
    view."""
    gradients = []
    for device in ("cpu", "lazy"):
        x = torch.arange(12.0).to(device).requires_grad_()
        (x[4:].as_strided((3,), (2,), 2) ** 2).sum().backward()
        gradients.append(x.grad.cpu())
    assert_close(gradients[1], gradients[0])
    assert gradients[0][2] == 0
