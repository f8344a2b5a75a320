"""A registered backend may state which ops it doesn't support; lockstep names the op for
which a backend's result is wrong."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch_ltc
from comparison import assert_close
from subprocesses import run_python
from torch import nn

F = nn.functional


def by_text(change: Callable[[str], str]) -> Callable:
    return lambda program: torch_ltc.compile_mlir(change(program.text))


@pytest.mark.parametrize(
    ("names", "near"),
    [
        (["aten.nope"], "which isn't an op of programs"),
        (["aten.erff"], "did you mean aten.erf"),
        (["aten::sotr"], "did you mean aten.sort"),
        (["aten.softmax"], "aten._softmax"),
    ],
)
def test_unknown_unsupported_ops(names: list[str], near: str) -> None:
    with pytest.raises(ValueError, match=near):
        torch_ltc.register_backend("mine", by_text(str), unsupported_ops=names)


def test_a_text_is_no_list_of_ops() -> None:
    with pytest.raises(TypeError, match="unsupported_ops must be a list of ops"):
        torch_ltc.register_backend("mine", by_text(str), unsupported_ops="aten.erf")


@pytest.mark.parametrize("name", ["aten.erf", "aten::sort", "aten.sort.stable"])
def test_known_unsupported_ops(name: str) -> None:
    torch_ltc.register_backend("mine", by_text(str), unsupported_ops=[name])
    torch_ltc.unregister_backend("mine")


@pytest.mark.parametrize(
    ("right", "wrong", "stage"),
    [
        ("torch.aten.tanh ", "torch.aten.sigmoid ", "torch"),
        ("torch.aten.mm ", "torch.aten.add_free ", "torch-raw"),
        ("math.tanh", "math.exp", "linalg"),
    ],
)
def test_lockstep_names_the_op_of_a_wrong_backend(
    right: str, wrong: str, stage: str
) -> None:
    if wrong.endswith("add_free "):  # a product with exchanged operands
        change = swap_operands
    else:
        change = lambda text: text.replace(right, wrong)  # noqa: E731
    torch_ltc.register_backend("wrong", by_text(change), stage=stage)
    op = "aten::mm" if stage == "torch-raw" else "aten::tanh"
    x = torch.arange(16.0).reshape(4, 4).div(20).to("lazy")
    w = torch.linspace(-1, 1, 16).reshape(4, 4).to("lazy")
    torch_ltc.mark_step()
    try:
        with (
            pytest.raises(RuntimeError, match=f"first op that differs.* {op}.*checks"),
            torch_ltc.use_backend("wrong"),
            torch_ltc.debug.lockstep(),
        ):
            (x @ w).tanh().mul(2.0).sum().item()
    finally:
        torch_ltc.config.backend = ""
        torch_ltc.unregister_backend("wrong")


def swap_operands(text: str) -> str:
    lines = text.splitlines()
    for number, line in enumerate(lines):
        if "torch.aten.mm " in line:
            head, operands = line.split("torch.aten.mm ", 1)
            names, types = operands.split(" : ", 1)
            first, second = names.split(", ")
            lines[number] = f"{head}torch.aten.mm {second}, {first} : {types}"
    return "\n".join(lines)


def test_no_recompile_forbids_the_first_program() -> None:
    run_python(
        "import torch, torch_ltc\n"
        "x = torch.ones(3).to('lazy')\n"
        "try:\n"
        "    with torch_ltc.debug.no_recompile():\n"
        "        x.tan().sum().item()\n"
        "except RuntimeError as error:\n"
        "    assert 'it is the process' in str(error), error\n"
        "else:\n"
        "    raise AssertionError('it compiled')\n"
        "assert x.tan().sum().isfinite().item()\n"
    )


# -- ops that other compilers don't lower ------------------------------------------

REJECTED = [
    "select_backward",
    "slice_backward",
    "avg_pool2d_backward",
    "embedding_dense_backward",
    "_prelu_kernel",
    "index_add",
    "searchsorted",
]
INDEX = torch.tensor([3, 0, 3, 1])


def pool(**options) -> Callable[[torch.Tensor], torch.Tensor]:
    return lambda x: F.avg_pool2d(x.reshape(1, 2, 5, 6), **options)


PORTABLE: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "select": lambda x: x[:, -2].square(),
    "select first": lambda x: x[1].square(),
    "slice": lambda x: x[:, 1:7].square(),
    "slice by steps": lambda x: x[1:, 1:9:3].square(),
    "slice of nothing": lambda x: x[:, 4:4].square().sum() + x,
    "pool": pool(kernel_size=2),
    "pool with overlap": pool(kernel_size=3, stride=2),
    "pool with padding": pool(kernel_size=(3, 2), stride=(2, 1), padding=1),
    "pool of elements": pool(kernel_size=3, padding=1, count_include_pad=False),
    "pool rounded up": pool(kernel_size=2, stride=2, padding=1, ceil_mode=True),
    "pool with a divisor": pool(kernel_size=2, divisor_override=3),
    "embedding": lambda x: F.embedding(INDEX.to(x.device), x).square(),
    "embedding with padding": lambda x: F.embedding(
        INDEX.to(x.device), x, padding_idx=3
    ).square(),
    "embedding by frequency": lambda x: F.embedding(
        INDEX.to(x.device), x, scale_grad_by_freq=True
    ).square(),
    "prelu": lambda x: F.prelu(x, torch.full((10,), 0.2, device=x.device)),
    "index_add": lambda x: x.index_add(0, INDEX.to(x.device), x[:4] * 2, alpha=3),
    "index_add of columns": lambda x: x.index_add(
        1, INDEX.to(x.device), x[:, :4].exp()
    ),
    "searchsorted": lambda x: (
        torch.searchsorted(x.detach().sort(1).values, x.detach()) * x
    ),
    "searchsorted right": lambda x: (
        torch.searchsorted(x.detach()[0].sort().values, x.detach(), right=True) * x
    ),
    "searchsorted number": lambda x: (
        torch.searchsorted(x.detach()[0].sort().values, 0.1) * x
    ),
}


@pytest.mark.parametrize("name", PORTABLE)
def test_ops_that_other_compilers_do_not_lower(name: str) -> None:
    texts = []

    def compile(program):
        texts.append(program.text)
        return torch_ltc.compile_mlir(program.text)

    torch_ltc.register_backend("other", compile, stage="torch")
    results = []
    try:
        for device in ("cpu", "lazy"):
            values = torch.linspace(-1, 1, 60).sin().reshape(6, 10)
            x = values.to(device).requires_grad_()
            torch_ltc.mark_step()
            torch_ltc.use_backend("other" if device == "lazy" else None)
            y = PORTABLE[name](x)
            (
                y * torch.linspace(0, 1, y.numel(), device=device).view_as(y)
            ).sum().backward()
            results.append([y.detach().cpu(), x.grad.cpu()])
    finally:
        torch_ltc.config.backend = ""
        torch_ltc.unregister_backend("other")
    assert_close(*results, rtol=1e-5, atol=1e-5)
    assert texts
    for op in REJECTED:
        assert not any(f"aten.{op}" in text for text in texts), op
