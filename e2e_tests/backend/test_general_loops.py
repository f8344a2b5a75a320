"""A loop whose sizes, counts and bounds vary compiles a few programs, and has eager's
losses and gradients."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence

import pytest
import torch
import torch.nn.functional as F
import torch_ltc
from backend.fresh_programs import without_programs  # noqa: F401
from comparison import assert_close
from torch import Tensor

STEPS = 14
#: The maximum number of programs that a loop compiles: the first step's, one with varying
#: numbers as dynamic scalars, one for all sizes, and another one if sizes of the first
#: traces are equal by accident.
MOST_COMPILATIONS = 4

#: Two functions: one returns the inputs of step i, the other computes the loss from i,
#: the weight and the inputs.
Loop = tuple[
    Callable[[int], list[Tensor]], Callable[[int, Tensor, list[Tensor]], Tensor]
]


def _rows(
    width: int = 5, first: int = 9, step: int = 3
) -> Callable[[int], list[Tensor]]:
    return lambda i: [torch.randn(first + step * i, width)]


def _images(i: int) -> list[Tensor]:
    return [torch.randn(2, 3, 8 + i, 11 + 2 * i)]


def _scores(i: int, w: Tensor, inputs: list[Tensor]) -> Tensor:
    y = inputs[0] @ w
    y = (y - y.mean()) / (y.std() + 1e-5)
    return (y * torch.arange(len(y), device=y.device)).mean()


def _constant(i: int) -> list[Tensor]:
    """Returns an input of constant sizes, which bound the sizes that vary."""
    return [torch.randn(40, 24)]


def _ones(inputs: list[Tensor], *sizes: int) -> Tensor:
    return torch.ones(sizes, device=inputs[0].device)


def _attention(
    i: int, w: Tensor, inputs: list[Tensor], rows: int = 40, is_causal: bool = False
) -> Tensor:
    """Slices a dimension of a view of an input, not of the input itself."""
    x = (inputs[0] * w[0])[None, None]
    y = F.scaled_dot_product_attention(
        x[:, :, : 3 + 2 * i], x[:, :, :rows], x[:, :, :rows], is_causal=is_causal
    )
    return y.square().mean()


def _folded(i: int, w: Tensor, inputs: list[Tensor]) -> Tensor:
    image = (inputs[0] * w[0])[None, None, : 5 + i, : 5 + i]
    return F.fold(F.unfold(image, 3), (5 + i, 5 + i), 3).square().mean()


def _weighted(parts: Sequence[Tensor]) -> Tensor:
    """Sums the parts' mean squares with different factors, so that the parts aren't
    interchangeable."""
    terms = [(k + 1) * part.square().mean() for k, part in enumerate(parts)]
    return torch.stack(terms).sum()


def _split(i: int, w: Tensor, inputs: list[Tensor]) -> Tensor:
    """Splits rows into three parts of unrelated lengths."""
    draw = random.Random(i)
    lengths = [draw.randint(2, 30) for _ in range(3)]
    rows = torch.ones(sum(lengths), 5, device=w.device) * inputs[0]
    return _weighted((rows * w).split(lengths))


def _part(i: int) -> slice:
    """Returns a slice for a tensor of 40 rows; its start and length vary with the step.
    Some slices begin with the first row, some end with the last one."""
    begin = (9 * i + 5) % 36 if i % 8 != 6 else 0
    return slice(begin, min(begin + 3 + i % 8, 40))


def _written_part(i: int, w: Tensor, inputs: list[Tensor]) -> Tensor:
    rows = inputs[0] * w
    rows[_part(i)] = inputs[0][_part(i + 1)].mean(0)
    return (rows * torch.arange(40, device=w.device)[:, None]).mean()


def _cut_out(i: int, w: Tensor, inputs: list[Tensor]) -> Tensor:
    """Writes a box of varying size into images of constant size, which determine the
    sizes of the convolution's result."""
    images = inputs[0] * w[0]
    images[:, :, _part(i), _part(i + 3)] = 0.5
    return F.conv2d(images, inputs[1]).square().mean()


def _bags(i: int, w: Tensor, inputs: list[Tensor]) -> Tensor:
    """Calls embedding_bag. It traces a check whose message, an argument of the op, contains
    the varying number of indices."""
    indices = torch.arange(20 + 3 * i, device=w.device) % 9
    offsets = torch.arange(4 + i, device=w.device) * 2
    return (F.embedding_bag(indices, inputs[0], offsets) * w).square().mean()


def _written_rows(i: int, w: Tensor, inputs: list[Tensor]) -> Tensor:
    """Writes rows of a buffer of constant size; the first step's start is 1."""
    rows, buffer = inputs
    start = 1 + i * (i + 1) // 2
    buffer[start : start + 2 + i] = rows
    return (buffer[: start + 2 + i] * w).square().mean()


def _kept_patches(i: int, w: Tensor, inputs: list[Tensor]) -> Tensor:
    """A masked autoencoder that keeps a varying number of its 16 patches. The bound, 16, is
    a size of both inputs, and one of them is sorted."""
    patches, noise = inputs
    x, kept = patches * w[0], 4 + i % 9
    order = noise.argsort(1)
    seen = torch.gather(x, 1, order[:, :kept, None].expand(-1, -1, 5))
    hidden = torch.zeros(2, 16 - kept, 5, device=w.device)
    places = order.argsort(1)[..., None].expand(-1, -1, 5)
    return torch.gather(torch.cat([seen, hidden], 1), 1, places).square().mean()


def _mixed(i: int, w: Tensor, inputs: list[Tensor]) -> Tensor:
    """Copies a box of varying size and position from each image into the other."""
    draw = random.Random(i)
    top, left = draw.randint(2, 14), draw.randint(2, 14)
    height, width = 2 + i, 2 + 5 * i % 14
    image = inputs[0].clone()
    there = (..., slice(top, top + height), slice(left, left + width))
    image[there] = inputs[0].flip(0)[there]
    return (image * w[0]).square().mean() * (height * width)


def _multiple(i: int, w: Tensor, inputs: list[Tensor]) -> Tensor:
    rows = inputs[0] * w
    padded = F.pad(rows, (0, 0, 0, -rows.size(0) % 8))
    return padded.view(-1, 8, 5).mean(1).square().sum()


def _positions(i: int, w: Tensor, inputs: list[Tensor]) -> Tensor:
    rows, table = inputs
    return (rows + (table * w)[: rows.size(0)]).square().mean()


LOOPS: dict[str, Loop] = {
    "view": (
        lambda i: [torch.randn(12 + 6 * i)],
        lambda i, w, x: (x[0].view(-1, 2, 3) * w[:3]).square().sum(0).mean(),
    ),
    "variance with a large correction": (
        _rows(),
        lambda i, w, x: (x[0] @ w).var(0, correction=2).mean(),
    ),
    "windows that extend beyond the input": (
        _images,
        lambda i, w, x: sum(
            pool(x[0] * w[0], 3, 2, ceil_mode=True).mean()
            for pool in (F.max_pool2d, F.avg_pool2d)
        ),
    ),
    "frames of a signal": (
        lambda i: [torch.randn(2, 200 + 37 * i)],
        lambda i, w, x: (
            (x[0] * w[0]).unfold(-1, 64, 16).square().sum(-1).log1p().mean()
        ),
    ),
    "stable sort": (
        _rows(),
        lambda i, w, x: ((x[0] * w).sort(dim=0, stable=True)[0] * x[0]).sum(),
    ),
    "topk": (_rows(), lambda i, w, x: (x[0] * w).topk(3 + i // 2, 0)[0].sum()),
    "kthvalue": (
        _rows(),
        lambda i, w, x: (x[0] * w).kthvalue(2 + i, 0)[0].sum(),
    ),
    "searchsorted": (
        lambda i: [torch.randn(9 + 3 * i).sort()[0], torch.randn(20 + i)],
        lambda i, w, x: (w.sum() * torch.searchsorted(x[0], x[1], right=i < 0)).mean(),
    ),
    "nearest": (
        _images,
        lambda i, w, x: F.interpolate(x[0] * w[0], size=(6 + 2 * i, 9)).square().mean(),
    ),
    "doubled": (
        _images,
        lambda i, w, x: F.interpolate(x[0] * w[0], scale_factor=2).square().mean(),
    ),
    "bilinear": (
        _images,
        lambda i, w, x: (
            F.interpolate(x[0] * w[0], scale_factor=2, mode="bilinear").square().mean()
        ),
    ),
    "standardized": (_rows(), _scores),
    "huber": (
        _rows(),
        lambda i, w, x: F.huber_loss(x[0] * w, x[0], delta=1.0 + 0.5 * i),
    ),
    "linspace": (
        _rows(),
        lambda i, w, x: (
            torch.linspace(-0.1 * i, 1.0, len(x[0]), device=w.device) @ (x[0] * w)
        ).sum(),
    ),
    "bounds of clamp": (
        _rows(),
        lambda i, w, x: (x[0] * w).clamp(-0.1 * i - 0.1, 0.3 * i + 0.2).square().sum(),
    ),
    "table of positions": (
        lambda i: [torch.randn(9 + 3 * i, 5), torch.randn(64, 5)],
        _positions,
    ),
    "padded to a constant": (
        lambda i: [torch.randn(3, 12 + i), torch.randn(64, 5)],
        lambda i, w, x: (F.pad(x[0], (0, 64 - 12 - i)) @ x[1] * w).square().mean(),
    ),
    "repeated": (
        _rows(),
        lambda i, w, x: (x[0] * w).repeat_interleave(2 + i, 0).square().mean(),
    ),
    "three chunks": (
        lambda i: [torch.randn(10 + 3 * i + i % 3, 5)],
        lambda i, w, x: sum(y.square().mean() for y in (x[0] * w).chunk(3)),
    ),
    "two chunks": (_rows(), lambda i, w, x: _weighted((x[0] * w).chunk(2))),
    "three equal parts": (
        lambda i: [torch.randn(10 + 3 * i + i % 3, 5)],
        lambda i, w, x: _weighted((x[0] * w).tensor_split(3)),
    ),
    "four equal chunks of a part": (
        lambda i: [torch.randn(80, 5)],
        lambda i, w, x: sum(
            y.square().mean() for y in (x[0] * w)[: 8 + 4 * i].chunk(4)
        ),
    ),
    "three equal parts of a part": (
        lambda i: [torch.randn(44, 5)],
        lambda i, w, x: _weighted((x[0] * w)[: 8 + i].tensor_split(3)),
    ),
    "the second half of a part": (
        lambda i: [torch.randn(44, 5)],
        lambda i, w, x: (x[0] * w)[: 8 + i][(8 + i) // 2 :].square().mean(),
    ),
    "parts of given lengths": (lambda i: [torch.randn(5)], _split),
    "bags": (lambda i: [torch.randn(9, 5)], _bags),
    "written rows": (
        lambda i: [torch.randn(2 + i, 5), torch.zeros(400, 5)],
        _written_rows,
    ),
    "mixed images": (lambda i: [torch.randn(2, 3, 32, 32)], _mixed),
    "kept patches": (
        lambda i: [torch.randn(2, 16, 5), torch.rand(2, 16)],
        _kept_patches,
    ),
    "padded to a multiple": (
        lambda i: [torch.randn(9 + (5 * i + 2 * (i % 2)) * 3 + (i == 3), 5)],
        _multiple,
    ),
    "group norm": (
        lambda i: [torch.randn(3 + i % 4, 4, 9 + i, 9 + i % 6)],
        lambda i, w, x: (F.group_norm(x[0] * w[0], 2, w[:4]) * x[0]).sum(),
    ),
    "a part of any length": (
        lambda i: [torch.randn(40, 5)],
        lambda i, w, x: ((x[0] * w)[_part(i)] + 1).square().mean(),
    ),
    "a written part of any length": (lambda i: [torch.randn(40, 5)], _written_part),
    "a box cut out": (
        lambda i: [torch.randn(2, 3, 40, 40), torch.randn(4, 3, 3, 3)],
        _cut_out,
    ),
    "pads from 0": (
        lambda i: [torch.randn(3, 16)],
        lambda i, w, x: F.pad(x[0] * w[0], (i % 4, i % 4)).square().mean(),
    ),
    "reflected pads from 0": (
        lambda i: [torch.randn(2, 3, 16, 16)],
        lambda i, w, x: (
            F.pad(x[0] * w[0], (5 * i % 4, i % 3, 7 * i % 5, 3), mode="reflect").cumsum(
                2
            )
        ).mean(),
    ),
    "windows": (
        lambda i: [torch.randn(400)],
        lambda i, w, x: (x[0] * w[0]).unfold(0, 4, 5 + i).square().mean(),
    ),
    "bins": (
        _constant,
        lambda i, w, x: _weighted([torch.histc(x[0], 5 + i, -2, 2).float() * w[0]]),
    ),
    "logarithmic ranges": (
        _constant,
        lambda i, w, x: _weighted(
            [torch.logspace(-1, 1, 5 + i, device=w.device) * w[0]]
        ),
    ),
    "attention of a part": (_constant, _attention),
    "causal attention of a part": (
        _constant,
        lambda i, w, x: _attention(i, w, x, rows=3 + 2 * i, is_causal=True),
    ),
    "convolution of a part": (
        _constant,
        lambda i, w, x: (
            F.conv2d(
                (x[0] * w[0])[None, None, : 9 + 2 * i, : 5 + i], _ones(x, 2, 1, 3, 3)
            )
            .square()
            .mean()
        ),
    ),
    "folded windows of a part": (_constant, _folded),
    "topk of constant rows": (
        _constant,
        lambda i, w, x: ((x[0] * w[0]).topk(2 + i, 1)[0] * x[0][:, :1]).sum(),
    ),
    "kthvalue of constant rows": (
        _constant,
        lambda i, w, x: (x[0] * w[0]).kthvalue(2 + i, 1)[0].sum(),
    ),
    "topk of a column": (
        _constant,
        lambda i, w, x: (x[0] * w[0])[:, 1].topk(2 + i)[0].square().mean(),
    ),
    "a part of a weight": (
        lambda i: [torch.randn(2, 6 + i, 5)],
        lambda i, w, x: (x[0] + w.repeat(40, 1)[: 6 + i]).square().mean(),
    ),
    "windows of varying size": (
        _constant,
        lambda i, w, x: (x[0] * w[0]).unfold(1, 2 + i, 1).square().mean(2).sum(),
    ),
    "adaptive maxima": (
        _constant,
        lambda i, w, x: (
            F.adaptive_max_pool2d((x[0] * w[0])[None], (2 + i, 3 + i)).square().mean()
        ),
    ),
    "a layer of two lengths": (
        lambda i: [
            torch.randn(8, 6 + i // 2, 64),
            torch.randn(8, 7 + i + i % 3, 64),
            torch.randn(64, 64),
        ],
        lambda i, w, x: _weighted([F.linear(y * w[0], x[2]) for y in x[:2]]),
    ),
    "seven parts of a part": (
        lambda i: [torch.randn(400, 5)],
        lambda i, w, x: _weighted((x[0] * w)[: 94 + (i * 31) % 97].chunk(7)),
    ),
    "rows at a varying distance": (
        lambda i: [torch.randn(400, 5)],
        lambda i, w, x: (x[0] * w)[:: 2 + i].square().mean(),
    ),
    "strided": (
        _rows(),
        lambda i, w, x: (x[0][::2] * w).square().mean() + (x[0][-5:] * w).sum(),
    ),
}


@pytest.mark.parametrize("is_cut", [False, True], ids=["whole", "cut"])
@pytest.mark.parametrize("name", LOOPS)
def test_compiles_few_programs(name: str, is_cut: bool) -> None:
    inputs_of, loss_of = LOOPS[name]
    start = torch.randn(5)
    torch.lazy.synchronize()
    torch_ltc.reset_metrics()
    for i in range(STEPS):
        inputs, results = inputs_of(i), []
        for device in ("lazy", "cpu"):
            w = start.clone().to(device).requires_grad_()
            loss = loss_of(i, w, [x.to(device) for x in inputs])
            if is_cut:
                loss.item()
            loss.backward()
            results.append([loss.detach().cpu(), w.grad.cpu()])
        assert_close(*results, rtol=1e-4, atol=1e-4)
    most = 3 * MOST_COMPILATIONS if is_cut else MOST_COMPILATIONS
    assert torch_ltc.metrics()["compilations"] <= most


def _resize(mode: str, draw: random.Random) -> Iterator[tuple[Tensor, ...]]:
    for _ in range(40):
        height, width, rows, columns = (draw.randint(2, 70) for _ in range(4))
        x = torch.randn(2, 1, height, width, requires_grad=True)
        results = []
        for device in ("lazy", "cpu"):
            moved = x.detach().to(device).requires_grad_()
            y = F.interpolate(moved, size=(rows, columns), mode=mode)
            (y * torch.arange(columns, device=device)).sum().backward()
            results.append([y.detach().cpu(), moved.grad.cpu()])
        yield tuple(results)


def test_nearest_rows_of_any_sizes() -> None:
    """Programs for all sizes compute which input row each result row copies and, in the
    gradient, which result rows are copies of each input row."""
    torch_ltc.reset_metrics()
    for lazy, eager in _resize("nearest", random.Random(0)):
        assert_close(lazy, eager)
    assert torch_ltc.metrics()["programs_bound"] > 30


def test_searches_of_any_sizes() -> None:
    """searchsorted has eager's results for equal elements, NaN, both sides, sorters, and
    rows of any length."""
    draw = random.Random(1)
    torch_ltc.reset_metrics()
    for _ in range(30):
        rows, count, values = (draw.randint(2, 40) for _ in range(3))
        table = torch.randint(0, 20, (rows, count)).float()
        table, order = table.sort(1)
        shuffled = torch.empty_like(table).scatter_(1, order, table)
        found = torch.randint(-1, 21, (rows, values)).float()
        found[0, 0] = float("nan")
        for right in (False, True):
            for arguments in ((table, found), (shuffled, found, order)):
                results = [
                    torch.searchsorted(t, v, right=right, sorter=o[0] if o else None)
                    for t, v, *o in (arguments, [x.to("lazy") for x in arguments])
                ]
                assert torch.equal(results[0], results[1].cpu())
    assert torch_ltc.metrics()["programs_bound"] > 90


def test_moments_of_any_sizes() -> None:
    """std and var have eager's results, also if all elements are equal."""
    torch_ltc.reset_metrics()
    for n in (5, 7, 12, 100, 3, 1000):
        for x in (torch.full((n,), 2.0), torch.full((n, 3), 0.1), torch.randn(n) + 1e4):
            assert_close(x.to("lazy").std(0), x.std(0))
            assert_close(x.to("lazy").var(0), x.var(0))
    assert torch_ltc.metrics()["programs_bound"] > 10


def test_slices_that_end_beyond_their_operand() -> None:
    """Slices with a constant end have two skeletons: one if the end is within the operand,
    one if it is beyond."""
    torch_ltc.reset_metrics()
    for n in (5, 70, 9, 60, 11, 33, 31, 32, 50, 2, 64, 20, 40):
        x = torch.randn(n, 3)
        y = x.to("lazy").requires_grad_()
        (y[:32] * 2).square().sum().backward()
        expected = 8 * x * (torch.arange(n) < 32)[:, None]
        assert_close(y.grad, expected)
    assert torch_ltc.metrics()["compilations"] <= 2 * MOST_COMPILATIONS


def test_functions_of_one_skeleton() -> None:
    """Functions whose graphs have the same ops, with other relations between their sizes,
    have general programs of their own."""
    windows = ((2, 2, 0, 1), (3, 2, 1, 1), (4, 2, 1, 1), (3, 3, 1, 2))
    draw = random.Random(3)
    torch_ltc.reset_metrics()
    for step in range(60):
        kernel, stride, padding, dilation = windows[step % len(windows)]
        sizes = [2 * draw.randint(6, 20) + 1 for _ in range(3)]
        x = torch.randn(1, 1, *sizes)
        expected = F.max_pool3d(x, kernel, stride, padding, dilation)
        result = F.max_pool3d(x.to("lazy"), kernel, stride, padding, dilation)
        assert torch.equal(result.cpu(), expected)
    assert torch_ltc.metrics()["compilations"] <= 5 * len(windows)


MANY_DIMS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "add": lambda x: x * 2 + 1,
    "permute": lambda x: x.permute(4, 2, 0, 1, 3) * 2,
    "sum": lambda x: x.sum((1, 3)),
    "softmax": lambda x: x.softmax(-1),
    "cat": lambda x: torch.cat([x, x + 1], 2),
    "flip": lambda x: x.flip(0, 4),
    "flip inside": lambda x: x.flip(1, 3),
    "slice": lambda x: x[1:, :, None, ::2],
    "tril": torch.tril,
    "cumsum": lambda x: x.cumsum(2),
    "matmul": lambda x: x @ x.mT,
    "batch_norm": lambda x: F.batch_norm(x, None, None, training=True),
}


@pytest.mark.parametrize("name", MANY_DIMS)
def test_many_dims_that_vary(name: str) -> None:
    draw = random.Random(4)
    torch_ltc.reset_metrics()
    for _ in range(6):
        x = torch.randn(draw.sample(range(3, 12), 5))
        result = MANY_DIMS[name](x.to("lazy")).cpu()
        assert_close(result, MANY_DIMS[name](x), rtol=1e-4, atol=1e-4)
    assert torch_ltc.metrics()["compilations"] <= MOST_COMPILATIONS
