"""Ops with a formula in Python are host calls of torch_ltc's own programs, with eager's
values and strides in each tier; other compilers and exports get the formula."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest
import torch
import torch.nn.functional as F
import torch_ltc
from comparison import assert_close
from counting import counting

Function = Callable[..., torch.Tensor]


def _resize(mode: str, **options: object) -> Function:
    return lambda x: F.interpolate(x, scale_factor=1.7, mode=mode, **options)


def _bags(mode: str) -> Function:
    def function(weight: torch.Tensor) -> torch.Tensor:
        indices = torch.arange(13, device=weight.device) * 5 % len(weight)
        offsets = torch.tensor([0, 2, 2, 7], device=weight.device)
        return F.embedding_bag(indices, weight, offsets, mode=mode)

    return function


#: A function, the sizes of its arguments, and the names of the op and of its gradient.
CASES: dict[str, tuple[Function, tuple[tuple[int, ...], ...], tuple[str, str]]] = {
    "linear": (_resize("linear"), ((2, 4, 9),), ("upsample_linear1d", "upsample_linear1d_backward")),
    "bilinear": (_resize("bilinear"), ((2, 4, 5, 6),), ("upsample_bilinear2d", "upsample_bilinear2d_backward")),
    "bicubic": (_resize("bicubic", align_corners=True), ((2, 4, 5, 6),), ("upsample_bicubic2d", "upsample_bicubic2d_backward")),
    "trilinear": (_resize("trilinear"), ((2, 4, 3, 5, 6),), ("upsample_trilinear3d", "upsample_trilinear3d_backward")),
    "grid": (lambda x, g: F.grid_sample(x, g, align_corners=False), ((2, 3, 5, 6), (2, 4, 3, 2)), ("grid_sampler_2d", "grid_sampler_2d_backward")),
    "grid, volumes": (lambda x, g: F.grid_sample(x, g, align_corners=True), ((2, 3, 5, 6, 4), (2, 4, 3, 2, 3)), ("grid_sampler_3d", "grid_sampler_3d_backward")),
    "cdist": (lambda x, y: torch.cdist(x, y, 1.0), ((2, 5, 3), (2, 4, 3)), ("_cdist_forward", "_cdist_backward")),
    "bags, sum": (_bags("sum"), ((11, 6),), ("_embedding_bag", "_embedding_bag_backward")),
    "bags, mean": (_bags("mean"), ((11, 6),), ("_embedding_bag", "_embedding_bag_backward")),
    "bags, max": (_bags("max"), ((11, 6),), ("_embedding_bag", "_embedding_bag_backward")),
}  # fmt: skip


def _arguments(name: str, device: str) -> list[torch.Tensor]:
    torch.manual_seed(0)
    made = [torch.rand(sizes) * 2 - 1 for sizes in CASES[name][1]]
    return [x.to(device).requires_grad_() for x in made]


def _with_gradients(name: str, device: str) -> list[torch.Tensor]:
    arguments = _arguments(name, device)
    result = CASES[name][0](*arguments)
    outer = (torch.arange(result.numel()) % 7 - 3.0).view(result.shape).to(device)
    return [result.detach(), *torch.autograd.grad(result, arguments, outer)]


def _ops(text: str) -> list[str]:
    return re.findall(r"torch\.aten\.(\w+)", text)


@pytest.mark.parametrize("tier", ["interpret", "compile"])
@pytest.mark.parametrize("name", CASES)
def test_values_and_strides(name: str, tier: str) -> None:
    expected = _with_gradients(name, "cpu")
    with torch_ltc.config(tier=tier), counting() as counts:
        actual = _with_gradients(name, "lazy")
        assert [x.stride() for x in actual] == [x.stride() for x in expected]
        assert all(map(torch.equal, (x.cpu() for x in actual), expected))
    assert counts.fallback_calls == 0


@pytest.mark.parametrize("name", CASES)
def test_a_call_is_one_op(name: str) -> None:
    forward, backward = CASES[name][2]
    arguments = _arguments(name, "lazy")
    result = CASES[name][0](*arguments)
    gradients = torch.autograd.grad(result, arguments, torch.ones_like(result))
    counted = _ops("".join(torch_ltc.debug.dump(g, "torch-raw") for g in gradients))
    assert backward in counted
    # A gradient of cdist for each operand: only one of them is in each program.
    assert counted.count(backward) == len(gradients)
    assert forward in _ops(torch_ltc.debug.dump(result, "torch-raw"))
    assert len(counted) <= 12 * len(gradients), counted


@pytest.fixture
def texts() -> Iterator[list[str]]:
    """The programs that a backend for other compilers gets. It runs them itself."""
    seen: list[str] = []

    def compile(program: torch_ltc.Program) -> Callable:
        seen.append(program.text)
        return torch_ltc.compile_mlir(program.text)

    torch_ltc.register_backend("recorded", compile, stage="torch")
    with torch_ltc.use_backend("recorded"):
        yield seen
    torch_ltc.unregister_backend("recorded")


@pytest.mark.parametrize("name", CASES)
def test_other_compilers_get_the_formula(name: str, texts: list[str]) -> None:
    expected = _with_gradients(name, "cpu")
    with counting() as counts:
        actual = _with_gradients(name, "lazy")
        assert_close([x.cpu() for x in actual], expected)
    assert counts.fallback_calls == 0
    assert texts
    assert not set(CASES[name][2]) & set(_ops("".join(texts)))


@pytest.mark.parametrize("name", CASES)
def test_exports_contain_the_formula(name: str) -> None:
    function = CASES[name][0]
    arguments = [x.detach() for x in _arguments(name, "cpu")]
    exported = torch_ltc.export(function, tuple(arguments), dialect="torch")
    assert CASES[name][2][0] not in _ops(exported.text)
    assert_close(exported.run()[0], function(*arguments))
    # Formulas are preferred only until the export ends.
    lazy = function(*_arguments(name, "lazy"))
    assert CASES[name][2][0] in _ops(torch_ltc.debug.dump(lazy, "torch-raw"))


def test_powers_are_faster_as_a_formula() -> None:
    x = torch.rand(5, 3).to("lazy")
    text = torch_ltc.debug.dump(torch.cdist(x, x + 1, 3.0), "torch-raw")
    assert "_cdist_forward" not in _ops(text)


@pytest.mark.parametrize("by", ["size", "scale"])
@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_all_sizes_share_a_few_programs(mode: str, by: str) -> None:
    x = torch.rand(2, 3, 8, 10)
    lazy = x.to("lazy").requires_grad_()
    with torch_ltc.config(tier="compile", cache=False), counting() as counts:
        for i in range(32):
            options = (
                {"size": (9 + i, 50 - i)}
                if by == "size"
                else {"scale_factor": 1.3 + 0.13 * i}
            )
            result = F.interpolate(lazy * 2, mode=mode, **options)
            (gradient,) = torch.autograd.grad(result.sum(), lazy)
            assert gradient.shape == x.shape
            expected = F.interpolate(x * 2, mode=mode, **options)
            assert torch.equal(result.cpu(), expected)
            gradient.cpu()
    assert counts.compilations <= 4
