"""Compares optimizers of PyTorch's `optim_db` on device `lazy` with eager CPU.

Parameters and state are compared after some steps, for each input of an optimizer and each
of its implementations (`foreach`, `fused`, `differentiable`).
"""

from __future__ import annotations

import copy
import warnings
from typing import Any

import torch
import torch_ltc
from sweeps.opinfo import Outcome, difference, one_line, settle
from torch.testing._internal.common_optimizers import (
    OptimizerInfo,
    OptimizerInput,
    optim_db,
)

#: Optimizers that can't be compared -> why.
EXCLUDED = {"SparseAdam": "takes sparse gradients only: semantics/test_sparse.py"}

STEPS = 4

#: Tolerances relative to the largest magnitude, for optimizers that need more than the
#: default tolerance of float32: Muon computes its updates in bfloat16, and a line search
#: amplifies errors of the last digit.
TOLERANCE = {"Muon": 2e-3, "LBFGS": 2e-3}


def optimizer_name(info: OptimizerInfo) -> str:
    return info.optim_cls.__name__


def optimizers() -> list[OptimizerInfo]:
    return [info for info in optim_db if optimizer_name(info) not in EXCLUDED]


def inputs_of(info: OptimizerInfo, limit: int | None) -> list[OptimizerInput]:
    found = info.optim_inputs_func(device="cpu")
    flags = info.supported_impls
    return [
        OptimizerInput(
            None,
            one.kwargs | {flag: flag == chosen for flag in flags},
            f"{one.desc} {chosen}".strip(),
        )
        for one in found[:limit]
        for chosen in ("", *flags)
    ]


def is_rejected(one: OptimizerInput, error: Exception) -> bool:
    """Whether torch itself rejects `fused` for this input."""
    return bool(one.kwargs.get("fused")) and "fused" in str(error)


def run(info: OptimizerInfo, one: OptimizerInput, device: str) -> list[torch.Tensor]:
    torch.manual_seed(5)
    shapes = ((4, 3), (3, 5)) if optimizer_name(info) == "Muon" else ((4, 3), (7,), ())
    parameters = [torch.randn(shape).to(device).requires_grad_() for shape in shapes]
    if one.kwargs.get("differentiable"):
        # A differentiable optimizer writes to its parameters in place and under autograd,
        # which rejects writes to leaves.
        parameters = [p.clone() for p in parameters]
    kwargs: dict[str, Any] = copy.deepcopy(one.kwargs)
    optimizer = info.optim_cls(parameters, **kwargs)
    targets = [torch.randn(shape).to(device) for shape in shapes]

    def closure() -> torch.Tensor:
        with torch.enable_grad():
            copies = [p.detach().requires_grad_() for p in parameters]
            loss = sum(
                ((p - t) ** 2).sum() + p.sin().sum() for p, t in zip(copies, targets)
            )
            loss.backward()
        for parameter, leaf in zip(parameters, copies):
            parameter.grad = leaf.grad
        return loss.detach()

    for _ in range(STEPS):
        if info.step_requires_closure:
            optimizer.step(closure)
        else:
            closure()
            optimizer.step()
    results = [p.detach() for p in parameters]
    if optimizer_name(info) == "LBFGS":
        return results  # its state at the minimum is noise
    for parameter in parameters:
        state = optimizer.state.get(parameter, {})
        results += [
            v.detach() for _, v in sorted(state.items()) if isinstance(v, torch.Tensor)
        ]
    return results


def sweep(info: OptimizerInfo, one: OptimizerInput) -> Outcome:
    with warnings.catch_warnings(), torch_ltc.config(compile_failure="raise"):
        warnings.simplefilter("ignore")
        settle()
        torch_ltc.reset_metrics()
        try:
            expected = run(info, one, "cpu")
            lazy = run(info, one, "lazy")
            torch_ltc.mark_step(wait=True)
            fallbacks = sorted({row["op"] for row in torch_ltc.fallbacks()})
            tolerance = TOLERANCE.get(optimizer_name(info))
            text = difference(lazy, expected, tolerance=tolerance)
        except Exception as error:
            if is_rejected(one, error):
                return Outcome("rejected", 1, [], one_line(error))
            return Outcome("error", 1, [], one_line(error))
        finally:
            settle()
    if text:
        return Outcome("wrong", 1, fallbacks, text)
    return Outcome("fallback" if fallbacks else "agrees", 1, fallbacks)
