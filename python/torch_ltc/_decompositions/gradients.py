"""Formulas whose gradients save the same tensors as PyTorch's gradients.

If a formula ran above autograd, each of its ops would save its operands. Eager's ops that
are linear in their first operand save only sizes, so that backward can run repeatedly.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor


def _needs_gradient(x: Tensor) -> bool:
    if torch.autograd.forward_ad.unpack_dual(x).tangent is not None:
        return False  # the formula's ops compute the tangents
    return torch.is_grad_enabled() and x.requires_grad


def _name_gradient(function: Any, op: str) -> None:
    """Gives the `grad_fn` of the function's results the name that it has in eager."""
    function._backward_cls.__name__ = op.title().replace("_", "") + "Backward0"


class _Constant(torch.autograd.Function):
    """Returns a copy of `gradient`, whose derivative by `x` is zero."""

    generate_vmap_rule = True

    @staticmethod
    def forward(gradient: Tensor, x: Tensor) -> Tensor:
        return gradient.clone()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor], output: Tensor) -> None:
        x = inputs[1]
        ctx.like = (x.shape, x.dtype, x.device)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        shape, dtype, device = ctx.like
        return grads[0], torch.zeros(shape, dtype=dtype, device=device)

    @staticmethod
    def jvp(ctx: Any, *tangents: Tensor) -> Tensor:
        return tangents[0].clone()


def linear(
    op: str,
    formula: Callable[..., Tensor],
    derived: Callable[..., Tensor],
    saves_operand: bool,
) -> Callable[..., Tensor]:
    """Returns `formula` with the gradient of `derived` (`formula` itself, unless eager's
    gradient differs). The formula computes `op`, which is linear in its first argument. If
    `saves_operand`, that argument is saved, too, and the second derivative is zero instead
    of None."""

    class Linear(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor, rest: tuple, named: dict) -> Tensor:
            ctx.like = (x.shape, x.dtype, x.device)
            if saves_operand:
                ctx.save_for_backward(x)
            ctx.rest, ctx.named = rest, named
            return formula(x, *rest, **named)

        @staticmethod
        def backward(ctx: Any, *grads: Tensor) -> Any:
            shape, dtype, device = ctx.like
            # An operand that was overwritten or released is an error here.
            saved = ctx.saved_tensors if saves_operand else ()
            with torch.enable_grad():
                zeros = torch.zeros(shape, dtype=dtype, device=device)
                zeros.requires_grad_()
                out = derived(zeros, *ctx.rest, **ctx.named)
                made = torch.autograd.grad(
                    out, zeros, grads, create_graph=grads[0].requires_grad
                )
            gradient = made[0]
            if saved and torch.is_grad_enabled():
                gradient = _Constant.apply(gradient, *saved)
            return gradient, None, None

    _name_gradient(Linear, op)

    def call(x: Tensor, *rest: Any, **named: Any) -> Tensor:
        if not _needs_gradient(x):
            return formula(x, *rest, **named)
        return Linear.apply(x, rest, named)

    return call


class _Median(torch.autograd.Function):
    """Returns `chosen`, an element of `x`. All elements of `x` that equal it share the
    gradient."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor, chosen: Tensor) -> Tensor:
        return chosen.clone()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor], output: Tensor) -> None:
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        x, chosen = ctx.saved_tensors
        equal = _equals(x, chosen)
        none = torch.zeros_like(x, memory_format=torch.contiguous_format)
        return none.masked_fill(equal, grads[0] / equal.sum()), None

    @staticmethod
    def jvp(ctx: Any, *tangents: Tensor) -> Tensor:
        equal = _equals(*ctx.saved_tensors)
        return torch.where(equal, tangents[0], 0.0).sum() / equal.sum()


def _equals(x: Tensor, chosen: Tensor) -> Tensor:
    return (x == chosen) | (x.isnan() & chosen.isnan())


class _Nanmedian(_Median):
    pass


_name_gradient(_Median, "median")
_name_gradient(_Nanmedian, "nanmedian")


def median(x: Tensor, chosen: Tensor) -> Tensor:
    return _Median.apply(x, chosen.detach())


def nanmedian(x: Tensor, chosen: Tensor) -> Tensor:
    return _Nanmedian.apply(x, chosen.detach())
