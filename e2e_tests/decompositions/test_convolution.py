"""Decompositions of the gradients of transposed convolutions."""

import pytest
import torch
from decompositions.comparison import compare

# input, weight, stride, padding, dilation, output_padding, groups
GEOMETRIES = {
    "1d": ([2, 3, 5], [3, 4, 3], [2], [1], [1], [1], 1),
    "2d": ([2, 4, 5, 6], [4, 3, 3, 2], [2, 3], [1, 0], [1, 1], [1, 2], 1),
    "groups": ([1, 4, 5, 5], [4, 3, 3, 3], [2, 2], [0, 1], [2, 1], [0, 0], 2),
}


def arguments(name, mask, dtype=torch.float32):
    sizes, weight_sizes, *window, padding, groups = GEOMETRIES[name]
    x = torch.randn(sizes, dtype=dtype)
    weight = torch.randn(weight_sizes, dtype=dtype)
    window = [*window, True, padding, groups]
    gradient = torch.randn_like(torch.ops.aten.convolution(x, weight, None, *window))
    return gradient, x, weight, [gradient.shape[1]], *window, mask


@pytest.mark.parametrize("name", GEOMETRIES)
def test_transposed(name):
    compare(
        "aten.convolution_backward", *arguments(name, [True] * 3), rtol=1e-4, atol=1e-4
    )


# The bias's gradient isn't tested alone: eager only computes it together with the weight's
# gradient.
@pytest.mark.parametrize("wanted", range(2))
def test_one_gradient(wanted):
    mask = [number == wanted for number in range(3)]
    made = compare(
        "aten.convolution_backward", *arguments("2d", mask), rtol=1e-4, atol=1e-4
    )
    assert ("aten.convolution_backward" in made) == (wanted == 1)


def test_float64():
    compare("aten.convolution_backward", *arguments("2d", [True] * 3, torch.float64))
