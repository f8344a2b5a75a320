"""Strides, storage offsets and contiguity equal those of eager."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import partial

import pytest
import torch
import torch.nn.functional as F
from comparison import assert_close, compare, geometry
from torch.utils._python_dispatch import TorchDispatchMode

CHANNELS_LAST = torch.channels_last


def permuted() -> torch.Tensor:
    return torch.randn(2, 4, 5, 3).permute(0, 3, 1, 2)


def transposed_memory(x: torch.Tensor) -> torch.Tensor:
    """Returns the same elements with the first dimension innermost in memory."""
    return x.permute(3, 2, 1, 0).contiguous().permute(3, 2, 1, 0)


#: Backward ops, each with the arguments that follow its two tensors.
BACKWARD = (
    (torch.ops.aten.threshold_backward, 0.0),
    (torch.ops.aten.leaky_relu_backward, 0.1, False),
    (torch.ops.aten.elu_backward, 1.0, 1.0, 1.0, False),
    (torch.ops.aten.hardtanh_backward, -1.0, 1.0),
    (torch.ops.aten.hardswish_backward,),
    (torch.ops.aten.softplus_backward, 1.0, 20.0),
    (torch.ops.aten.sigmoid_backward,),
    (torch.ops.aten.tanh_backward,),
    (torch.ops.aten.gelu_backward,),
)


SOURCES: dict[str, Callable[[], torch.Tensor]] = {
    "row-major": lambda: torch.randn(2, 3, 4, 5),
    "channels last": permuted,
    "transposed": lambda: torch.randn(4, 3, 2, 5).transpose(0, 2),
    "with gaps": lambda: torch.randn(4, 3, 8, 10)[::2, :, ::2, ::2],
    "expanded": lambda: torch.randn(2, 1, 4, 1).expand(2, 3, 4, 5),
    "of one channel": lambda: torch.randn(2, 4, 5, 1).permute(0, 3, 1, 2),
}

#: Functions of a tensor of shape [2, 3, 4, 5] or [2, 1, 4, 5].
PROGRAMS: dict[str, Callable[[torch.Tensor], object]] = {
    "in another format": lambda x: [
        function(x, memory_format=format)
        for function in (
            torch.zeros_like, torch.ones_like, torch.rand_like, torch.clone,
            partial(torch.full_like, fill_value=2), torch.Tensor.double,
        )
        for format in (CHANNELS_LAST, torch.contiguous_format, torch.preserve_format)
    ],
    "add a number": lambda x: x + 1,
    "unary": lambda x: [x.exp(), x.relu(), F.gelu(x), -x, x.sigmoid()],
    "with itself transposed": lambda x: x + x.transpose(2, 3).transpose(2, 3),
    "with row-major": lambda x: [x * x.contiguous(), x.contiguous() * x],
    "operands' order": lambda x: [
        op(*operands)
        for op in (torch.sub, torch.rsub, torch.maximum, torch.atan2)
        for operands in ((x, transposed_memory(x)), (transposed_memory(x), x))
    ],
    "backward": lambda x: [
        op(*operands, *rest)
        for op, *rest in BACKWARD
        for operands in ((x, transposed_memory(x)), (transposed_memory(x), x))
    ],
    "log_sigmoid_backward": lambda x: torch.ops.aten.log_sigmoid_backward(
        x.contiguous(), x, torch.exp(-x.abs())
    ),
    "prelu": lambda x: F.prelu(x, torch.ones(x.size(1)).to(x.device)),
    "with a row": lambda x: x + torch.ones(5).to(x.device),
    "with a channel": lambda x: torch.ones(x.size(1), 1, 1).to(x.device) * x,
    "compare": lambda x: [x > 0, x == x],
    "where": lambda x: torch.where(x > 0, x, torch.zeros(()).to(x.device)),
    "clamp and lerp": lambda x: [x.clamp(-1, 1), x.lerp(x * 2, 0.5)],
    "in place": lambda x: x.clone().mul_(2).add_(x).relu_(),
    "clone": lambda x: [x.clone(), x.clone(memory_format=torch.contiguous_format)],
    "contiguous": lambda x: [x.contiguous(), x.contiguous(memory_format=CHANNELS_LAST)],
    "to a format": lambda x: x.to(memory_format=CHANNELS_LAST),
    "to a dtype": lambda x: [x.double(), x.to(torch.bfloat16), x.long()],
    "like": lambda x: [
        torch.zeros_like(x),
        torch.empty_like(x, memory_format=torch.contiguous_format).zero_(),
        torch.full_like(x, 3),
        x.new_zeros(2, 3),
    ],
    "views": lambda x: [x[1], x[:, 0], x[..., 1:3], x.mT, x.permute(2, 0, 3, 1)],
    "flatten": lambda x: [x.flatten(1), x.reshape(-1), x.unsqueeze(2)],
    "sum": lambda x: [x.sum(1), x.mean((2, 3), keepdim=True), x.amax(-1)],
    "softmax": lambda x: [x.softmax(1), x.log_softmax(-1)],
    "cat": lambda x: [
        torch.cat([x, x], 1),
        torch.cat([x, x.contiguous()]),
        torch.cat([x.contiguous(), x], 2),
        torch.cat([x[:, :1, :1, :1], x[:, :1, :1, :1].contiguous()], 1),
        torch.cat([torch.empty(0).to(x.device), x], 1),
    ],
    "pad": lambda x: F.pad(x, (1, 1, 0, 2)),
    "flip": lambda x: x.flip(2),
    "cumsum": lambda x: x.cumsum(1),
    "factors": lambda x: [
        *torch.linalg.qr(x),
        *torch.linalg.qr(x, mode="complete"),
        torch.linalg.matrix_exp(x[1, ..., :4]),
        torch.linalg.qr(x[..., :1, :1])[1],
        *torch.lu_unpack(x, torch.ones(2, 1, 4).int().to(x.device).expand(x.shape[:3])),
    ],
    "solutions": lambda x: [
        torch.linalg.solve_triangular(x[..., :4], x, upper=True),
        torch.linalg.solve_triangular(x[0, 0, :, :4], x.mT, upper=True, left=False),
        torch.cholesky_solve(x[..., :1], x[..., :4]),
        torch.cholesky_inverse(x[..., :1, :1]),
    ],
    "masked_fill": lambda x: x.masked_fill(x > 0, 1.0),
    "tril": lambda x: x.tril(),
    "matmul": lambda x: x @ x.mT,
    "cross": lambda x: torch.linalg.cross(x[..., :3], x[..., 1:4]),
    "losses": lambda x: [
        loss(*operands, reduction="none")
        for loss in (
            F.mse_loss, F.l1_loss, F.smooth_l1_loss, F.huber_loss, F.soft_margin_loss,
            F.binary_cross_entropy, F.binary_cross_entropy_with_logits,
        )
        for y in (x.sigmoid(),)
        for operands in ((y, y), (y, y.contiguous()), (y.contiguous(), y))
    ],
    "einsum": lambda x: torch.einsum("bchw,bdhw->bcd", x, x),
    "layer_norm": lambda x: F.layer_norm(x, (5,)),
    "batch_norm": lambda x: F.batch_norm(x, None, None, training=True),
    "group_norm": lambda x: F.group_norm(x, 1),
    "max_pool2d": lambda x: F.max_pool2d(x, 2),
    "avg_pool2d": lambda x: F.avg_pool2d(x, 2),
    "adaptive_avg_pool2d": lambda x: F.adaptive_avg_pool2d(x, 2),
    "conv2d": lambda x: F.conv2d(x, torch.ones(4, x.size(1), 2, 2).to(x.device)),
    "interpolate": lambda x: F.interpolate(x, scale_factor=2.0),
    "dropout": lambda x: F.dropout(x, 0.5),
    "rrelu": lambda x: [F.rrelu(x, training=True), F.rrelu(x), F.rrelu(x * 2, inplace=True)],
    "xlog1py": lambda x: [torch.special.xlog1py(x, x.sigmoid().contiguous()), torch.special.xlog1py(x.contiguous(), x.sigmoid())],
    "angle": lambda x: [torch.angle(x), torch.angle(torch.complex(x, x)), torch.complex(x, x).abs()],
    "random": lambda x: [torch.rand_like(x), x.clone().normal_(), x.abs().bernoulli_()],
    "index_select": lambda x: x.index_select(2, torch.tensor([0, 2]).to(x.device)),
    "index": lambda x: [
        x[torch.tensor([0, 1]).to(x.device)],
        x[:, :, torch.tensor([0, 2]).to(x.device)],
        x[:, torch.tensor([[0], [0]]).to(x.device), torch.tensor([1]).to(x.device)],
        x[torch.tensor([1]).to(x.device), :, :, torch.tensor([0, 4]).to(x.device)],
    ],
    "stack": lambda x: [torch.stack([x, x]), torch.stack([x, x], 2)],
    "bernoulli": lambda x: [torch.bernoulli(x, 0.5), torch.bernoulli(x.sigmoid())],
    "copies of views": lambda x: [
        torch.permute_copy(x, (3, 1, 0, 2)),
        torch.transpose_copy(x, 0, 2),
        torch.expand_copy(x, (2, 2, 3, 4, 5) if x.size(1) == 3 else (2, 2, 1, 4, 5)),
        torch.select_copy(x, 1, 0),
        torch.slice_copy(x, 2, 1, 4, 2),
        torch.diagonal_copy(x, 0, 2, 3),
        torch.alias_copy(x),
        torch.ops.aten._neg_view_copy(x),
        torch.ops.aten._conj_copy(torch.complex(x, x)),
        torch.ops.aten.lift_fresh_copy(x),
        *torch.unbind_copy(x),
        *torch.split_copy(x, 2, 2),
    ],
    "copysign": lambda x: [torch.copysign(x, 0.5), torch.copysign(x, x)],
    "roll": lambda x: [torch.roll(x, 1, 0), torch.roll(x, (1, 2), (2, 3)), torch.roll(x, x.shape[1], 1)],
    "roll to rows": lambda x: [torch.roll(x, (0, 1), (0, 1)), torch.roll(x, 1), torch.roll(x[:, :, :0], 1, 0)],
    "fill": lambda x: [
        torch.fill(x, 2.0),
        torch.fill(x, torch.tensor(2.0).to(x.device)),
        torch.ops.aten.zero(x),
        x.clone().fill_(torch.tensor(2.0).to(x.device)),
    ],
    "gather": lambda x: x.gather(1, torch.zeros(2, 1, 4, 5).long().to(x.device)),
}  # fmt: skip


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_geometry(name: str, source: str) -> None:
    compare(PROGRAMS[name], SOURCES[source]())


@pytest.mark.parametrize(
    "write",
    [
        lambda x: x.add_(1),
        lambda x: x.zero_(),
        lambda x: x.t_(),
        lambda x: x.masked_fill_(x > 3, 0.5),
        lambda x: x[0].mul_(2),
        lambda x: x.copy_(x * 2),
        lambda x: torch.add(x, 1, out=x),
    ],
)
def test_a_write_keeps_the_storage_offset(write: Callable) -> None:
    """A result of `select_scatter` has its operand's offset, but isn't a view."""

    def program(x: torch.Tensor) -> list:
        results = [
            torch.select_scatter(x[1:], x[0], 0, 1),
            torch.diagonal_scatter(x.t()[1:], x[0, :4]),
        ]
        for result in results:
            write(result)
        return [*results, *(result[1:] for result in results)]

    compare(program, torch.arange(20.0).reshape(4, 5))


def test_moves_keep_strides() -> None:
    for make in SOURCES.values():
        x = make()
        lazy = x.to("lazy")
        copy = x.clone()
        assert geometry(lazy) == geometry(copy)
        assert geometry(lazy.cpu()) == geometry(copy)
        assert_close(lazy, x)
        assert x.to("lazy", memory_format=CHANNELS_LAST).stride() == (
            x.to(torch.float64, memory_format=CHANNELS_LAST).stride()
        )
    assert torch.empty(2, 3, 4, 4, device="lazy", memory_format=CHANNELS_LAST).stride() == (
        48, 1, 12, 3)  # fmt: skip
    assert torch.empty_strided((2, 3), (1, 2), device="lazy").stride() == (1, 2)


@pytest.mark.parametrize("new", [False, True])
@pytest.mark.parametrize(
    "sizes, strides",
    [
        ((4, 5), (8, 1)),
        ((4, 5), (0, 1)),
        ((2, 2), (3, 0)),
        ((3,), (2,)),
        ((2, 3, 4), (40, 1, 5)),
        ((0, 3), (9, 2)),
    ],
)
def test_memory_with_gaps_or_overlaps(
    sizes: tuple[int, ...], strides: tuple[int, ...], new: bool
) -> None:
    def uses(one: torch.Tensor) -> list[object]:
        if new:
            x = one.new_empty_strided(sizes, strides)
        else:
            x = torch.empty_strided(sizes, strides, device=one.device)
        x.fill_(2)
        if sizes[0]:
            x[0].fill_(3)
        facts = [x._is_view(), x.is_contiguous(), x.untyped_storage().nbytes()]
        copied = copy.deepcopy(x)
        again = x.as_strided(sizes, strides)
        x += 1
        return [*facts, x, copied, again, geometry(copied), geometry(again)]

    compare(uses, torch.ones(1))

    def uses_in_inference_mode(one: torch.Tensor) -> list[object]:
        with torch.inference_mode():
            return uses(one)

    compare(uses_in_inference_mode, torch.ones(1))


@pytest.mark.parametrize("strides", [(4, 1), (2, 1)])
def test_modes_see_that_memory_with_gaps_is_made_by_one_op(
    strides: tuple[int, int],
) -> None:
    class Names(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(func.name())
            return func(*args, **(kwargs or {}))

    one = torch.ones(1, device="lazy")
    seen: list[str] = []
    with Names():
        made = one.new_empty_strided((3, 2), strides)
    assert seen == ["aten::new_empty_strided"]
    made.fill_(2)
    assert made.as_strided((3, 2), strides).tolist() == [[2.0, 2.0]] * 3


def test_offsets_of_views_of_views() -> None:
    compare(
        lambda x: [x[1:], x[1:][1:], x[1:][:, 2], x[2].diagonal(1), x[1][1][1:]],
        torch.randn(4, 4, 4),
    )


def test_view_fails_where_eager_does() -> None:
    x = torch.randn(3, 4)
    compare(lambda x: x.t().view(-1), x)
    compare(lambda x: x.t().view(2, 2, 3), x)
    compare(lambda x: x.t().reshape(-1), x)
    compare(lambda x: x[:, :2].view(-1), x)
    compare(lambda x: x[:, :1].view(-1), x)


def test_gradients_take_their_parameters_layout() -> None:
    weight = torch.randn(4, 3, 3, 3).to(memory_format=CHANNELS_LAST).requires_grad_()
    x = torch.randn(2, 3, 6, 6)

    def program(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        F.conv2d(x, weight).square().sum().backward()
        return weight.grad

    compare(program, x, weight)

    def linear(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        ((x @ w.t()).sum() + w.t().contiguous().square().sum()).backward()
        return w.grad

    compare(linear, torch.randn(5, 3), torch.randn(4, 3).requires_grad_())


def test_a_channels_last_model_follows_eager() -> None:
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3, padding=1),
        torch.nn.BatchNorm2d(8),
        torch.nn.ReLU(),
        torch.nn.MaxPool2d(2),
        torch.nn.Conv2d(8, 4, 3),
    ).to(memory_format=CHANNELS_LAST)
    x = torch.randn(2, 3, 8, 8).to(memory_format=CHANNELS_LAST)
    y = model(x)
    y.square().mean().backward()
    expected = [geometry(y), *(geometry(p.grad) for p in model.parameters())]
    values = [y.detach().clone(), *(p.grad.clone() for p in model.parameters())]
    model.zero_grad()
    for module in model:
        if isinstance(module, torch.nn.BatchNorm2d):
            module.reset_running_stats()
    model.to("lazy")
    out = model(x.to("lazy"))
    out.square().mean().backward()
    actual = [geometry(out), *(geometry(p.grad) for p in model.parameters())]
    assert actual == expected
    assert_close(
        [out.detach(), *(p.grad for p in model.parameters())],
        values,
        rtol=1e-3,
        atol=1e-4,
    )


@pytest.mark.parametrize("indices", [False, True])
@pytest.mark.parametrize("channels", [4, 6])
def test_pooling_of_three_dimensions_keeps_channels_last(
    channels: int, indices: bool
) -> None:
    def memory() -> torch.Tensor:
        return torch.randn(2, 8, 8, 8, channels)

    def program(x: torch.Tensor) -> list[torch.Tensor]:
        volumes = x.permute(0, 4, 1, 2, 3)
        sources = [volumes, volumes[:, ::2], volumes[0], volumes.contiguous()]
        results: list[torch.Tensor] = []
        for source in sources:
            answer = F.max_pool3d(source, 3, return_indices=indices)
            results += answer if indices else [answer]
        return results

    compare(program, memory())


def test_resize_to_the_sizes_that_a_view_has() -> None:
    """A view remains one after a `resize_` to its own sizes, and as `out=` of a random
    op."""
    for device in ("cpu", "lazy"):
        base = torch.zeros(4, 8).to(device)
        view = base[1:, ::2]
        view.resize_(3, 4)
        torch.randn(3, 4, out=view, device=device)
        assert view.stride() == (8, 2)
        assert_close(base[1:, ::2], view)
        assert base[:, 1::2].abs().sum().item() == 0
        assert view.abs().sum().item() > 0


@pytest.mark.parametrize("dims", [2, 3])
def test_the_zero_gradient_of_a_nearest_samples_grid_is_dense(dims: int) -> None:
    def gradient(image: torch.Tensor, grid: torch.Tensor) -> torch.Tensor:
        sampled = F.grid_sample(image, grid, "nearest", align_corners=False)
        return torch.autograd.grad(sampled.sum(), grid)[0]

    sizes = [5, 4, 6][:dims]
    grid = torch.randn(2, *sizes, dims).requires_grad_()
    compare(gradient, torch.randn(2, 3, *sizes), grid)


#: Ops that generate random numbers, in place and into `out`. For contiguous tensors of at
#: least 16 elements, some of eager's kernels generate different numbers than for other
#: tensors.
DRAWN: dict[str, Callable[[torch.Tensor], object]] = {
    "uniform_": lambda x: x.uniform_(),
    "normal_": lambda x: x.normal_(),
    "exponential_": lambda x: x.exponential_(),
    "geometric_": lambda x: x.geometric_(0.3),
    "cauchy_": lambda x: x.cauchy_(),
    "log_normal_": lambda x: x.log_normal_(),
    "random_": lambda x: x.random_(),
    "random_ below": lambda x: x.random_(9),
    "random_ from, to": lambda x: x.random_(3, 9),
    "bernoulli_": lambda x: x.bernoulli_(0.4),
    "bernoulli_ of numbers": lambda x: x.bernoulli_(torch.full_like(x, 0.4)),
    "trunc_normal_": lambda x: torch.nn.init.trunc_normal_(x),
    "orthogonal_": lambda x: torch.nn.init.orthogonal_(x),
    "xavier_normal_": lambda x: torch.nn.init.xavier_normal_(x),
    "rand": lambda x: torch.rand(12, 7, out=x),
    "randn": lambda x: torch.randn(12, 7, out=x),
    "randint": lambda x: torch.randint(9, (12, 7), out=x),
    "bernoulli": lambda x: torch.bernoulli(torch.full_like(x, 0.4), out=x),
    "normal": lambda x: torch.normal(torch.zeros_like(x), torch.ones_like(x), out=x),
}

#: Tensors of shape [12, 7].
DRAWN_INTO: dict[str, Callable[[str], torch.Tensor]] = {
    "row-major": lambda d: torch.zeros(12, 7, device=d),
    "columns": lambda d: torch.zeros(12, 20, device=d)[:, 3:10],
    "with gaps": lambda d: torch.zeros(12, 14, device=d)[:, ::2],
    "transposed": lambda d: torch.zeros(7, 12, device=d).t(),
    "transposed with gaps": lambda d: torch.zeros(7, 15, device=d)[:, :12].t(),
}
#: Tensors of shape [12, 7] that have gaps or are transposed, but aren't views.
FOR_IN_PLACE = {
    "made with gaps": lambda d: torch.empty_strided((12, 7), (14, 2), device=d),
    "made transposed": lambda d: torch.empty_strided((12, 7), (1, 12), device=d),
}


@pytest.mark.parametrize("place", [*DRAWN_INTO, *FOR_IN_PLACE])
@pytest.mark.parametrize("name", DRAWN)
def test_numbers_drawn_into_strides(name: str, place: str) -> None:
    def drawn(device: str) -> list[torch.Tensor]:
        x = (DRAWN_INTO | FOR_IN_PLACE)[place](device)
        torch.manual_seed(0)
        DRAWN[name](x)
        return [x, x.t(), torch.rand(2, device=device)]

    for lazy, eager in zip(drawn("lazy"), drawn("cpu"), strict=True):
        assert geometry(lazy) == geometry(eager)
        if name == "orthogonal_":
            assert_close(lazy, eager)
        else:
            assert torch.equal(lazy.cpu(), eager)


@pytest.mark.parametrize("dtype", [torch.float32, torch.complex64], ids=str)
def test_scattered_into_repeated_elements(dtype: torch.dtype) -> None:
    """The elements of the result don't share memory, unlike those of the operand."""

    def program(x: torch.Tensor) -> list[torch.Tensor]:
        rows, other = x.expand(3, 4), x * 2
        return [
            part + torch.special.sinc(part.real)
            for part in (
                torch.select_scatter(rows, other, 0, 1),
                torch.slice_scatter(rows, other[None], 0, 1, 2),
                torch.diagonal_scatter(rows, other[:3]),
                torch.as_strided_scatter(rows, other[:2], (2,), (1,)),
            )
        ]

    compare(program, torch.arange(4.0).to(dtype))


@pytest.mark.parametrize("sizes", [(3, 4), (12,), (2, -1), (2, 2, 3), (5,)])
def test_view_copy_of_any_strides(sizes: tuple) -> None:
    """`view_copy` copies first if a view is impossible, as `reshape` does."""
    x = torch.arange(12.0).reshape(3, 4)
    compare(lambda x: [torch.view_copy(x, sizes), torch.view_copy(x.t(), sizes)], x)


@pytest.mark.parametrize(
    "view", [lambda x: x[1:], lambda x: x[1:, ::2], lambda x: x[1:, 1:].t()]
)
def test_parts_of_views_are_scattered_into_copies_of_their_memory(view) -> None:
    memory = torch.arange(25.0).reshape(5, 5)
    results = []
    for x in (view(memory), view(memory.to("lazy"))):
        results.append([
            torch.select_scatter(x, x[0] + 1, 0, 2),
            torch.slice_scatter(x, x[:1] + 1, 0, 1, 2),
            torch.diagonal_scatter(x, x.diagonal() + 1),
        ])  # fmt: skip
    for eager, lazy in zip(*results, strict=True):
        assert geometry(lazy) == geometry(eager)
        assert_close(lazy, eager)


@pytest.mark.parametrize("second", [(1, 1, 2), (3, 0, 1), (0, 1), (5, 0, 3, 2)])
@pytest.mark.parametrize("first", [(0, 1, 1), (1, 3, 0, 1), (1, 1)])
def test_broadcast_to_no_elements(first: tuple, second: tuple) -> None:
    """Eager's strides may be 0, and in a different order, although all operands are
    row-major."""

    def program(device: str) -> list[tuple[int, ...]] | str:
        x, y = (torch.empty(shape, device=device) for shape in (first, second))
        try:
            return [(x + y).stride(), torch.where(x > 0, x, y).stride()]
        except RuntimeError as error:
            return str(error).split(" [")[0]

    assert program("lazy") == program("cpu")


@pytest.mark.parametrize("pads", [(0, -1), (0, 0, 0, -1), (0, 0, -1, 1)])
def test_crops_keep_the_strides_of_dense_parts(pads: tuple[int, ...]) -> None:
    for x in (torch.ones(1, 3), torch.ones(3, 1), torch.ones(2, 3)):
        eager, lazy = (torch.nn.functional.pad(t, pads) for t in (x, x.to("lazy")))
        assert geometry(lazy) == geometry(eager)
