"""PyTorch's state (default dtype, modes) affects the results of ops: nothing that is
cached across traces is used under a different state."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator

import pytest
import torch
import torch_ltc
from comparison import assert_close, assert_same
from subprocesses import run_python

F32, F64 = torch.float32, torch.float64

#: Programs whose results have the default dtype, which the tracer finds by a closed form or
#: by a Meta kernel: constructors, ops with numbers among the operands, ops that run
#: eagerly.
PROGRAMS: dict[str, Callable[[str], object]] = {
    "unary": lambda d: torch.arange(1, 5, device=d).sqrt(),
    "several": lambda d: torch.arange(1, 5, device=d).exp().log() + 1,
    "division": lambda d: torch.arange(1, 5, device=d) / 3,
    "division of tensors": lambda d: (
        torch.arange(1, 5, device=d) / torch.arange(2, 6, device=d)
    ),
    "constructors": lambda d: [
        torch.full((3,), 1.5, device=d),
        torch.linspace(0, 1, 5, device=d),
        torch.arange(0.5, 4, device=d),
        torch.eye(3, device=d),
        torch.scalar_tensor(2.5, device=d),
    ],
    "where": lambda d: torch.where(torch.arange(3, device=d) > 1, 0.5, 2.0),
    "numbers": lambda d: torch.arange(4, device=d) * 0.3,
    "complex": lambda d: 1j * torch.ones(2, device=d),
    "eager": lambda d: torch.special.i0(torch.arange(4, device=d)),
    "of a Meta kernel": lambda d: torch.cov(torch.arange(6, device=d).view(2, 3)),
}


@contextlib.contextmanager
def default_dtype(dtype: torch.dtype) -> Iterator[None]:
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


@pytest.mark.parametrize("tier", ["compile", "interpret"])
@pytest.mark.parametrize("dtypes", [(F32, F64, F32), (F64, F32, F64)], ids=str)
@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_default_dtype(program: Callable, dtypes: tuple, tier: str) -> None:
    with torch_ltc.config(tier=tier):
        for dtype in dtypes:
            with default_dtype(dtype):
                assert_same(program("lazy"), program("cpu"))


def test_default_dtype_that_changes_before_the_step_runs() -> None:
    """A step uses the default dtype under which it was traced, although the interpreter
    runs asynchronously to the tracing thread."""
    with torch_ltc.config(tier="interpret"), default_dtype(F64):
        lazy = [torch.arange(1, 5, device="lazy").sqrt(), torch.eye(2).to("lazy")]
        lazy.append(torch.linspace(0, 1, 3, device="lazy"))
        torch_ltc.mark_step()
        expected = [torch.arange(1, 5).sqrt(), torch.eye(2), torch.linspace(0, 1, 3)]
    assert_same(lazy, expected)


def test_default_dtype_and_the_cache_on_disk(own_cache: str) -> None:
    text = """
        import torch
        torch.set_default_dtype(torch.{})
        print(torch.arange(1, 5, device="lazy").sqrt().mul(3).cpu().tolist())
    """
    for name in ("float32", "float64", "float32"):
        # Results are compared with a tolerance, because on some processors eager doesn't
        # round square roots correctly.
        expected = torch.arange(1, 5).to(getattr(torch, name)).sqrt().mul(3)
        printed = json.loads(run_python(text.format(name)).stdout)
        digits = torch.tensor(printed, dtype=torch.float64)
        rtol = 4 * torch.finfo(expected.dtype).eps
        assert_close(digits, expected.double(), rtol=rtol, atol=0)


@contextlib.contextmanager
def switched(read: Callable, write: Callable, value: object) -> Iterator[None]:
    before = read()
    write(value)
    try:
        yield
    finally:
        write(before)


STATES: dict[str, Callable[[], contextlib.AbstractContextManager]] = {
    "default dtype": lambda: default_dtype(F64),
    "gradient mode": torch.no_grad,
    "inference mode": torch.inference_mode,
    "autocast": lambda: torch.autocast("lazy", torch.bfloat16),
    "default device": lambda: torch.device("lazy"),
    "attention kernels": lambda: switched(
        torch.backends.cuda.math_sdp_enabled, torch.backends.cuda.enable_math_sdp, False
    ),
    "deterministic algorithms": lambda: switched(
        torch.are_deterministic_algorithms_enabled,
        torch.use_deterministic_algorithms,
        True,
    ),
    "filling of memory": lambda: switched(
        torch._C._get_deterministic_fill_uninitialized_memory,
        torch._C._set_deterministic_fill_uninitialized_memory,
        not torch._C._get_deterministic_fill_uninitialized_memory(),
    ),
    "oneDNN": lambda: torch.backends.mkldnn.flags(enabled=False),
    "precision of products": lambda: switched(
        torch.get_float32_matmul_precision,
        torch.set_float32_matmul_precision,
        "medium",
    ),
}


@pytest.mark.parametrize("state", STATES.values(), ids=STATES)
def test_captured_steps_are_traced_again(state: Callable) -> None:
    weight = torch.ones(3, device="lazy")

    @torch_ltc.capture
    def step(x: torch.Tensor) -> torch.Tensor:
        return (x * weight).sum() + torch.arange(3, device=x.device).sqrt().sum()

    x = torch.ones(3, device="lazy")
    torch_ltc.mark_step()
    for _ in range(4):
        step(x)
    replays = step.replays
    assert replays
    with state():
        assert step(x).item() == pytest.approx(3 + 1 + 2**0.5)
    assert step.replays == replays
    assert step.fallbacks


def test_a_captured_step_under_another_default_dtype() -> None:
    @torch_ltc.capture
    def step(x: torch.Tensor) -> torch.Tensor:
        return (x.to(torch.int64) / 3).sum()

    x = torch.ones(3, device="lazy")
    torch_ltc.mark_step()
    for dtype in (F32, F64, F32):
        with default_dtype(dtype):
            for _ in range(4):
                assert step(x).dtype == dtype
