"""Formulas whose gradients save the same tensors as PyTorch's own.

A formula above autograd saves the operands of its steps. Ops that are linear in their
first operand save only sizes, so that eager can run backward through them repeatedly;
the maximum of windows saves its positions, and detects writes to them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor


def _needs_gradient(x: Tensor) -> bool:
    if torch.autograd.forward_ad.unpack_dual(x).tangent is not None:
        return False  # the formula's own steps have tangents
    return torch.is_grad_enabled() and x.requires_grad


def linear(
    formula: Callable[..., Tensor], derived: Callable[..., Tensor]
) -> Callable[..., Tensor]:
    """`formula`, linear in its first argument, with the gradient of `derived`, which is
    the same function unless eager's gradient differs."""

    class Linear(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor, rest: tuple, named: dict) -> Tensor:
            ctx.like = (x.shape, x.dtype, x.device)
            ctx.rest, ctx.named = rest, named
            return formula(x, *rest, **named)

        @staticmethod
        def backward(ctx: Any, *grads: Tensor) -> Any:
            shape, dtype, device = ctx.like
            with torch.enable_grad():
                zeros = torch.zeros(shape, dtype=dtype, device=device)
                zeros.requires_grad_()
                out = derived(zeros, *ctx.rest, **ctx.named)
                made = torch.autograd.grad(
                    out, zeros, grads, create_graph=grads[0].requires_grad
                )
            return made[0], None, None

    def call(x: Tensor, *rest: Any, **named: Any) -> Tensor:
        if not _needs_gradient(x):
            return formula(x, *rest, **named)
        return Linear.apply(x, rest, named)

    return call


class _Maximum(torch.autograd.Function):
    """Values and positions in the flattened last three dims of `x`."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, formula: Callable, rest: tuple, named: dict
    ) -> Any:
        values, positions = formula(x, *rest, **named)
        ctx.mark_non_differentiable(positions)
        ctx.save_for_backward(x, positions)
        return values, positions

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        x, positions = ctx.saved_tensors
        flat = (*x.shape[:-3], -1)
        zeros = torch.zeros_like(x, memory_format=torch.contiguous_format)
        made = zeros.reshape(flat).scatter_add(
            -1, positions.reshape(flat), grads[0].reshape(flat)
        )
        return made.reshape(x.shape), None, None, None


def maximum(formula: Callable[..., tuple]) -> Callable[..., tuple]:
    def call(x: Tensor, *rest: Any, **named: Any) -> Any:
        if not _needs_gradient(x):
            return formula(x, *rest, **named)
        return _Maximum.apply(x, formula, rest, named)

    return call
