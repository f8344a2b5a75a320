"""Compares results of device `lazy` with those of eager PyTorch on the CPU: `assert_close`
the values, `assert_same` everything that a user can see, and `compare` both after calling a
function with CPU tensors and with their lazy copies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils._pytree import keystr, tree_flatten, tree_flatten_with_path, tree_map

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


def _leaves(value: Any, what: str) -> dict[str, Any]:
    """Returns the leaves of lists, tuples and dicts by name, such as "result[0]['loss']"."""
    return {
        what + keystr(path): leaf for path, leaf in tree_flatten_with_path(value)[0]
    }


def assert_close(
    actual: Any,
    expected: Any,
    rtol: float | None = None,
    atol: float | None = None,
    what: str = "result",
    equal_nan: bool = False,
) -> None:
    """Asserts that two structures have the same leaves: floating-point and complex tensors
    up to the tolerances (default: those of torch.testing for the dtype), others exactly.
    Dtypes, sizes and layouts must be equal. Tensors may be on any device. Python floats are
    equal up to the tolerances if `rtol` is given. `equal_nan`: NaN equals NaN."""
    results, wanted = _leaves(actual, what), _leaves(expected, what)
    assert results.keys() == wanted.keys()
    for name, leaf in wanted.items():
        result = results[name]
        if isinstance(leaf, float) and rtol is not None:
            result, leaf = torch.tensor([result, leaf], dtype=torch.float64)
        if not isinstance(leaf, torch.Tensor):
            assert result == leaf, name
            continue
        is_exact = not leaf.is_floating_point() and not leaf.is_complex()
        torch.testing.assert_close(
            result.detach().cpu(),
            leaf.detach().cpu(),
            rtol=0 if is_exact else rtol,
            atol=0 if is_exact else atol,
            equal_nan=equal_nan,
            msg=lambda text, name=name: f"{name}: {text}",
        )


def largest(tensor: torch.Tensor, at_least: float) -> float:
    """Returns the largest finite magnitude in a tensor, clamped to [`at_least`, 1e30]. An
    absolute tolerance can be relative to it."""
    finite = tensor.detach()[torch.isfinite(tensor)].abs()
    most = float(finite.max()) if finite.numel() else 0.0
    return min(max(most, at_least), 1e30)


def geometry(tensor: torch.Tensor) -> tuple:
    """Returns the metadata that must be equal for eager and lazy tensors."""
    of_any = (
        tuple(tensor.size()),
        tensor.dtype,
        tensor.layout,
        tensor.requires_grad,
        tensor.is_leaf,
    )
    if tensor.layout == torch.sparse_coo:
        return (*of_any, tensor.is_coalesced(), tensor._nnz())
    if tensor.layout != torch.strided:
        return of_any
    formats = [torch.contiguous_format]
    if tensor.dim() == 4:
        formats.append(torch.channels_last)
    return (
        *of_any,
        tensor.stride(),
        tensor.storage_offset(),
        tensor.is_conj(),
        tensor.is_neg(),
        [tensor.is_contiguous(memory_format=f) for f in formats],
    )


def assert_same(
    lazy: Any,
    eager: Any,
    what: str = "result",
    rtol: float | None = TOLERANCE["rtol"],
    atol: float | None = TOLERANCE["atol"],
    equal_nan: bool = True,
) -> None:
    """Asserts that two structures of tensors are equal, leaf by leaf: values (as
    `assert_close`), metadata, and the strides of copies on the CPU."""
    actual, expected = _leaves(lazy, what), _leaves(eager, what)
    assert actual.keys() == expected.keys()
    for name, e in expected.items():
        a = actual[name]
        if not isinstance(e, torch.Tensor):
            assert a == e, name
            continue
        assert geometry(a) == geometry(e), name
        if a.device.type == "lazy" and e.layout == torch.strided:
            assert a.detach().cpu().stride() == e.detach().clone().stride(), name
    assert_close(lazy, eager, rtol, atol, what, equal_nan)


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
