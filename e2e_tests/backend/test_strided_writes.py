"""Writes through `as_strided` have eager's results; writes to all parts of a row become one
kernel."""

from __future__ import annotations

import pytest
import torch
import torch_ltc
from comparison import assert_close

CASES = [
    ((24,), (2, 3, 4), (12, 4, 1), 0),
    ((30,), (2, 3), (3, 1), 5),
    ((30,), (3, 2), (1, 3), 4),  # columns first
    ((30,), (2, 1, 3), (3, 7, 1), 0),
    ((60,), (2, 3, 2, 2), (12, 1, 6, 3), 11),
    ((30,), (2, 3), (4, 1), 0),  # with a gap
    ((4, 6), (2, 3), (3, 1), 2),
    ((30,), (0, 3), (3, 1), 0),
    ((30,), (), (), 3),
]


@pytest.mark.parametrize("base, size, stride, offset", CASES)
def test_values(base, size, stride, offset):
    x, source = torch.randn(base), torch.randn(size)
    turned = source.t().contiguous().t() if source.dim() == 2 else source * 2
    for part in (source, turned):
        expected = torch.as_strided_scatter(x, part, size, stride, offset)
        ours = torch.as_strided_scatter(
            x.to("lazy"), part.to("lazy"), size, stride, offset
        )
        assert torch.equal(ours.cpu(), expected)
        assert ours.stride() == expected.stride()
    lazy = x.to("lazy")
    for memory in (x, lazy):
        view = memory.as_strided(size, stride, offset)
        view.copy_(source.to(memory.device))
        view.mul_(2)
    assert torch.equal(lazy.cpu(), x)


@pytest.mark.parametrize("view", [lambda x: x[1:], lambda x: x[:, 1], lambda x: x[1:, 1:].t()])  # fmt: skip
@pytest.mark.parametrize(
    "size, stride, offset", [((2, 2), (6, 1), 1), ((3,), (1,), None)]
)
def test_scattered_into_the_memory_of_a_view(view, size, stride, offset):
    """The strides refer to the view's memory, whose elements outside of the view aren't
    part of the result."""
    memory, source = torch.randn(4, 4), torch.randn(size)

    def program(memory, source):
        result = view(memory).as_strided_scatter(source, size, stride, offset)
        before = result.clone()
        return [before, result.mul_(2), memory]

    wanted = program(memory, source)
    results = program(memory.to("lazy"), source.to("lazy"))
    assert_close(results, wanted)
    assert results[1].stride() == wanted[1].stride()
    assert results[1].storage_offset() == wanted[1].storage_offset()


def test_a_scatter_with_negative_strides():
    x = torch.ones(4, device="lazy")
    for part in (x, x[1:]):
        with pytest.raises(RuntimeError, match="Negative strides are not supported"):
            part.as_strided_scatter(x[:2], (2,), (-1,), 3)


def test_gradient_of_a_scatter_into_columns():
    """Eager has no such gradient."""
    columns = torch.randn(3, 3, device="lazy", requires_grad=True).t()
    with pytest.raises(RuntimeError, match="only supported for contiguous inputs"):
        columns.as_strided_scatter(torch.ones(2, device="lazy"), (2,), (1,))


def test_parts_of_a_row_are_one_kernel():
    row = torch.zeros(80, device="lazy")
    parts = [torch.randn(4, 5, device="lazy") for _ in range(4)]
    torch_ltc.mark_step()
    for i, part in enumerate(parts):
        row.as_strided((4, 5), (5, 1), 20 * i).copy_(part)
    torch_ltc.mark_step()
    torch_ltc.wait_device_ops()
    commands = torch_ltc.debug.plan()["commands"]
    assert [command["ops"] for command in commands] == [["aten.slice_scatter"]]
    assert torch.equal(row.cpu(), torch.cat([part.flatten().cpu() for part in parts]))
