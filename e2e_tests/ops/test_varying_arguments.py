"""Every argument that may vary according to the op table (column `varies`) gives eager's
results for 32 different numbers, with a few programs."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import op_table
import pytest
import torch
import torch_ltc
from comparison import assert_close
from counting import counting
from torch.nn import functional as F
from torch_ltc._backend import bindings

NUM_STEPS = 32
MOST_PROGRAMS = 4

Body = Callable[[int, torch.Tensor], torch.Tensor]


def statistics(x: torch.Tensor) -> list[torch.Tensor]:
    return [torch.zeros(6, device=x.device), torch.ones(6, device=x.device)]


def batch_norm(i: int, x: torch.Tensor) -> torch.Tensor:
    mean, var = statistics(x)
    y = F.batch_norm(
        x, mean, var, training=True, momentum=1 / (i + 1), eps=1e-4 * i + 1e-5
    )
    return torch.cat([y, mean[None], var[None]])


def batch_norm_inference(i: int, x: torch.Tensor) -> torch.Tensor:
    return F.batch_norm(x, *statistics(x), training=False, eps=1e-5 * (i + 1))


def windows(i: int, x: torch.Tensor) -> torch.Tensor:
    y = x.clone()
    y[i % 4 : i % 4 + 3] = x[i % 3 + 1 : i % 3 + 4]
    y[i % 8] = x[(i + 1) % 8] + 1
    return y


def observed(i: int, x: torch.Tensor) -> torch.Tensor:
    on = torch.ones(1, dtype=torch.int32, device=x.device)
    low, high, scale = (
        torch.full((1,), value, device=x.device) for value in (-1.0, 1.0, 0.1)
    )
    return torch.fused_moving_avg_obs_fake_quant(
        x.float(), on, on, low, high, scale, on * 0, 0.01 * (i + 1), -128, 127, -1
    )


def diagonal_written(i: int, x: torch.Tensor) -> torch.Tensor:
    y = x.T.clone()
    y.diagonal(i % 3).mul_(3)
    return y


def strided_written(i: int, x: torch.Tensor) -> torch.Tensor:
    y = x.clone()
    y.as_strided((3, 4), (6, 1), i % 30).mul_(3)
    return y


def norm_order(i: int) -> float:
    return (0.0, 1.0, 2.0, float("inf"), -float("inf"), -1.5)[i % 8] if i % 8 < 6 else i


def attention(x: torch.Tensor, scale: float) -> torch.Tensor:
    q = x.view(1, 2, 4, 6)
    return F.scaled_dot_product_attention(q, q * 2, q + 1, scale=scale)


def embedding(i: int, x: torch.Tensor) -> torch.Tensor:
    rows = torch.arange(4, device=x.device)
    table = 3 * x.detach()
    return x[:4] + F.embedding(rows, table, max_norm=0.1 * i + 0.2, norm_type=i + 1)


def resized(
    x: torch.Tensor, mode: str, scale: float, antialias: bool = False
) -> torch.Tensor:
    """Resizes x, an image, to [18, 13] for all scales from 2.26 to 2.33."""
    options = {} if mode == "nearest" else {"antialias": antialias}
    return F.interpolate(x[None, None], scale_factor=scale, mode=mode, **options)[0, 0]


#: Functions of the step's number and of x of shape [8, 6], whose gradient is compared,
#: too.
CASES: dict[str, Body] = {
    "windows": windows,
    "clamp": lambda i, x: x.clamp(-0.1 * i, 0.3 + 0.05 * i),
    "clamp with ints": lambda i, x: (10 * x).clamp(-i, i + 1),
    "clamp_min": lambda i, x: torch.clamp_min(x, 0.1 * i - 1),
    "clamp_max": lambda i, x: torch.clamp_max(x, 1 - 0.1 * i),
    "hardtanh": lambda i, x: F.hardtanh(x, -0.05 * i, 0.1 * i + 0.1),
    "leaky_relu": lambda i, x: F.leaky_relu(x, 0.02 * i),
    "elu": lambda i, x: F.elu(x, 0.1 * i + 0.1),
    "selu, scales": lambda i, x: torch.ops.aten.elu(x, 1.0 + i, 0.5 + i, 0.2 * i),
    "celu": lambda i, x: F.celu(x, 0.1 * i + 0.1),
    "softplus": lambda i, x: F.softplus(x, 0.1 * i + 0.5, 10 - 0.3 * i),
    "threshold": lambda i, x: F.threshold(x, 0.1 * i - 1, -0.5 * i),
    "hardshrink": lambda i, x: F.hardshrink(x, 0.05 * i),
    "softshrink": lambda i, x: F.softshrink(x, 0.05 * i),
    "pow": lambda i, x: x.abs() ** (0.1 * i - 1),
    "pow of an integer": lambda i, x: x + (4 * x).long() ** (i % 7),
    "roots of -0 and -inf": lambda i, x: (
        x + torch.stack([-0 * x.abs(), -x.abs() / 0]) ** (0.25 * (i % 7 - 3))
    ),
    "logit": lambda i, x: torch.logit(x.abs(), 0.01 * i + 0.01),
    "huber": lambda i, x: F.huber_loss(x, x.detach().flip(0), delta=0.1 * i + 0.1),
    "smooth_l1": lambda i, x: F.smooth_l1_loss(
        x, x.detach().flip(0), beta=0.1 * (i % 9)
    ),
    "variance": lambda i, x: x.var(1, correction=i % 5),
    "variance and mean": lambda i, x: torch.stack(
        torch.var_mean(x, 0, correction=i % 7)
    ),
    "deviation": lambda i, x: x.std(correction=i + 1),
    "deviation and mean": lambda i, x: torch.stack(
        torch.std_mean(x, 1, correction=0.5 * (i % 9))
    ),
    "norm of all": lambda i, x: torch.ops.aten.norm.Scalar(x.detach(), 0.5 * i) + x,
    "norm of rows": lambda i, x: (
        torch.ops.aten.norm(x.detach(), 0.5 * i, [1]) + x[:, 0]
    ),
    "vector_norm": lambda i, x: (
        torch.linalg.vector_norm(x.detach(), norm_order(i), 1) * x[:, 0]
    ),
    "vector_norm of single elements": lambda i, x: (
        torch.linalg.vector_norm(x.detach()[..., None], norm_order(i), 2) * x
    ),
    "attention": lambda i, x: attention(x, 0.05 * i + 0.1),
    "attention without gradient": lambda i, x: (
        x + attention(x.detach(), 0.1 * i).view(8, 6)
    ),
    "nearest": lambda i, x: resized(x, "nearest", 2.26 + i / 512),
    "antialiased": lambda i, x: resized(x, "bilinear", 2.26 + i / 512, antialias=True),
    "antialiased, cubic": lambda i, x: resized(
        x, "bicubic", 2.26 + i / 512, antialias=True
    ),
    "bytes": lambda i, x: (
        x[:, :2] + resized((90 * x).to(torch.uint8), "bilinear", 2.26 + i / 512)[:8, :2]
    ),
    "cdist": lambda i, x: torch.cdist(x, x.detach().flip(0), 1 if i % 2 else torch.inf),
    "rrelu": lambda i, x: F.rrelu(x, 0.1 + i / 512, 0.3 + i / 256, training=True),
    "embedding": embedding,
    "segments": lambda i, x: torch.segment_reduce(
        x,
        "sum",
        lengths=torch.tensor([3, 5], device=x.device),
        axis=0,
        initial=0.1 * i - 1,
    ),
    "histc": lambda i, x: (
        x * torch.histc(x.detach().float(), 6, -2 - 0.1 * i, 1 + 0.1 * i)
    ),
    "logspace": lambda i, x: (
        x * torch.logspace(0.1 * i, 1 - 0.1 * i, 6, 1.5 + 0.1 * i, device=x.device)
    ),
    "layer_norm": lambda i, x: F.layer_norm(x, (6,), eps=0.01 * i + 1e-5),
    "group_norm": lambda i, x: F.group_norm(x, 3, eps=0.01 * i + 1e-5),
    "batch_norm": batch_norm,
    "batch_norm in inference": batch_norm_inference,
    "instance_norm": lambda i, x: F.instance_norm(x[None], eps=0.01 * i + 1e-5),
    "dropout": lambda i, x: F.dropout(x, 0.02 * i + 0.1),
    "roll": lambda i, x: x.roll(i - 9, 0) * x,
    "roll of all": lambda i, x: x.roll(5 * i - 30),
    "roll twice": lambda i, x: x.roll((i, -2 * i), (0, 1)),
    "tril": lambda i, x: x.tril(i % 15 - 7),
    "triu": lambda i, x: x.triu(i % 15 - 7) + 1,
    # The diagonals 0 to 2 of a tensor of shape [6, 8] are equally long.
    "diagonal": lambda i, x: x.T.diagonal(i % 3) * 2,
    "diagonal that is written": diagonal_written,
    "as_strided": lambda i, x: x.clone().as_strided((3, 4), (6, 1), i % 30) * 2,
    "as_strided that is written": strided_written,
    "fake_quantize": lambda i, x: torch.fake_quantize_per_tensor_affine(
        x, 0.01 * (i + 1), i - 3, -128, 127
    ),
    "observed": observed,
    "pad": lambda i, x: F.pad(x, (i, 40 - i, 3, 1), value=0.5 * i),
    "pad that cuts": lambda i, x: F.pad(x, (i % 5 - 2, 2 - i % 5)),
    "arange": lambda i, x: torch.arange(i, i + 6, device=x.device) * x,
    "arange of floats": lambda i, x: (
        torch.arange(0.5 * i, 0.5 * i + 3 + 0.1 * i, 0.5 + i / 60, device=x.device)[:6]
        * x
    ),
    "arange to a float": lambda i, x: torch.arange(5.1 + i / 60, device=x.device) * x,
    "arange downwards": lambda i, x: (
        torch.arange(3 * i, 3 * i - 12, -2, device=x.device) + x
    ),
    "linspace": lambda i, x: torch.linspace(i, 3 + 2 * i, 6, device=x.device) * x,
}


ROUNDED = {"attention", "logit", "pow"}
FLOAT32_ONLY = {"cdist", "antialiased", "antialiased, cubic"}


@pytest.fixture(autouse=True)
def nothing_varies_yet() -> Iterator[None]:
    torch_ltc.mark_step()
    with torch_ltc.config(varying_numbers="off"):
        (torch.ones(1, device="lazy") + 1).cpu()
    bindings().clear_program_cache()
    with torch_ltc.config(cache=False):
        yield


def run(body: Body, device: str, dtype: torch.dtype) -> list[torch.Tensor]:
    torch.manual_seed(3)
    x = torch.randn(8, 6).to(dtype).to(device)
    upstream = torch.randn(200).to(dtype).to(device)
    results = []
    for i in range(NUM_STEPS):
        torch.manual_seed(i)
        leaf = x.detach().requires_grad_()
        y = body(i, leaf)
        (gradient,) = torch.autograd.grad(
            (y.flatten() * upstream[: y.numel()] if y.numel() <= 200 else y).sum(), leaf
        )
        results += [y.detach(), gradient]
        if device == "lazy":
            torch_ltc.mark_step()
    return results


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["f32", "bf16"])
@pytest.mark.parametrize("name", CASES)
def test_one_program_for_all_numbers(name: str, dtype: torch.dtype) -> None:
    if dtype == torch.bfloat16 and ("norm" in name or name in ROUNDED):
        pytest.skip("eager rounds between ops; programs don't, not even with constants")
    if dtype == torch.bfloat16 and name in FLOAT32_ONLY:
        pytest.skip("eager doesn't have the op for bfloat16")
    with counting() as counts:
        ours = run(CASES[name], "lazy", dtype)
        torch_ltc.wait_device_ops()
    expected = run(CASES[name], "cpu", dtype)
    assert_close(ours, expected, equal_nan=True)
    compiled = counts.executions - counts.program_memory_hits
    most = 2 * MOST_PROGRAMS if name == "arange of floats" else MOST_PROGRAMS
    assert compiled <= most, f"{compiled} programs"


#: Names of number arguments that are constants of programs, with the reason.
CONSTANT = {
    "a dimension or a count of dimensions decides structure": {
        "axis", "ch_axis", "dim", "dims", "dim0", "dim1", "dim2", "dimension", "normalized_shape",
        "num_chunks", "reduction",
    },
    "decides the formula": {
        "compute_mode", "decimals", "interpolation_mode", "mode", "n", "normalization", "padding_mode",
    },
    "drawn on the host, not in the program": {
        "from", "to", "lambd", "mean", "median", "p", "sigma", "std",
    },
    "identifies a class or a row, which is the same in all steps": {"blank", "padding_idx"},
    "follows from a number of bits, which is the same in all steps": {"quant_min", "quant_max"},
}  # fmt: skip

CONSTANT_OF_OP = {
    "_ctc_loss.input_lengths": "nn.CTCLoss passes them as a tensor",
    "_ctc_loss.target_lengths": "nn.CTCLoss passes them as a tensor",
}


def sized(row: op_table.Row) -> list[str]:
    """The numbers that may vary together with sizes: test_moving_numbers.py."""
    return [word.partition(">=")[0] for word in row.sizes]


def test_every_number_that_stays_a_constant_has_a_reason() -> None:
    reasons = set().union(*CONSTANT.values())
    for row in rows():
        name = op_table.name_of(row).partition("::")[2]
        if row.schema.startswith("torch_ltc::"):
            continue
        for argument in row.arguments:
            kind = argument.type.rstrip("?")
            if kind not in op_table.NUMBER_TYPES:
                continue
            if argument.name in [*row.varies, *row.parameters, *sized(row)]:
                continue
            known = argument.name in reasons
            assert known or f"{name}.{argument.name}" in CONSTANT_OF_OP, (
                f"{row.schema}: may '{argument.name}' vary?"
            )


#: Ops that the cases reach under different names.
REACHED_OTHERWISE = {
    "_native_batch_norm_legit.no_stats", "_native_batch_norm_legit_functional",
    "_native_batch_norm_legit_no_training", "native_batch_norm",
}  # fmt: skip


def made_parameters(body: Body) -> set[str]:
    """Returns the arguments that vary in the programs of `body`: "min of aten::clamp"."""
    torch_ltc.reset_metrics()
    run(body, "lazy", torch.float32)
    torch_ltc.wait_device_ops()
    return {
        text.split(" (")[0].split(" at ")[0]
        for entry in torch_ltc.compile_log()
        for text in entry["varying"]
    }


def test_every_argument_that_may_vary_becomes_a_parameter() -> None:
    wanted = {
        f"{argument} of {op_table.name_of(row)}"
        for row in rows()
        if op_table.name_of(row).partition("::")[2] not in REACHED_OTHERWISE
        for argument in row.varies
    }
    with torch_ltc.config(tier="interpret"):
        seen = set().union(*(made_parameters(body) for body in CASES.values()))
    assert not wanted - seen


def rows() -> list[op_table.Row]:
    return [row for row in op_table.rows() if row.trace != "dialect"]
