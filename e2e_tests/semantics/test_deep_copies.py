"""`copy.deepcopy` of tensors that share memory gives copies that share memory."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn


def _part_last(x: Tensor) -> list[Tensor]:
    whole, part = copy.deepcopy([x, x[2:]])
    whole.fill_(9)
    return [whole, part]


def _part_first(x: Tensor) -> list[Tensor]:
    part, whole = copy.deepcopy([x[2:], x])
    part.fill_(9)
    return [whole, part]


def _other_shapes(x: Tensor) -> list[Tensor]:
    matrix = x.view(2, 3)
    copies = copy.deepcopy([matrix, matrix.view(6), matrix.t()])
    copies[1].add_(1)
    copies[2][0, 1] = 5
    return copies


def _strided(x: Tensor) -> list[Tensor]:
    return copy.deepcopy([x[:1].expand(3), x.view(2, 3).t(), x[1::2]])


def _without_shared_memory(x: Tensor) -> list[Tensor]:
    first, second = copy.deepcopy(x[1:3]), copy.deepcopy(x)
    first.fill_(7)
    return [first, second, x]


def _buffers(x: Tensor) -> list[Tensor]:
    module = nn.Module()
    module.register_buffer("whole", x)
    module.register_buffer("part", x[1:3])
    module.layer = nn.Linear(2, 2)
    copied = copy.deepcopy(module)
    copied.whole.mul_(2)
    return [copied.whole, copied.part, x]


def _gradients(x: Tensor) -> list[Tensor]:
    x.requires_grad_()
    x.sum().backward()
    leaf, alias = copy.deepcopy([x, x.detach()])
    alias.mul_(3)
    (leaf * leaf).sum().backward()
    return [leaf, alias, leaf.grad, x.grad]


def _other_dtypes(x: Tensor) -> list[Tensor]:
    bits, numbers, nothing = copy.deepcopy(
        [x.view(torch.int32), torch.view_as_complex(x.view(3, 2)), x[:0]]
    )
    return [bits, torch.view_as_real(numbers), nothing]


def _written_in_another_dtype(x: Tensor) -> list[Tensor]:
    number = torch.complex(x, x + 1)
    whole, bits = copy.deepcopy([x, x.view(torch.int32)])
    complex_, pairs, conjugate = copy.deepcopy(
        [number, torch.view_as_real(number), number.conj()]
    )
    whole[2:].zero_()
    complex_[1] = 4
    return [whole, bits, pairs, conjugate.imag.resolve_neg()]


@pytest.mark.parametrize(
    "program",
    [
        _part_last,
        _part_first,
        _other_shapes,
        _strided,
        _without_shared_memory,
        _buffers,
        _gradients,
        _other_dtypes,
        _written_in_another_dtype,
    ],
)
def test_deep_copy(program: Callable[[Tensor], list[Tensor]]) -> None:
    described = []
    for device in ("cpu", "lazy"):
        described.append(
            [
                (t.tolist(), t.dtype, t.stride(), t.storage_offset(), t.requires_grad)
                for t in program(torch.arange(6.0, device=device))
            ]
        )
    assert described[0] == described[1]
