"""Writes are rejected as in eager if operands share memory or elements of the result
overlap; similar writes are allowed."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from comparison import compare, outcome, to_lazy

Program = Callable[[torch.Tensor], object]


def rows(x: torch.Tensor) -> torch.Tensor:
    return torch.arange(4, device=x.device)


def places(x: torch.Tensor) -> torch.Tensor:
    return torch.zeros(4, 5, dtype=torch.int64, device=x.device)


# `x` has five rows: x[1:] and x[:-1] share three of them.
SHARED: dict[str, Program] = {
    "add_": lambda x: x[1:].add_(x[:-1]),
    "copy_": lambda x: x[1:].copy_(x[:-1]),
    "pow_": lambda x: x[1:].pow_(x[:-1]),
    "setitem": lambda x: x.__setitem__(slice(1, None), x[:-1]),
    "a transposed self": lambda x: x.mul_(x.t()),
    "addcmul_": lambda x: x[1:].addcmul_(x[1:], x[:-1]),
    "lerp_": lambda x: x[1:].lerp_(x[:-1], 0.5),
    "clamp_": lambda x: x[1:].clamp_(min=x[:-1]),
    "foreach": lambda x: torch._foreach_add_([x[1:]], [x[:-1]]),
    "add out": lambda x: torch.add(x[:-1], 1, out=x[1:]),
    "foreach copy": lambda x: torch._foreach_copy_([x[1:]], [x[:-1]]),
    "max out": lambda x: torch.max(x[:-1], 1, out=(x[0, :4], rows(x))),
    "median out": lambda x: torch.median(x, 1, out=(x[0], places(x)[0])),
    "index_add out": lambda x: torch.index_add(x[:4] * 1, 0, rows(x), x[:4], out=x[:4]),
    "index_copy out": lambda x: torch.index_copy(
        x[:4] * 1, 0, rows(x), x[:4], out=x[:4]
    ),
    "scatter out": lambda x: torch.scatter(x[:4] * 1, 0, places(x), x[:4], out=x[:4]),
    "scatter_add out": lambda x: torch.scatter_add(
        x[:4] * 1, 0, places(x), x[:4], out=x[:4]
    ),
    "addmm out": lambda x: torch.addmm(x[:-1], x[1:] * 1, x * 1, out=x[1:]),
    "cumsum out": lambda x: torch.cumsum(x[:-1], 0, out=x[1:]),
    "cat out": lambda x: torch.cat([x[:2], x[3:]], out=x[:4]),
    "gather out": lambda x: torch.gather(x[:4], 0, places(x), out=x[:4]),
    "where out": lambda x: torch.where(x[:-1] > 3, x[:-1], x[:1] * 2, out=x[1:]),
    "sort out": lambda x: torch.sort(x[:-1], out=(x[1:], places(x))),
    "index_add_": lambda x: x[1:].index_add_(0, rows(x), x[1:]),
    "index_copy_": lambda x: x[1:].index_copy_(0, rows(x), x[:-1]),
    "index_put_": lambda x: x[1:].index_put_((rows(x),), x[:-1]),
    "scatter_": lambda x: x[1:].scatter_(0, places(x), x[:-1]),
    "nonzero out": lambda x: torch.nonzero(whole := x.long(), out=whole),
    "scatter_add_": lambda x: x[1:].scatter_add_(0, places(x), x[1:]),
    "cross out": lambda x: torch.linalg.cross(
        whole := x[:, :3] * 1, whole + 1, dim=1, out=whole
    ),
    "aminmax out": lambda x: torch.aminmax(x, dim=0, out=(x[0], x[1])),
    "kthvalue out": lambda x: torch.kthvalue(x, 2, out=(x[0], places(x)[0])),
    "mode out": lambda x: torch.mode(x, 1, out=(x[0], places(x)[0])),
    "zeta out": lambda x: torch.special.zeta(x[:-1], x[0] * 1, out=x[1:]),
    "put_": lambda x: x[1:].put_(rows(x), x[1, :4]),
}

DEPRECATED: dict[str, Program] = {
    "index_put_": lambda x: x[:1].expand(4, 5).index_put_((rows(x),), x[1, 1]),
    "setitem": lambda x: x[:1].expand(4, 5).__setitem__(rows(x), 2.0),
    "index_fill_": lambda x: x[:1].expand(4, 5).index_fill_(0, rows(x), 2.0),
    "masked_fill_": lambda x: x[:1].expand(5, 5).masked_fill_(x[0] > 2, 2.0),
    "masked_fill_ with a tensor": lambda x: (
        x[:1].expand(5, 5).masked_fill_(x[0] > 2, x[1, 1])
    ),
}

REPEATED: dict[str, Program] = {
    "rrelu_": lambda x: torch.rrelu_(x[:1].expand(5, 5)),
    "rrelu_ in training": lambda x: torch.rrelu_(x[:1].expand(5, 5), training=True),
    "add_": lambda x: x[:1].expand(5, 5).add_(1),
    "relu_": lambda x: x[:1].expand(5, 5).relu_(),
    "copy_": lambda x: x[:1].expand(5, 5).copy_(x * 2),
    "uniform_": lambda x: x[:1].expand(5, 5).uniform_(),
    "cumsum_": lambda x: x[:1].expand(5, 5).cumsum_(0),
    "addmm_": lambda x: x[:1].expand(5, 5).addmm_(x * 1, x * 1),
    "index_add_": lambda x: x[:1].expand(4, 5).index_add_(0, rows(x), x[:4] * 1),
    "scatter_": lambda x: x[:1].expand(4, 5).scatter_(0, places(x), 1.0),
    "foreach": lambda x: torch._foreach_mul_([x[:1].expand(5, 5)], 2.0),
    "foreach copy": lambda x: torch._foreach_copy_([x[:1].expand(5, 5)], [x * 2]),
    "<<=": lambda x: x[:1].long().expand(5, 5).__ilshift__(1),
    ">>= of a tensor": lambda x: x[:1].long().expand(4, 5).__irshift__(places(x)),
    "flip out": lambda x: torch.ops.aten.flip.out(
        x, [0], out=x[:1].clone().expand(5, 5)
    ),
    "var_mean out": lambda x: torch.ops.aten.var_mean.correction_out(
        x, [0], out0=x[0] * 1, out1=x[0, :1].clone().expand(5)
    ),
    "ldexp_": lambda x: x[:1].expand(4, 5).ldexp_(places(x)),
    "mvlgamma_": lambda x: (x[:1] + 4).expand(5, 5).mvlgamma_(2),
    "conj_physical_": lambda x: torch.complex(x, x)[:1].expand(5, 5).conj_physical_(),
    "fill_ with a tensor": lambda x: x[:1].expand(5, 5).fill_(x[1, 1]),
    "complex out": lambda x: torch.complex(
        x, x, out=torch.complex(x, x)[:1].expand(5, 5)
    ),
    "fft out": lambda x: torch.fft.fft(x, out=torch.complex(x, x)[:1].expand(5, 5)),
    "nan_to_num out": lambda x: torch.nan_to_num(x, out=x[:1].clone().expand(5, 5)),
    "scatter_reduce out": lambda x: torch.scatter_reduce(
        x[:4], 0, places(x), x, "amax", out=x[:1].clone().expand(4, 5)
    ),
    "transpose_copy out": lambda x: torch.transpose_copy(
        x, 0, 1, out=x[:1].clone().expand(5, 5)
    ),
    "add out": lambda x: torch.add(x, 1, out=x[:1].clone().expand(5, 5)),
    "mm out": lambda x: torch.mm(x, x, out=x[:1].clone().expand(5, 5)),
    "stack out": lambda x: torch.stack([x[1], x[2]], out=x[0].clone().expand(2, 5)),
    "aminmax out": lambda x: torch.aminmax(
        x, dim=0, out=(x[0] * 1, x[1, :1].clone().expand(5))
    ),
    "kthvalue out": lambda x: torch.kthvalue(
        x, 2, out=(x[0] * 1, places(x)[0, :1].expand(5))
    ),
    "mode out": lambda x: torch.mode(
        x, 1, out=(x[0, :1].clone().expand(5), places(x)[0])
    ),
    "avg_pool2d out": lambda x: torch._C._nn.avg_pool2d(
        x[None, None], 1, out=x[:1].clone().expand(1, 1, 5, 5)
    ),
    "qr out": lambda x: torch.linalg.qr(x, out=(x * 1, x[:1].clone().expand(5, 5))),
    "chunk_cat out": lambda x: torch._chunk_cat(
        [x], 0, 2, out=x[0, :1].clone().expand(2, 15)
    ),
    "split copies out": lambda x: torch.split_with_sizes_copy(
        x, [2, 3], out=[x[:2] * 1, x[:1].clone().expand(3, 5)]
    ),
    "unbound copies out": lambda x: torch.unbind_copy(
        x[:2], out=[x[0] * 1, x[0, :1].clone().expand(5)]
    ),
    "topk out": lambda x: torch.topk(
        x[:4], 5, out=(x[0].clone().expand(4, 5), places(x))
    ),
}

ALLOWED: dict[str, Program] = {
    "itself": lambda x: x.add_(x),
    "the same view": lambda x: x[1:].mul_(x[1:]),
    "disjoint parts": lambda x: x[3:].add_(x[:2]),
    "disjoint rows as out": lambda x: torch.add(x[0], 1, out=x[4]),
    "a copy": lambda x: x[1:].add_(x[:-1].clone()),
    "index_add out to itself": lambda x: torch.index_add(
        x[:4], 0, rows(x), x[:4] * 2, out=x[:4]
    ),
    "itself as out": lambda x: torch.exp(x, out=x),
    "interleaved columns": lambda x: x[:, ::2].add_(x[:, 1:4]),
    "nothing": lambda x: x[2:2].add_(x[2:2]),
    "repeated fill_": lambda x: x[:1].expand(5, 5).fill_(2.5),
    "repeated copy of itself": lambda x: (view := x[1:2].expand(5, 5)).copy_(view),
    "repeated zero_": lambda x: x[1:2].expand(5, 5).zero_(),
    "repeated masked_fill_": lambda x: x[:1].expand(5, 5).masked_fill_(x[0] > 2, -3.0),
    "repeated index_fill_": lambda x: x[:1].expand(4, 5).index_fill_(0, rows(x), 4.0),
    "conj_physical_ of real numbers": lambda x: x[:1].expand(5, 5).conj_physical_(),
    "filled with its own": lambda x: x[:2].fill_(x[1, 1]),
    "a number of its own": lambda x: x.mul_(x[1, 1].clone()),
}


def source() -> torch.Tensor:
    return torch.arange(25.0).reshape(5, 5) + 1


@pytest.mark.parametrize("name", SHARED)
def test_shared_memory_is_rejected(name: str) -> None:
    rejected(SHARED[name], "some elements of the input tensor and the written-to")


@pytest.mark.parametrize("name", REPEATED)
def test_repeated_elements_are_rejected(name: str) -> None:
    rejected(REPEATED[name], "more than one element of the written-to tensor")


def rejected(program: Program, text: str) -> None:
    lazy = to_lazy(source())
    for x in source(), lazy:
        with pytest.raises(RuntimeError, match=f"unsupported operation: {text}"):
            program(x)
    assert torch.equal(lazy.cpu(), source()), "nothing was written"


@pytest.mark.parametrize("name", DEPRECATED)
def test_deprecated_writes_warn(name: str) -> None:
    """Each call warns, as in eager."""
    torch.set_warn_always(True)
    try:
        for x in source(), to_lazy(source()), to_lazy(source()):
            with pytest.warns(
                UserWarning, match=r"_ on expanded tensors .* e\.g\. tens"
            ):
                DEPRECATED[name](x)
    finally:
        torch.set_warn_always(False)


@pytest.mark.parametrize("name", ALLOWED)
@pytest.mark.filterwarnings("ignore:Use of .* on expanded tensors is deprecated")
def test_what_is_allowed(name: str) -> None:
    assert not isinstance(outcome(ALLOWED[name], source()), str)
    compare(ALLOWED[name], source())


@pytest.mark.filterwarnings("ignore:Use of .* on expanded tensors is deprecated")
def test_accumulating_into_repeated_elements_is_rejected() -> None:
    """A write that accumulates into one element at several positions raises an error; eager
    warns and adds to the element once for each position."""
    lazy = to_lazy(source())
    ones = torch.ones(4, 5).to("lazy")
    with pytest.raises(RuntimeError, match="more than one element of the written-to"):
        lazy[:1].expand(5, 5).index_put_((rows(lazy),), ones, accumulate=True)
    assert torch.equal(lazy.cpu(), source())


@pytest.mark.parametrize(
    "write",
    [
        lambda x: x.add_(1),
        lambda x: x.mul_(2).sub_(1),
        lambda x: x.clamp_(max=2.5),
        lambda x: x.sqrt_(),
        lambda x: x.addcmul_(x + 1, x - 1),
        lambda x: x.fill_(3),
        lambda x: x.copy_(x * 2),
    ],
)
@pytest.mark.parametrize(
    "view",
    [
        lambda x: x.as_strided((3, 2), (1, 1)),
        lambda x: x.as_strided((2, 3), (2, 1), 1),
        lambda x: x.unfold(0, 3, 2),
    ],
)
def test_writes_to_windows_that_overlap(view: Callable, write: Callable) -> None:
    """Eager accepts them, and reads what it has written to an earlier element."""

    def program(x: torch.Tensor) -> list:
        windows = view(x)
        write(windows)
        return [windows, x]

    compare(program, torch.arange(1.0, 8.0))
