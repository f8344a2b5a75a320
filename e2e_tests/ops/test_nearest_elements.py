"""Samples of the nearest element at positions halfway between two: the same one as
eager's, which depends on how positions are rounded and reflected."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("align", [False, True])
@pytest.mark.parametrize("rank", [2, 3])
def test_ties(rank: int, align: bool, padding: str) -> None:
    eager, lazy = [], []
    for length in (2, 3, 5, 6, 7):
        image = torch.arange(float(length**rank)).reshape(1, 1, *[length] * rank)
        for points in (2 * length - 1, 2 * length, 2 * length + 1):
            identity = torch.eye(rank, rank + 1)[None]
            sizes = (1, 1, *[points] * (rank - 1), length)
            grid = F.affine_grid(identity, list(sizes), align_corners=True)
            for scale in (1.0, 1.25, 2.0):
                for device, results in (("cpu", eager), ("lazy", lazy)):
                    results.append(
                        F.grid_sample(
                            image.to(device), (grid * scale).to(device), "nearest",
                            padding, align,
                        )
                    )  # fmt: skip
    for result, expected in zip(lazy, eager, strict=True):
        torch.testing.assert_close(result.cpu(), expected, rtol=0, atol=0)
