"""Views of complex numbers, of wide unsigned integers and of memory as another dtype have
eager's values, strides, offsets, and conjugate and negative bits."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from comparison import assert_same, to_lazy

DTYPES = (torch.complex64, torch.complex128, torch.uint16, torch.uint32, torch.uint64)  # fmt: skip


def numbers(dtype: torch.dtype) -> torch.Tensor:
    x = torch.arange(24).reshape(2, 3, 4)
    return (x + 1j * x.flip(2)).to(dtype) if dtype.is_complex else x.to(dtype)


def compare(function: Callable[[torch.Tensor], object], x: torch.Tensor) -> None:
    def results(value: torch.Tensor) -> list:
        answer = function(value)
        return list(answer) if isinstance(answer, (tuple, list)) else [answer]

    for lazy, eager in zip(results(to_lazy(x)), results(x), strict=True):
        assert_same(lazy, eager, rtol=0, atol=0, equal_nan=False)
        if isinstance(eager, torch.Tensor):
            assert lazy._is_view() == eager._is_view()


VIEWS: dict[str, Callable[[torch.Tensor], object]] = {
    "slice": lambda x: [x[::2], x[:, 1:], x[..., 1::2], x[1, 1:]],
    "transposition": lambda x: [x.t() if x.dim() == 2 else x.mT, x.permute(2, 0, 1)],
    "select": lambda x: [x[1], x.select(2, 3), x[0, 1, 2]],
    "view": lambda x: [x.view(6, 4), x.mT.unflatten(1, (2, 2)), x.flatten(1)],
    "expand": lambda x: x[:, :1].expand(2, 5, 4),
    "diagonal": lambda x: x.diagonal(0, 1, 2),
    "unfold": lambda x: x.unfold(2, 2, 1),
    "lists": lambda x: [*x.split(2, 2), *x.unbind(1), *x.chunk(2, 0)],
    "squeeze": lambda x: [x[:1].squeeze(), x.unsqueeze(2), x[:, 1:2].squeeze(1)],
    "of a view": lambda x: x[1:].mT[:, ::2].transpose(0, 1),
}


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_views(view: Callable, dtype: torch.dtype) -> None:
    compare(view, numbers(dtype))


PARTS: dict[str, Callable[[torch.Tensor], object]] = {
    "real": lambda x: [x.real, x.imag, x.mT.real, x[1:, ::2].imag],
    "as real": lambda x: [torch.view_as_real(x), torch.view_as_real(x.mT[1])],
    "conj": lambda x: [x.conj(), x.conj().conj(), x.mH, x.adjoint()],
    "of conj": lambda x: [x.conj().imag, x.conj().real, x.conj()[1:, 2], x.conj().mT],
    "resolved": lambda x: [
        x.conj().resolve_conj(),
        x.conj().imag.resolve_neg(),
        x.conj().clone(),
        x.conj().imag.clone(),
        x.conj().contiguous(),
    ],
    "computed": lambda x: [
        x.conj() + x,
        x.conj() * 2j,
        x.conj().imag * 3,
        x.conj().sum(0),
        x.conj().mT @ x,
        torch.conj_physical(x.conj()),
        x.conj().imag.abs(),
    ],
    "as_strided": lambda x: [
        x.real.as_strided((2, 2), (4, 2)),
        x.imag.as_strided((3,), (2,)),
        x.real.as_strided((3, 2), (2, 1), 1),
        x.as_strided((2, 3), (3, 1), 1),
    ],
}


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128], ids=str)
@pytest.mark.parametrize("part", PARTS.values(), ids=PARTS)
def test_parts_of_complex_numbers(part: Callable, dtype: torch.dtype) -> None:
    compare(part, numbers(dtype))


def test_writes_through_conjugates() -> None:
    def program(x: torch.Tensor) -> list[torch.Tensor]:
        y = x.clone()
        y.conj().mul_(2j)
        y.conj().imag[0].add_(1)
        y.real.zero_()
        z = x.conj()
        z[1] = x[0]
        return [y, z, x]

    compare(program, numbers(torch.complex64))


@pytest.mark.parametrize("rejected", [torch.view_as_real, lambda x: x.view(torch.float32)])  # fmt: skip
def test_conjugates_have_no_other_dtype(rejected: Callable) -> None:
    for device in ("cpu", "lazy"):
        x = numbers(torch.complex64).to(device).conj()
        with pytest.raises(RuntimeError, match="conjugate"):
            rejected(x)


#: For each view: a function that creates the memory, and one that returns the view of it.
SEEN: dict[str, tuple[Callable, Callable]] = {
    "row-major": (lambda: torch.randn(2, 3, 8), lambda m: m),
    "permuted": (
        lambda: torch.randn(4, 4, 8, dtype=torch.float64),
        lambda m: m.permute(1, 0, 2),
    ),
    "sliced": (lambda: torch.randn(4, 5, 16), lambda m: m[1::2, 1:, :8]),
    "with gaps": (lambda: torch.randn(2, 5, 16), lambda m: m[1:, 1:, ::2]),
    "expanded": (lambda: torch.randn(1, 5, 1), lambda m: m.expand(5, 5, 8)),
    "integers": (lambda: torch.arange(24).reshape(3, 8), lambda m: m[1:]),
}


@pytest.mark.parametrize("dtype", [torch.int32, torch.int16, torch.uint8, torch.int64, torch.complex64], ids=str)  # fmt: skip
@pytest.mark.parametrize("source", SEEN.values(), ids=SEEN)
def test_memory_as_another_dtype(source: tuple, dtype: torch.dtype) -> None:
    make, part = source
    memory = make()

    def seen(device: str) -> object:
        try:
            view = part(memory.to(device)).view(dtype)
        except RuntimeError:
            return "rejected"
        geometry = view.size(), view.stride(), view.storage_offset()
        return geometry, view.is_contiguous(), view.cpu().tolist()

    # Texts are compared, because some elements are NaN, which isn't equal to itself.
    assert str(seen("lazy")) == str(seen("cpu"))


@pytest.mark.parametrize("begin", [1, 2])
@pytest.mark.parametrize("dtype", [torch.int64, torch.complex64])
def test_a_view_of_wider_elements_begins_with_one(
    dtype: torch.dtype, begin: int
) -> None:
    def seen(device: str) -> object:
        part = torch.arange(8.0, device=device)[begin : begin + 4]
        try:
            if dtype.is_complex:
                return torch.view_as_complex(part.view(2, 2)).storage_offset()
            return part.view(dtype).storage_offset()
        except RuntimeError as error:
            return str(error).split(" [aten::")[0]

    assert seen("lazy") == seen("cpu")


def _complex(x: torch.Tensor) -> torch.Tensor:
    return torch.view_as_complex(x.view(-1, 2))


#: Writes to a view of the memory as another dtype, by ops that aren't traced for this dtype
#: or destination.
EAGER_WRITES: dict[str, Callable[[torch.Tensor], object]] = {
    "scan of integers": lambda x: x.view(torch.int32).cumsum_(0),
    "scan of a part": lambda x: x[2:].view(torch.int32).cumsum_(0),
    "scan of bytes": lambda x: x.view(torch.uint8)[::2].cumsum_(0),
    "imaginary parts": lambda x: torch.eq(x[:2], 1, out=_complex(x).imag),
    "real parts": lambda x: torch.sum(x.view(2, 2).double(), 0, out=_complex(x).real),
    "product": lambda x: torch.prod(x.view(2, 2) + 1, 0, out=_complex(x).imag),
    "two results": lambda x: torch.sort(
        x[:2], out=(_complex(x).real, torch.empty(0, dtype=torch.long, device=x.device))
    ),
    "larger elements": lambda x: torch.gt(
        x.view(2, 2), 1, out=x.view(torch.int64).view(torch.float32).view(2, 2)
    ),
}


@pytest.mark.parametrize("name", EAGER_WRITES)
def test_eager_writes_to_a_view_of_another_dtype(name: str) -> None:
    results = []
    for device in ("cpu", "lazy"):
        x = torch.tensor([1.0, 2.0, 0.5, 4.0], device=device)
        EAGER_WRITES[name](x)
        results.append(x.cpu().view(torch.int32))
    assert torch.equal(*results)
