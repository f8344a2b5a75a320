"""Sampled images, and the gradients of the sampling positions, equal eager's at positions
where rounding decides the result: halfway between two elements, where either may be the
nearest one, and at the center of an element, where the gradient is discontinuous."""

from __future__ import annotations

import math

import pytest
import torch
from comparison import assert_close
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
    assert_close(lazy, eager, rtol=0, atol=0)


@pytest.mark.parametrize("rank", [2, 3])
@pytest.mark.parametrize("align", [False, True])
def test_grids_of_the_identity_are_eagers(align: bool, rank: int) -> None:
    for length in (2, 3, 5, 7, 28, 33):
        theta = torch.eye(rank, rank + 1).repeat(2, 1, 1)
        sizes = [2, 1, *range(length, length + rank)]
        expected = F.affine_grid(theta, sizes, align_corners=align)
        grid = F.affine_grid(theta.to("lazy"), sizes, align_corners=align)
        assert_close(grid, expected, rtol=0, atol=0)


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("align", [False, True])
@pytest.mark.parametrize("rank", [2, 3])
def test_gradients_at_centers(rank: int, align: bool, padding: str) -> None:
    """Gradients equal eager's if all positions are elements' centers, as in a spatial
    transformer that starts as the identity."""
    for length in (3, 5, 6, 28 if rank == 2 else 7):
        image = torch.randn(2, 3, *[length] * rank)
        gradients = []
        for device in ("cpu", "lazy"):
            theta = torch.eye(rank, rank + 1).repeat(2, 1, 1).to(device)
            grid = F.affine_grid(theta, list(image.shape), align_corners=align)
            grid.requires_grad_()
            x = image.to(device, copy=True).requires_grad_()
            sampled = F.grid_sample(x, grid, padding_mode=padding, align_corners=align)
            (sampled * sampled).sum().backward()
            gradients.append((grid.grad.cpu(), x.grad.cpu()))
        assert_close(gradients[1], gradients[0], rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize(
    "rank, mode", [(2, "bilinear"), (2, "nearest"), (3, "nearest")]
)
@pytest.mark.parametrize("padding", ["zeros", "border"])
def test_points_that_are_not_finite(padding: str, mode: str, rank: int) -> None:
    """Samples and gradients equal eager's at infinite and NaN coordinates, which a model
    that diverges computes. (Eager's gradient reads outside of the image for NaN with
    padding border, and for infinities with padding reflection: both are left out.)"""
    numbers = [math.inf, -math.inf, 0.3, 1e30, -1e30, 1.0, -1.0]
    numbers += [math.nan] if padding == "zeros" else []
    axes = [torch.tensor(numbers)] * rank
    points = torch.stack(torch.meshgrid(*axes, indexing="ij"), -1)[None]
    image = torch.randn(1, 2, *[5] * rank)
    results = []
    for device in ("cpu", "lazy"):
        grid = points.to(device, copy=True).requires_grad_()
        sampled = F.grid_sample(
            image.to(device), grid, mode, padding, align_corners=False
        )
        sampled.nansum().backward()
        results.append((sampled.detach().cpu(), grid.grad.cpu()))
    assert_close(results[1], results[0], equal_nan=True)


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
@pytest.mark.parametrize("rank", [2, 3])
def test_values_at_points_that_are_not_finite(
    rank: int, mode: str, padding: str
) -> None:
    """As in eager, NaN (also that of a reflected infinity) samples one end of an image,
    but the other end of a volume."""
    numbers = [math.inf, -math.inf, math.nan, 0.3, 1.7, -0.4]
    axes = [torch.tensor(numbers)] * rank
    points = torch.stack(torch.meshgrid(*axes, indexing="ij"), -1)[None]
    for length in (1, 2, 5):
        image = torch.arange(2.0 * length**rank).reshape(1, 2, *[length] * rank) + 1
        for align in (False, True):
            expected, result = (
                F.grid_sample(
                    image.to(device), points.to(device), mode, padding, align
                ).cpu()
                for device in ("cpu", "lazy")
            )
            assert_close(result, expected, equal_nan=True)
