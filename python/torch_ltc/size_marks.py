"""Marks sizes that vary, or that should be constants of a program."""

from __future__ import annotations

from typing import Any, NoReturn

import torch
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

from torch_ltc._backend import bindings
from torch_ltc.step import sync

_LARGEST = 2**63 - 1


def mark_dynamic(
    t: torch.Tensor,
    index: int | list[int] | tuple[int, ...],
    *,
    min: int | None = None,
    max: int | None = None,
) -> None:
    """Declares that the size of dimension `index` (or of each listed dimension) varies, so
    that the first program that reads the tensor is compiled for all sizes.

    `min` and `max` are the smallest and the largest size. The mark belongs to the
    tensor's value: in-place ops preserve it, and results of ops don't inherit it. The mark
    has no effect for sizes 0 and 1, which have separate programs. It doesn't affect
    results, and unmarked tensors may have sizes outside the range.

    The arguments are those of `torch._dynamo.mark_dynamic`, except `hint_override` and
    `specialize_on`. Raises ValueError for a tensor on another device, RuntimeError for a
    view, IndexError for a dimension that the tensor doesn't have, and torch's
    ConstraintViolationError for a size outside the range.
    """
    for name, bound in (("min", min), ("max", max)):
        if bound is not None and type(bound) is not int:
            raise TypeError(
                f"torch_ltc.mark_dynamic: {name} must be an int, but got {bound!r:.60}."
            )
    least, most = min if min is not None else 0, max if max is not None else _LARGEST
    for tensor in _lazy_tensors("mark_dynamic", t):
        for dim in _dims("mark_dynamic", tensor, index):
            if not least <= tensor.size(dim) <= most:
                _violated(
                    f"torch_ltc.mark_dynamic: size {dim} is {tensor.size(dim)}, which "
                    f"isn't in the range [{least}, {'inf' if max is None else most}]."
                )
            _mark("mark_dynamic", tensor, dim, True, least, most)


def mark_static(t: Any, index: int | list[int] | tuple[int, ...] | None = None) -> Any:
    """Declares that each size of dimension `index` (None: of every dimension) gets a
    separate program, for example because there are few sizes and such programs are faster.

    The mark belongs to the tensor's value, like that of `mark_dynamic`, which has
    precedence. Arguments and errors are those of `torch._dynamo.mark_static`; also raises
    ValueError for a tensor on another device. Marking a view computes its value. A module
    class is returned unchanged, because the integers of a module are constants of a trace
    anyway.
    """
    if isinstance(t, type) and issubclass(t, torch.nn.Module):
        return t
    for tensor in _lazy_tensors("mark_static", t):
        dims = range(tensor.dim()) if index is None else index
        for dim in _dims("mark_static", tensor, dims):
            _mark("mark_static", tensor, dim, False, 0, _LARGEST)
    return None


def _lazy_tensors(function: str, tensor: Any) -> list[torch.Tensor]:
    """Returns the tensor itself, or for a wrapper subclass the inner tensors of the same
    rank. Raises ValueError for a tensor on another device."""
    if not isinstance(tensor, torch.Tensor):
        raise TypeError(f"torch_ltc.{function} needs a tensor, but got {tensor!r:.60}.")
    if is_traceable_wrapper_subclass(tensor):
        inner = [getattr(tensor, name) for name in tensor.__tensor_flatten__()[0]]
        return [
            found
            for part in inner
            if isinstance(part, torch.Tensor) and part.dim() == tensor.dim()
            for found in _lazy_tensors(function, part)
        ]
    if tensor.device.type != "lazy":
        raise ValueError(
            f"torch_ltc.{function} needs a tensor on device 'lazy', but this one is on "
            f"'{tensor.device}': mark it after moving it."
        )
    return [tensor]


def _dims(function: str, tensor: torch.Tensor, index: Any) -> list[int]:
    # TorchDynamo's function raises AssertionError, too.
    if not isinstance(index, (int, list, tuple, range)):
        raise AssertionError(
            f"torch_ltc.{function}: index must be an int, a list or a tuple of ints, "
            f"but got {index!r:.60}."
        )
    if isinstance(index, int):
        rank = tensor.dim()
        if not -rank <= index < rank:
            raise IndexError(
                f"torch_ltc.{function}: the tensor has {rank} dimensions, but got "
                f"index {index}."
            )
        return [index % rank]
    return [dim for item in index for dim in _dims(function, tensor, item)]


def _mark(
    function: str, tensor: torch.Tensor, dim: int, dynamic: bool, least: int, most: int
) -> None:
    # A step doesn't keep the value of a view of memory that it writes; the next one does.
    for _ in range(2):
        sync([tensor], wait=False)
        if bindings().mark_size(tensor, dim, dynamic, least, most):
            break
    else:
        raise RuntimeError(
            f"torch_ltc.{function}: the tensor is a view, which has no value of its own; "
            "mark the tensor that it is a view of, or a clone."
        )


def _violated(message: str) -> NoReturn:
    # Imported here because the import takes long.
    from torch.fx.experimental.symbolic_shapes import ConstraintViolationError

    raise ConstraintViolationError(message)
