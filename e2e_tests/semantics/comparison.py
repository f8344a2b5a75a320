"""Runs a function on CPU tensors and on their lazy copies, and compares everything that
a user can see: values, dtypes, sizes, strides, offsets, gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils._pytree import tree_flatten, tree_map

#: Tolerances for float32 programs of a few ops.
TOLERANCE = {"rtol": 1e-4, "atol": 1e-5}


def to_lazy(value: Any) -> Any:
    """Returns copies on device `lazy` with the same strides and `requires_grad`. Copies
    share no memory with each other and have no autograd history."""

    def move(leaf: Any) -> Any:
        if not isinstance(leaf, torch.Tensor):
            return leaf
        if any(
            n > 1 and step == 0
            for n, step in zip(leaf.shape, leaf.stride(), strict=True)
        ):
            # Expanded elements can't be copied to one by one, so their memory is copied.
            ends = zip(leaf.shape, leaf.stride(), strict=True)
            span = 1 + sum((n - 1) * step for n, step in ends)
            memory = leaf.detach().as_strided((span,), (1,)).to("lazy")
            moved = memory.as_strided(leaf.size(), leaf.stride())
        else:
            moved = torch.empty_strided(
                leaf.size(), leaf.stride(), dtype=leaf.dtype, device="lazy"
            ).copy_(leaf.detach())
        return moved.requires_grad_(leaf.requires_grad)

    return tree_map(move, value)


def geometry(tensor: torch.Tensor) -> tuple:
    """Returns the metadata that must be equal for eager and lazy tensors."""
    formats = [torch.contiguous_format]
    if tensor.dim() == 4:
        formats.append(torch.channels_last)
    return (
        tuple(tensor.size()),
        tensor.stride(),
        tensor.storage_offset(),
        tensor.dtype,
        tensor.requires_grad,
        tensor.is_leaf,
        [tensor.is_contiguous(memory_format=f) for f in formats],
    )


def _is_exact(tensor: torch.Tensor) -> bool:
    return not tensor.is_floating_point() and not tensor.is_complex()


def assert_same(lazy: Any, eager: Any, what: str = "result") -> None:
    """Asserts that two structures of tensors are equal, leaf by leaf."""
    actual, expected = tree_flatten(lazy)[0], tree_flatten(eager)[0]
    assert len(actual) == len(expected), what
    for i, (a, e) in enumerate(zip(actual, expected, strict=True)):
        name = f"{what} {i}"
        if not isinstance(e, torch.Tensor):
            assert a == e, name
            continue
        assert geometry(a) == geometry(e), name
        if a.device.type == "lazy":
            assert a.detach().cpu().stride() == e.detach().clone().stride(), name
        torch.testing.assert_close(
            a.detach().cpu(),
            e.detach(),
            **({"rtol": 0, "atol": 0} if _is_exact(e) else TOLERANCE),
            equal_nan=True,
            msg=lambda text, name=name: f"{name}: {text}",
        )


def outcome(function: Callable, *args: Any) -> Any:
    """Returns the function's result, or the class of the error that it raises."""
    torch.manual_seed(0)
    try:
        return function(*args)
    except (RuntimeError, IndexError, ValueError, TypeError) as error:
        return f"raises {type(error).__name__}"


def compare(function: Callable, *args: Any) -> None:
    """Calls `function` with CPU tensors and with lazy copies. Compares the results and,
    because `function` may write to them, the arguments after the call, with their
    gradients."""
    lazy_args = to_lazy(args)
    expected = outcome(function, *args)
    actual = outcome(function, *lazy_args)
    assert isinstance(actual, str) == isinstance(expected, str), (actual, expected)
    assert_same(actual, expected)
    assert_same(list(lazy_args), list(args), "argument")
    for i, (a, e) in enumerate(
        zip(tree_flatten(lazy_args)[0], tree_flatten(args)[0], strict=True)
    ):
        if isinstance(e, torch.Tensor) and e.is_leaf and e.grad is not None:
            assert_same(a.grad, e.grad, f"gradient of argument {i}")
