"""A formula in Python runs once for arguments with equal sizes, dtypes and numbers; later
calls repeat the ops that the first call traced."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
import torch
import torch_ltc
from comparison import assert_close
from counting import counting
from torch import Tensor
from torch.nn import functional as F

CALLS: dict[str, tuple[Callable, tuple[tuple[int, ...], ...]]] = {
    "bilinear": (lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"), ((2, 3, 4, 5),)),
    "bicubic": (lambda x: F.interpolate(x, (7, 6), mode="bicubic"), ((1, 2, 4, 5),)),
    "nearest": (lambda x: F.interpolate(x, scale_factor=2), ((2, 3, 8),)),
    "trilinear": (lambda x: F.interpolate(x, (4, 4, 4), mode="trilinear"), ((1, 2, 3, 3, 3),)),
    "median": (torch.median, ((65,),)),
    "nanmedian": (torch.nanmedian, ((64,),)),
    "cross": (torch.linalg.cross, ((8, 3), (8, 3))),
    "cdist": (torch.cdist, ((8, 3), (6, 3))),
    "pdist": (F.pdist, ((5, 3),)),
    "nan_to_num": (lambda x: (x / (x > 0.5)).nan_to_num(posinf=3.0), ((8, 3),)),
    "aminmax": (lambda x: torch.stack(x.aminmax(dim=1)), ((8, 3),)),
    "trace": (torch.trace, ((4, 4),)),
    "dist": (torch.dist, ((3, 4), (3, 4))),
    "renorm": (lambda x: x.renorm(2, 0, 0.5), ((4, 5),)),
    "grid_sample": (lambda x, g: F.grid_sample(x, g, align_corners=False), ((2, 3, 5, 5), (2, 4, 4, 2))),
    "avg_pool3d": (lambda x: F.avg_pool3d(x, 2), ((1, 2, 4, 4, 4),)),
    "max_pool3d": (lambda x: F.max_pool3d(x, 2), ((1, 2, 4, 4, 4),)),
    "adaptive_avg_pool3d": (lambda x: F.adaptive_avg_pool3d(x, 2), ((1, 2, 5, 4, 4),)),
    "channel_shuffle": (lambda x: torch.channel_shuffle(x, 2), ((1, 4, 3, 3),)),
    "diag_embed": (torch.diag_embed, ((3, 4),)),
    "rot90": (torch.rot90, ((3, 4),)),
    "unfold": (lambda x: F.unfold(x, 2), ((1, 2, 4, 4),)),
    "fold": (lambda x: F.fold(x, (4, 4), 2), ((1, 8, 9),)),
    "nansum": (torch.nansum, ((3, 4),)),
    "isin": (lambda x, y: torch.isin((x * 9).round(), (y * 9).round()), ((4, 4), (6,))),
}  # fmt: skip


@contextmanager
def formulas_run() -> Iterator[list[str]]:
    """Yields a list to which each call of a formula in the block adds the formula's
    name."""
    names: list[str] = []

    def note(frame, event, _) -> None:
        if event == "call" and "_decomp" in frame.f_code.co_filename:
            names.append(frame.f_code.co_name)

    sys.setprofile(note)
    try:
        yield names
    finally:
        sys.setprofile(None)


def _operands(name: str) -> list[Tensor]:
    return [torch.rand(sizes) for sizes in CALLS[name][1]]


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
@pytest.mark.parametrize("name", CALLS)
def test_later_calls_run_no_formula(name: str, mode) -> None:
    call = CALLS[name][0]
    torch.manual_seed(0)
    with mode():
        for turn in range(3):
            operands = _operands(name)
            eager = call(*operands)
            if turn == 2:  # pending operands, after computed ones
                operands = [x * 1.5 for x in operands]
                eager = call(*operands)
            there = [x.to("lazy") for x in operands]
            if turn == 2:
                there = [(x / 1.5).to("lazy") * 1.5 for x in operands]
            with formulas_run() as names, counting() as counts:
                lazy = call(*there)
            assert counts.fallback_calls == counts.implicit_syncs == 0
            assert turn == 0 or not names
            assert lazy.stride() == eager.stride()
            assert lazy.is_inference() == eager.is_inference()
            assert_close(lazy, eager, rtol=1e-4, atol=1e-5)


def test_other_kinds() -> None:
    """A call isn't mistaken for a remembered call that differs in strides, numbers or
    dtypes, or in which operands are the same tensor."""
    torch.manual_seed(1)
    a, b = torch.rand(4, 4), torch.rand(4, 4)
    calls: list[tuple[Callable, tuple]] = [
        (torch.dist, (a, a)),
        (torch.dist, (a, b)),
        (lambda x, y: torch.dist(x, y, 1.5), (a, b)),
        (lambda x, y: torch.dist(x, y, 2.5), (a, b)),
        (torch.dist, (a.double(), b.double())),
        (lambda x: torch.diag_embed(x.t()), (a,)),
        (torch.diag_embed, (a,)),
        (lambda x: x.nan_to_num(), (a,)),
        (lambda x: x.to(torch.int64).nan_to_num(), (a * 9,)),
        (torch.rot90, (a,)),
        (lambda x: torch.rot90(x, 2), (a,)),
    ]
    with torch.no_grad():
        for _ in range(2):
            for call, operands in calls:
                moved = {id(x): x.to("lazy") for x in operands}
                lazy = call(*(moved[id(x)] for x in operands))
                eager = call(*operands)
                assert lazy.dtype == eager.dtype
                assert lazy.stride() == eager.stride()
                assert_close(lazy, eager)


def test_results_are_new() -> None:
    """A write to a result of a remembered call doesn't change operands or other
    results.
    """
    x = torch.rand(4, 4, device="lazy")
    with torch.no_grad():
        for call in (torch.nan_to_num, torch.rot90, lambda a: a.renorm(2, 0, 9.0)):
            kept = [call(x) for _ in range(3)]
            before = x.cpu(), kept[0].cpu()
            kept[2].add_(1)
            assert torch.equal(x.cpu(), before[0])
            assert torch.equal(kept[0].cpu(), before[1])
            assert torch.equal(kept[2].cpu(), before[1] + 1)


def test_gradients_afterwards() -> None:
    """After a remembered call without a gradient, later calls still have the formula's
    gradient."""
    x = torch.rand(4, 4)
    lazy = x.to("lazy")
    with torch.no_grad():
        for _ in range(2):
            torch.trace(lazy)
    grads = []
    for leaf in (x.requires_grad_(), lazy.requires_grad_()):
        torch.dist(leaf, leaf * 2).add(leaf.trace()).backward()
        grads.append(leaf.grad.cpu())
    assert_close(grads[1], grads[0])


def test_rejected_arguments_stay_rejected() -> None:
    x = torch.rand(4, 5, device="lazy")
    with torch.no_grad():
        for _ in range(3):
            with pytest.raises(RuntimeError):
                x[0].trace()


def test_default_dtypes() -> None:
    """A formula is remembered separately for each default dtype."""
    x = torch.arange(6, device="lazy").reshape(2, 3)
    with torch.no_grad():
        for dtype in (torch.float32, torch.float64, torch.float32):
            torch.set_default_dtype(dtype)
            try:
                result = torch.special.xlog1py(x, 2)
            finally:
                torch.set_default_dtype(torch.float32)
            assert result.dtype == dtype
    assert torch_ltc.metrics()["compile_failures"] == 0


def test_a_recording_holds_no_tensors() -> None:
    """Remembered calls and their lists of operands hold no tensors, because these would be
    computed and kept alive.
    """
    torch_ltc.mark_step()
    torch_ltc.wait_device_ops()
    with torch.no_grad():
        x = torch.rand(1, 2, 6, 7, device="lazy")
        before = torch.lazy.memory_stats()["live_tensors"]
        for _ in range(2):
            y = F.interpolate(x, (9, 11), mode="bilinear")
            del y
        assert torch.lazy.memory_stats()["live_tensors"] == before
