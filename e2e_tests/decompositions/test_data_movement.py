"""Decompositions of stack, split, unbind, pixel_shuffle and take."""

import torch
from decompositions.comparison import compare


def test_stack():
    tensors = [torch.randn(2, 3) for _ in range(3)]
    for dim in (0, 1, 2, -1, -3):
        compare("aten.stack", tensors, dim)
    compare("aten.stack", [torch.randn(2), torch.arange(2)], 0)
    compare("aten.stack", [torch.tensor(1.0), torch.tensor(2.0)], 0)


def test_lists():
    x = torch.randn(5, 7)
    ops = compare("aten.split.Tensor", x, 3, 1)
    assert "prim.ListUnpack" not in ops
    compare("aten.split.Tensor", x, 7, -1)
    compare("aten.split.Tensor", x, 100, 0)
    compare("aten.split_with_sizes", x, [2, 0, 5], 1)
    compare("aten.split_with_sizes", x, [1, 4], -2)
    compare("aten.unbind.int", x, 0)
    compare("aten.unbind.int", x, -1)
    compare("aten.split.Tensor", torch.empty(0, 2), 3, 0)


def test_pixel_shuffle():
    x = torch.randn(2, 12, 3, 4)
    compare("aten.pixel_shuffle", x, 2)
    compare("aten.pixel_shuffle", x[0], 2)
    compare("aten.pixel_unshuffle", torch.randn(2, 3, 6, 4), 2)


def test_take():
    x = torch.randn(3, 4)
    compare("aten.take", x, torch.tensor([[0, 11], [-12, -1]]))
    compare("aten.take", x, torch.tensor(5))
    compare("aten.take", torch.randn(()), torch.tensor([0, -1]))
    compare("aten.take", x, torch.empty(0, dtype=torch.int64))
