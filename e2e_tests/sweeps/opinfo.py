"""Compares samples of PyTorch's OpInfo database on device `lazy` with eager CPU.

An entry of `op_db` is swept for one dtype in parts: its function, its in-place and out
variants, and first-order gradients. All samples of a part are traced before one step
computes them, so that an entry costs few compilations. A part that fails is repeated
sample by sample to find the sample that fails.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
import torch._lazy  # torch.testing uses it for random samples without importing it
import torch_ltc
from comparison import assert_close, largest
from sweeps.exclusions import is_excluded
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.opinfo.core import OpInfo, SampleInput
from torch.utils._pytree import tree_flatten, tree_map

FORWARD_DTYPES = (torch.float64, torch.bfloat16, torch.int64, torch.bool)
PARTS = ("function", "inplace", "out", "gradient")
#: Repeats the gradient in a separate program. This program reads the function's results
#: from memory, and its ops are fused differently than in one program with the function.
CUT_GRADIENT = "cut gradient"

#: Tolerances relative to the largest magnitude of the expected tensor. Kernels may add in
#: a different order from eager's; bfloat16 is rounded once per kernel, not once per op.
TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-11, torch.bfloat16: 2e-2, torch.float16: 2e-3}  # fmt: skip


@dataclasses.dataclass
class Outcome:
    """Outcome of one part: `agrees`, `fallback` (agrees, but the ops in `fallbacks` ran
    eagerly), `wrong` or `error` (with the first failure), `none` (nothing to run)."""

    status: str
    samples: int = 0
    fallbacks: list[str] = dataclasses.field(default_factory=list)
    detail: str = ""


def entry_name(op: OpInfo) -> str:
    return f"{op.name}.{op.variant_test_name}" if op.variant_test_name else op.name


def entries(dtype: torch.dtype) -> list[OpInfo]:
    return [op for op in op_db if dtype in op.supported_dtypes("cpu")]


# -- one sample ----------------------------------------------------------------


class Mover:
    """Copies a sample's tensors to a device; arguments that are the same tensor remain the
    same tensor."""

    def __init__(self, device: str) -> None:
        self.device = device
        self.made: dict[int, torch.Tensor] = {}
        self.leaves: list[torch.Tensor] = []

    def __call__(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            if id(value) not in self.made:
                copy = value.detach().clone().to(self.device)
                if value.requires_grad:
                    self.leaves.append(copy.requires_grad_())
                self.made[id(value)] = copy
            return self.made[id(value)]
        if isinstance(value, torch.device) or value == "cpu":
            return torch.device(self.device)
        return value


def tensors(value: Any) -> list[torch.Tensor]:
    return [leaf for leaf in tree_flatten(value)[0] if isinstance(leaf, torch.Tensor)]


#: Ops whose index tensors must be on the CPU, whatever the device.
CPU_ARGUMENTS = ("tensor_split",)


def _call(
    function: Callable, sample: SampleInput, device: str, **more: Any
) -> tuple[Any, Mover]:
    mover = Mover(device)
    moved = tree_map(mover, sample.input)
    args, kwargs = sample.args, sample.kwargs
    if getattr(function, "__name__", "") not in CPU_ARGUMENTS:
        args, kwargs = tree_map(mover, (args, kwargs))
    torch.manual_seed(7)
    return function(moved, *args, **kwargs, **more), mover


def run_function(op: OpInfo, sample: SampleInput, device: str) -> list[torch.Tensor]:
    return tensors(_call(op.op, sample, device)[0])


def run_inplace(op: OpInfo, sample: SampleInput, device: str) -> list[torch.Tensor]:
    answer, mover = _call(op.inplace_variant, sample, device)
    return tensors(answer) + [t for t in mover.made.values()]


def run_out(op: OpInfo, sample: SampleInput, device: str) -> list[torch.Tensor]:
    """Writes the results into tensors of the right sizes, and into empty tensors."""
    right = _call(op.op, sample, "cpu")[0]
    results = []
    for empty in (False, True):
        out = tree_map(
            partial(_destination, empty=empty, device=device),
            tuple(right) if isinstance(right, (tuple, list)) else right,
        )
        _call(op.op, sample, device, out=out)
        results += tensors(out)
    return results


def _destination(result: torch.Tensor, empty: bool, device: str) -> torch.Tensor:
    sizes = (0,) if empty else result.shape
    return torch.full(sizes, 3, dtype=result.dtype, device=device)


def run_gradient(
    op: OpInfo, sample: SampleInput, device: str, cut: bool = False
) -> list[torch.Tensor]:
    """Returns the gradients of a weighted sum of the results, with a different weight for
    each element."""
    answer, mover = _call(op.op, sample, device)
    if cut:
        torch_ltc.mark_step()
    chosen = sample.output_process_fn_grad(answer)
    results = [r for r in tensors(chosen) if r.requires_grad]
    if not results or not mover.leaves:
        return []
    weights = [
        torch.linspace(0.5, 1.5, r.numel()).reshape(r.shape).to(r.dtype).to(device)
        for r in results
    ]
    gradients = torch.autograd.grad(results, mover.leaves, weights, allow_unused=True)
    return [g for g in gradients if g is not None]


RUNNERS = {
    "function": run_function,
    "inplace": run_inplace,
    "out": run_out,
    "gradient": run_gradient,
    CUT_GRADIENT: partial(run_gradient, cut=True),
}


# -- comparison ----------------------------------------------------------------


def difference(
    lazy: list[torch.Tensor],
    expected: list[torch.Tensor],
    exact: list[torch.Tensor] | None = None,
    tolerance: float | None = None,
) -> str:
    """Returns the difference, or "". `exact`: eager's results in float64. If given, a
    result also passes if its error is at most 4 times that of eager's result, because
    cancellation may make both inaccurate."""
    if len(lazy) != len(expected):
        return f"{len(lazy)} results instead of {len(expected)}"
    for number, (result, wanted) in enumerate(zip(lazy, expected)):
        where = f"result {number}: "
        if result.dtype != wanted.dtype:
            return f"{where}{result.dtype} instead of {wanted.dtype}"
        if result.shape != wanted.shape:
            return f"{where}{tuple(result.shape)} instead of {tuple(wanted.shape)}"
        try:
            _assert_near(result.detach().cpu(), wanted.detach(), tolerance)
        except AssertionError as error:
            known = exact is not None and len(exact) == len(expected)
            if known and _is_as_exact(result.detach().cpu(), wanted, exact[number]):
                continue
            return where + " ".join(str(error).split())
    return ""


def _is_as_exact(
    result: torch.Tensor, wanted: torch.Tensor, exact: torch.Tensor
) -> bool:
    if exact.shape != wanted.shape or not exact.is_floating_point():
        return False
    ours, eagers = ((t.double() - exact).abs() for t in (result, wanted.detach()))
    both = torch.isfinite(exact) & torch.isfinite(wanted) & torch.isfinite(result)
    same = (result == wanted) | (result.isnan() & wanted.isnan())
    return bool((both | same).all() and ours[both].max() <= 4 * eagers[both].max())


def _assert_near(
    result: torch.Tensor, wanted: torch.Tensor, tolerance: float | None
) -> None:
    if result.layout != torch.strided or result.is_quantized:
        assert_close(result, wanted, equal_nan=True)
        return
    real = torch.float64 if wanted.dtype == torch.complex128 else torch.float32
    kind = real if wanted.dtype.is_complex else wanted.dtype
    relative = tolerance or TOLERANCE.get(kind, 0)
    # Results near zero get a larger tolerance: they may be differences of numbers near one.
    smallest = 1e-2 if kind == torch.float32 else 1e-3
    absolute = relative * largest(wanted, smallest) if relative else 0
    assert_close(result, wanted, relative, absolute, equal_nan=True)


# -- an entry ------------------------------------------------------------------


def samples_of(
    op: OpInfo, dtype: torch.dtype, gradient: bool, limit: int | None
) -> Iterator[SampleInput]:
    torch.manual_seed(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        samples = op.sample_inputs("cpu", dtype, requires_grad=gradient)
        yield from itertools.islice(samples, limit)


def is_gradient(part: str) -> bool:
    return part in ("gradient", CUT_GRADIENT)


def has_part(op: OpInfo, part: str, dtype: torch.dtype) -> bool:
    if part == "inplace":
        return op.inplace_variant is not None
    if part == "out":
        return op.supports_out
    if is_gradient(part):
        return op.supports_autograd and dtype in op.supported_backward_dtypes("cpu")
    return True


def _fallback_ops() -> list[str]:
    return sorted({row["op"] for row in torch_ltc.fallbacks()})


def settle() -> None:
    for action in (torch_ltc.mark_step, torch_ltc.wait_device_ops):
        with contextlib.suppress(Exception):
            action()


def one_line(error: BaseException) -> str:
    return f"{type(error).__name__}: " + " ".join(str(error).split())[:400]


@dataclasses.dataclass
class _Pending:
    sample: SampleInput
    expected: list[torch.Tensor]
    lazy: list[torch.Tensor] = dataclasses.field(default_factory=list)


def _own(sample: SampleInput) -> SampleInput:
    """Returns a copy of the sample: some samples' tensors are overwritten when the next
    sample is generated."""
    made: dict[int, torch.Tensor] = {}

    def copy(value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        if id(value) not in made:
            own = value.detach().clone().requires_grad_(value.requires_grad)
            made[id(value)] = own
        return made[id(value)]

    parts = tree_map(copy, (sample.input, sample.args, sample.kwargs))
    return SampleInput(
        parts[0],
        args=parts[1],
        kwargs=parts[2],
        output_process_fn_grad=sample.output_process_fn_grad,
        broadcasts_input=sample.broadcasts_input,
        name=sample.name,
    )


def _expected(op: OpInfo, part: str, samples: Iterator[SampleInput]) -> list[_Pending]:
    pending = []
    for sample in map(_own, samples):
        if part == "inplace" and sample.broadcasts_input:
            continue
        try:
            expected = RUNNERS[part](op, sample, "cpu")
        except Exception:
            # Eager rejects the sample, for example integers in a floating-point op.
            continue
        pending.append(_Pending(sample, expected))
    return pending


def sweep_part(op: OpInfo, part: str, dtype: torch.dtype, limit: int | None) -> Outcome:
    if not has_part(op, part, dtype) or is_excluded(entry_name(op)):
        return Outcome("none")
    with warnings.catch_warnings(), torch_ltc.config(compile_failure="raise"):
        warnings.simplefilter("ignore")
        pending = _expected(op, part, samples_of(op, dtype, is_gradient(part), limit))
        if not pending:
            return Outcome("none")
        settle()
        torch_ltc.reset_metrics()
        outcome = _compare_together(op, part, pending)
        if outcome.status in ("error", "wrong"):
            settle()
            outcome.detail = _first_failure(op, part, pending) or outcome.detail
            settle()
    return outcome


def _compare_together(op: OpInfo, part: str, pending: list[_Pending]) -> Outcome:
    try:
        for one in pending:
            one.lazy = RUNNERS[part](op, one.sample, "lazy")
        torch_ltc.mark_step(wait=True)
        fallbacks = _fallback_ops()
        for one in pending:
            text = difference(one.lazy, one.expected)
            if text and _is_rounded(one.expected):
                text = difference(one.lazy, one.expected, _exact(op, part, one.sample))
            if text:
                return Outcome("wrong", len(pending), fallbacks, text)
    except Exception as error:
        return Outcome("error", len(pending), _fallback_ops(), one_line(error))
    finally:
        for one in pending:
            one.lazy = []
    status = "fallback" if fallbacks else "agrees"
    return Outcome(status, len(pending), fallbacks)


#: Dtypes whose results may be compared by their distance from the float64 results.
ROUNDED = (torch.float32, torch.bfloat16)


def _is_rounded(tensors: list[torch.Tensor]) -> bool:
    return any(t.dtype in ROUNDED for t in tensors)


def _exact(op: OpInfo, part: str, sample: SampleInput) -> list[torch.Tensor] | None:
    """Returns eager's results for the same numbers in float64."""

    def widen(value: Any) -> Any:
        if isinstance(value, torch.Tensor) and value.dtype in ROUNDED:
            return value.detach().double().requires_grad_(value.requires_grad)
        is_rounded = isinstance(value, torch.dtype) and value in ROUNDED
        return torch.float64 if is_rounded else value

    parts = tree_map(widen, (sample.input, sample.args, sample.kwargs))
    wide = SampleInput(parts[0], args=parts[1], kwargs=parts[2])
    wide.output_process_fn_grad = sample.output_process_fn_grad
    try:
        return RUNNERS[part](op, wide, "cpu")
    except Exception:
        return None


def _first_failure(op: OpInfo, part: str, pending: list[_Pending]) -> str:
    for number, one in enumerate(pending):
        outcome = _compare_together(op, part, [one])
        if outcome.status in ("error", "wrong"):
            summary = " ".join(str(one.sample.summary()).split())[:300]
            return f"sample {number}: {outcome.detail} | {summary}"
    return ""
