"""Resizing by a given scale has eager's results: which element each position reads depends
on how the scale is rounded, and on whether eager's kernel uses the scale at all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
import torch_ltc
from comparison import compare

#: Scales slightly above 1 or 2 keep or double the size, because the new size is rounded
#: down.
SCALES = [
    *(0.3 + 0.37 * i for i in range(8)),
    1.0,
    1.003,
    1.01,
    1.03,
    2.0,
    2.003,
    2.01,
    2.04,
]
FORMATS = [torch.contiguous_format, torch.channels_last, torch.channels_last_3d]


def image(rank: int, channels: int, moving: int, size: int) -> torch.Tensor:
    """Returns an image in which each element equals its position along dim `moving`."""
    sizes = [1, channels, *[2] * rank]
    sizes[moving] = size
    places = [1] * len(sizes)
    places[moving] = size
    return torch.arange(float(size)).view(places).expand(sizes).contiguous()


def resized(mode: str, rank: int, moving: int, **options: Any) -> Callable:
    def program(x: torch.Tensor) -> Any:
        results = []
        for scale in SCALES:
            scales = [1.0] * rank
            scales[moving - 2] = scale
            out = F.interpolate(x, scale_factor=tuple(scales), mode=mode, **options)
            results.append(out)
            if x.requires_grad:
                weights = torch.arange(1.0, out.numel() + 1, device=x.device)
                (grad,) = torch.autograd.grad((out.flatten() * weights).sum(), x)
                results.append(grad)
        return results

    return program


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact"])
@pytest.mark.parametrize("size", [20, 90])
@pytest.mark.parametrize(
    ("rank", "channels", "moving", "format"),
    [(1, 3, 2, 0), (2, 3, 2, 0), (2, 3, 3, 1), (2, 4, 3, 0), (2, 4, 3, 1), (3, 3, 4, 2), (3, 4, 2, 0), (3, 4, 4, 2)],
)  # fmt: skip
def test_positions(
    mode: str, size: int, rank: int, channels: int, moving: int, format: int
) -> None:
    x = image(rank, channels, moving, size).contiguous(memory_format=FORMATS[format])
    with torch_ltc.config(tier="compile" if rank == 2 else "interpret"):
        compare(resized(mode, rank, moving), x.requires_grad_())


@pytest.mark.parametrize("recomputed", [False, True])
@pytest.mark.parametrize(
    ("mode", "rank"),
    [("linear", 1), ("bilinear", 2), ("bicubic", 2), ("trilinear", 3), ("area", 2)],
)
def test_weights(mode: str, rank: int, recomputed: bool) -> None:
    x = torch.randn(1, 2, *[5] * (rank - 1), 21).requires_grad_()
    program = resized(mode, rank, rank + 1, recompute_scale_factor=recomputed)
    with torch_ltc.config(tier="interpret"):
        compare(program, x)
