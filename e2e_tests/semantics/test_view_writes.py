"""Writes through views reach all tensors that share the memory, as in eager."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from comparison import assert_close, compare

VIEWS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "slice": lambda x: x[1:3],
    "slice with a step": lambda x: x[::2, 1:, ::2],
    "select": lambda x: x[1],
    "select inside": lambda x: x[:, 2],
    "negative select": lambda x: x[..., -1],
    "transpose": lambda x: x.transpose(0, 2),
    "permute": lambda x: x.permute(1, 2, 0),
    "view": lambda x: x.view(-1),
    "view with a size": lambda x: x.view(2, 2, 15),
    "reshape": lambda x: x.reshape(20, 3),
    "flatten": lambda x: x.flatten(1),
    "unsqueeze": lambda x: x.unsqueeze(1),
    "squeeze": lambda x: x[:, :1].squeeze(1),
    "as_strided": lambda x: x.as_strided((3, 2), (15, 4), 5),
    "as_strided of a slice": lambda x: x[1:].as_strided((3, 2), (5, 1), 2),
    "as_strided outside of a detached slice": lambda x: (
        x[1].detach().as_strided((3, 2), (15, 4), 5)
    ),
    "as_strided of a permutation": lambda x: x.permute(2, 0, 1).as_strided(
        (4, 2), (7, 3)
    ),
    "unbind": lambda x: x.unbind(1)[2],
    "split": lambda x: x.split(2)[1],
    "split with sizes": lambda x: x.split([1, 3, 1], 2)[1],
    "chunk": lambda x: x.chunk(2, 1)[0],
    "tensor_split": lambda x: x.tensor_split(3)[1],
    "narrow": lambda x: x.narrow(1, 1, 2),
    "diagonal": lambda x: x.diagonal(0, 1, 2),
    "diagonal below": lambda x: x.diagonal(-1, 0, 2),
    "movedim": lambda x: x.movedim(0, -1),
    "swapaxes": lambda x: x.swapaxes(0, 1),
    "unfold": lambda x: x.unfold(2, 2, 3),
    "unflatten": lambda x: x.unflatten(0, (2, 2)),
    "expanded transpose": lambda x: x.transpose(0, 2).expand(2, 5, 3, 4)[1],
    "windows of a transpose": lambda x: x.transpose(0, 2).unfold(0, 1, 1),
    "squeezed transpose": lambda x: x[:, :1].transpose(0, 2).squeeze(1),
    "expanded and selected": lambda x: x[:, :1].expand(4, 6, 5)[:, 2],
    "detach": lambda x: x.detach(),
    "alias": lambda x: torch.ops.aten.alias(x),
    "T": lambda x: x[0].T,
    "mT": lambda x: x.mT,
    "view_as": lambda x: x.view_as(torch.empty(12, 5)),
    "view of a view": lambda x: x[1:].transpose(0, 1)[1:].select(2, 3),
    "select of a split of a view": lambda x: x.view(5, 12).split(4, 1)[1][2],
    "diagonal of a transpose": lambda x: x.transpose(1, 2)[2].diagonal(),
    "empty": lambda x: x[2:2],
}

#: Views of complex tensors with a conjugate or negative bit: their elements differ from
#: the numbers in memory.
OF_BITS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "as_strided of conj": lambda x: x.conj().as_strided((2, 3), (3, 1), 1),
    "as_strided of a part of conj": lambda x: x.conj()[1:].as_strided((3,), (2,)),
    "as_strided of a negative": lambda x: torch._neg_view(x).as_strided((2,), (2,)),
    "as_strided_copy of conj": lambda x: torch.as_strided_copy(x.conj(), (3,), (2,)),
}

WRITES: dict[str, Callable[[torch.Tensor], object]] = {
    "add_": lambda v: v.add_(10),
    "mul_ by itself": lambda v: v.mul_(v.clone()),
    "fill_": lambda v: v.fill_(7),
    "copy_": lambda v: v.copy_(torch.arange(v.numel()).view(v.shape)),
    "setitem": lambda v: v.__setitem__(..., -2.0),
}


def source() -> torch.Tensor:
    return torch.arange(60.0).reshape(4, 3, 5)


@pytest.mark.parametrize("name", VIEWS)
def test_writes(name: str) -> None:
    """Each write is followed by reads of the base, of the view, and of a view created
    before the write."""
    view = VIEWS[name]
    for write in WRITES.values():

        def program(x: torch.Tensor, write: Callable = write) -> list[torch.Tensor]:
            before = x[2]
            v = view(x)
            write(v)
            return [v, before, before + x, v * 2, view(x)]

        compare(program, source())


@pytest.mark.parametrize("name", VIEWS)
def test_writes_to_the_base(name: str) -> None:
    def program(x: torch.Tensor) -> list[torch.Tensor]:
        v = VIEWS[name](x)
        x.mul_(2)
        x[0] = 5
        w = v.clone()
        v.sub_(1)
        return [v, w, x[1]]

    compare(program, source())


def test_strided_bases() -> None:
    """Writes through views reach a base that isn't row-major itself."""
    base = source().unsqueeze(0).to(memory_format=torch.channels_last)

    def program(x: torch.Tensor) -> list[torch.Tensor]:
        v, w = x[0, 1], x.permute(0, 2, 3, 1).view(-1)
        v.add_(100)
        w[3:9].zero_()
        return [v, w, x, x + 1]

    compare(program, base)


def test_expanded_memory_is_rejected() -> None:
    compare(lambda x: x[:1].expand(4, 3, 5).add_(1), source())


def test_view_as_real() -> None:
    def program(x: torch.Tensor) -> list[torch.Tensor]:
        complex_x = torch.view_as_complex(x)
        real = torch.view_as_real(complex_x)
        real[0].add_(1)
        return [real, x, complex_x.abs()]

    compare(program, torch.arange(12.0).reshape(3, 2, 2))


def test_view_of_another_dtype() -> None:
    compare(
        lambda x: [x.view(torch.int32), x.view(torch.int16)], torch.tensor([1.0, -2.5])
    )


def test_overlapping_windows() -> None:
    def program(x: torch.Tensor) -> list[torch.Tensor]:
        windows = x.unfold(0, 3, 1)
        x[3] = -1
        return [windows, windows.sum(1), x]

    compare(program, torch.arange(8.0))


REPEATED = {
    "expand": lambda x: x[:1].expand(3, 5),
    "expanded rows": lambda x: x.expand(2, 4, 5)[:, 1:],
    "unfold": lambda x: x.unfold(1, 2, 1)[1],
    "as_strided": lambda x: x.as_strided((3, 4), (1, 1)),
}


@pytest.mark.parametrize(
    "dtype",
    [
        torch.float32,
        torch.float64,
        torch.bfloat16,
        torch.complex64,
        torch.complex128,
        torch.int32,
        torch.uint16,
        torch.float8_e5m2,
        torch.bool,
    ],
    ids=str,
)
@pytest.mark.parametrize("name", REPEATED)
def test_repeated_elements_have_the_written_bits(name: str, dtype: torch.dtype) -> None:
    """A write through a view in which an element occurs several times stores exactly the
    written value, be it a signed zero, a NaN or a complex number."""

    def write(device: str, value: float) -> torch.Tensor:
        x = torch.arange(20).reshape(4, 5).to(dtype)
        x[0, 1] = 0.0
        if dtype.is_floating_point or dtype.is_complex:
            x[0, 2] = float("nan")
        x = x.to(device)
        REPEATED[name](x).fill_(value)
        return x.cpu().contiguous().view(torch.uint8)

    values = [2, 0]
    if dtype.is_floating_point or dtype.is_complex:
        values += [-0.0, float("nan"), float("inf")]
    for value in values:
        assert torch.equal(write("lazy", value), write("cpu", value)), value


def test_many_writes_between_reads() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        rows = x.unbind(0)
        for i, row in enumerate(rows):
            row.add_(i)
            x[:, i % 3].mul_(1.5)
            rows[0].add_(row)
        return x

    compare(program, source())


def test_inplace_view_ops() -> None:
    def program(x: torch.Tensor) -> list[torch.Tensor]:
        y = x[1]
        x.transpose_(0, 2)
        x.unsqueeze_(1)
        x[0].zero_()
        x.squeeze_(1)
        x.swapdims_(0, 1)
        y.t_()
        y.add_(3)
        return [x, y]

    compare(program, source())


def test_as_strided_of_a_view_whose_base_has_shrunk() -> None:
    def program(x: torch.Tensor) -> list[torch.Tensor]:
        view = x[1]
        x.as_strided_((2,), (1,))
        strided = view.as_strided((4,), (2,), 3)
        strided.mul_(10)
        return [x, view, strided]

    compare(program, torch.arange(12.0).view(3, 4))


def test_as_strided_in_place_of_a_view() -> None:
    def program(x: torch.Tensor) -> list:
        view, other = x[1, 1:], x[2]
        view.as_strided_((2, 2), (5, 1))
        view.add_(100)
        with pytest.raises(RuntimeError):
            other.as_strided_((99,), (99,))
        return [x, view, other, view.add_(1)]

    compare(program, torch.arange(15.0).view(3, 5).t())


SHAPES_IN_PLACE = {
    "as_strided_": lambda x: x.as_strided_((2,), (1,)),
    "squeeze_": lambda x: x.squeeze_(),
    "squeeze_.dim": lambda x: x.squeeze_(1),
    "squeeze_.dims": lambda x: x.squeeze_((1,)),
    "swapaxes_": lambda x: x.swapaxes_(0, 2),
    "t_": lambda x: x.t_(),
    "transpose_": lambda x: x.transpose_(0, 2),
    "unsqueeze_": lambda x: x.unsqueeze_(0),
}


@pytest.mark.parametrize("name", SHAPES_IN_PLACE)
def test_another_shape_for_a_base_with_gradients(name: str) -> None:
    """The change is rejected if the base has views, because torch 2.13 would lose the
    views' gradients."""
    change = SHAPES_IN_PLACE[name]

    def program(leaf: torch.Tensor) -> torch.Tensor:
        x = leaf * leaf
        change(x)
        (x * torch.arange(x.numel()).view(x.shape).to(x.device)).sum().backward()
        return leaf.grad

    source = torch.arange(1.0, 10.0).view((3, 3) if name == "t_" else (3, 1, 3))
    compare(lambda x: program(x.requires_grad_()), source)
    x = source.to("lazy").requires_grad_() * 2
    view = x[0]
    with pytest.raises(RuntimeError, match="shape of a tensor that shares memory"):
        change(x)
    assert x.shape == source.shape
    assert_close(view, source[0] * 2)
    with torch.no_grad():
        change(x)


#: Changes of the shape of a 3x3 view that doesn't begin at the base's first element.
OTHER_SHAPES = {
    "as_strided_": lambda v: v.as_strided_((2, 2), (1, 4)),
    "as_strided_ outside of the view": lambda v: v.as_strided_((3, 3), (1, 4), 0),
    "squeeze_": lambda v: v.unsqueeze_(1).squeeze_(),
    "squeeze_.dim": lambda v: v.unsqueeze_(0).squeeze_(0),
    "squeeze_.dims": lambda v: v.unsqueeze_(2).squeeze_((2, 1)),
    "swapaxes_": lambda v: v.swapaxes_(0, 1),
    "t_": lambda v: v.t_(),
    "transpose_": lambda v: v.transpose_(0, 1),
    "unsqueeze_": lambda v: v.unsqueeze_(-1),
}

#: Writes after the view's shape has changed.
LATER_WRITES = {
    "nothing": lambda v, x, w: None,
    "the view": lambda v, x, w: v.mul_(w),
    "the base": lambda v, x, w: x.mul_(2),
    "a part of the view": lambda v, x, w: v[0].copy_(w[1]),
}


@pytest.mark.parametrize("name", OTHER_SHAPES)
@pytest.mark.parametrize("write", LATER_WRITES)
def test_another_shape_for_a_view_with_gradients(name: str, write: str) -> None:
    """A view whose shape is changed in place has eager's gradients, also if its memory is
    written later: torch (2.13) then regenerates the view's gradient function."""

    def program(leaf: torch.Tensor) -> list:
        x = leaf * leaf
        view = x[1:, 1:]
        OTHER_SHAPES[name](view)
        w = torch.arange(1.0, view.numel() + 1).view(view.shape).to(x.device)
        w.requires_grad_()
        LATER_WRITES[write](view, x, w)
        again = view.as_strided((2,), (1,))  # counts from the view's own offset
        loss = (x * torch.arange(1.0, 17.0).view(4, 4).to(x.device)).sum()
        loss = loss + (view * w * w).sum() + again.sum()
        return [view, again, *torch.autograd.grad(loss, [leaf, w])]

    source = torch.arange(16.0).view(4, 4)
    compare(lambda x: program(x.requires_grad_()), source)


def test_as_strided_outside_of_a_view_with_gradients() -> None:
    def program(leaf: torch.Tensor) -> list:
        x = leaf * leaf
        outside = x[1:3, 1:].as_strided((3, 2), (4, 1), 1)
        x.mul_(2)
        outside.mul_(3)
        return [outside, torch.autograd.grad((outside * outside).sum(), leaf)]

    source = torch.arange(16.0).view(4, 4)
    compare(lambda x: program(x.requires_grad_()), source)


@pytest.mark.parametrize("name", ["squeeze_", "t_", "unsqueeze_"])
def test_another_shape_keeps_the_offset(name: str) -> None:
    def program(x: torch.Tensor) -> list:
        view = x[1:2]
        SHAPES_IN_PLACE[name](view)
        view.add_(10)
        return [view, view.as_strided((2,), (1,)), view.storage_offset(), x]

    compare(program, torch.arange(12.0).view(3, 4))


def test_a_view_outlives_its_base() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        view = (x + 1)[1:].transpose(0, 1)
        view.add_(1)
        return view

    compare(program, source())


@pytest.mark.parametrize("name", OF_BITS)
def test_views_with_bits(name: str) -> None:
    def program(x: torch.Tensor) -> list:
        view = OF_BITS[name](x)
        bits = view.is_conj(), view.is_neg()
        before = view.clone()
        view.add_(3)
        return [view, before, bits]

    compare(program, torch.complex(torch.arange(12.0), torch.arange(1.0, 13.0)))


@pytest.mark.parametrize(
    "shape", [(0,), (0, 3), (2, 0, 3), ()], ids=["0", "0x3", "2x0x3", "scalar"]
)
def test_empty_and_scalar(shape: tuple[int, ...]) -> None:
    def program(x: torch.Tensor) -> list[torch.Tensor]:
        flat = x.view(-1)
        flat.add_(2)
        x.mul_(3)
        return [flat, x, x.unsqueeze(0), x.expand(2, *x.shape), x.sum(), x.t() + 1
                if x.dim() < 3 else x.mT]  # fmt: skip

    compare(program, torch.ones(shape))


def _complex(size: int) -> torch.Tensor:
    return torch.complex(torch.arange(float(size)), -torch.arange(float(size)))


REINTERPRETED: dict[str, Callable[[], tuple[torch.Tensor, torch.Tensor]]] = {
    "view_as_real": lambda: (b := _complex(6), torch.view_as_real(b)),
    "real part": lambda: (b := _complex(6), b.real),
    "imaginary part of a slice": lambda: (b := _complex(6), b[2:].imag),
    "view_as_complex": lambda: (
        b := torch.arange(12.0),
        torch.view_as_complex(b.view(6, 2)),
    ),
    "complex of odd memory": lambda: (
        b := torch.arange(13.0),
        torch.view_as_complex(b[:12].view(6, 2)),
    ),
    "integers": lambda: (b := torch.arange(8.0), b.view(torch.int32)),
    "shorter": lambda: (b := torch.arange(8.0), b.view(torch.int16)),
    "longer": lambda: (b := torch.arange(8.0), b.view(torch.float64)),
    "of a slice": lambda: (b := torch.arange(8.0), b[2:].view(torch.int32)),
}


@pytest.mark.parametrize("write", [True, False])
@pytest.mark.parametrize("kind", REINTERPRETED)
def test_as_strided_of_reinterpreted_memory(kind: str, write: bool) -> None:
    """DistributedDataParallel has such views of complex parameters in its buckets."""
    results = []
    for device in ("cpu", "lazy"):
        with torch.device(device):
            base, view = REINTERPRETED[kind]()
        part = view.as_strided((3,), (1,), view.storage_offset())
        if write and kind != "complex of odd memory":
            part.mul_(2)
        results.append([part.cpu(), view.cpu(), base.cpu(), part.stride()])
    assert_close(results[1], results[0], rtol=0, atol=0, equal_nan=True)
