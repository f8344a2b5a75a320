"""Calls of ATen ops that eager accepts, recorded while the samples of PyTorch's OpInfo
entries and their gradients run."""

from __future__ import annotations

import contextlib
import functools
import itertools
import warnings
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map

DTYPES = (torch.float32, torch.int64)
MAX_ELEMENTS = 3000
CALLS_PER_OP, SAMPLES_PER_ENTRY = 4, 6


@dataclass
class Call:
    op: Any  # an overload of torch.ops.aten
    args: tuple
    kwargs: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.op.name().removeprefix("aten::")


def tensors(value: Any) -> list[torch.Tensor]:
    return [leaf for leaf in tree_flatten(value)[0] if isinstance(leaf, torch.Tensor)]


def _kind(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return (value.dim(), value.dtype)
    if isinstance(value, (list, tuple)):
        return tuple(map(_kind, value))
    return type(value)


def _copy(value: Any) -> Any:
    return value.detach().clone() if isinstance(value, torch.Tensor) else value


class _Recorder(TorchDispatchMode):
    """Records the first calls of each op that differ in ranks, dtypes or argument types."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: dict[str, list[Call]] = {}
        self.seen: set[tuple] = set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self._note(Call(func, tuple(args), dict(kwargs or {})))
        return func(*args, **(kwargs or {}))

    def _note(self, call: Call) -> None:
        known = self.calls.setdefault(call.name, [])
        key = (call.name, _kind(call.args), _kind(tuple(call.kwargs.items())))
        given = tensors((call.args, call.kwargs))
        if (
            call.op.namespace != "aten"
            or len(known) >= CALLS_PER_OP
            or key in self.seen
            or any(t.numel() > MAX_ELEMENTS for t in given)
            or any(t.layout != torch.strided for t in given)
        ):
            return
        self.seen.add(key)
        known.append(Call(call.op, *tree_map(_copy, (call.args, call.kwargs))))


def _run(op: Any, dtype: torch.dtype, recorder: _Recorder) -> None:
    needs_gradient = dtype.is_floating_point and op.supports_autograd
    samples = op.sample_inputs("cpu", dtype, requires_grad=needs_gradient)
    for sample in itertools.islice(samples, SAMPLES_PER_ENTRY):
        given = tensors((sample.input, sample.args, sample.kwargs))
        if any(t.numel() > 10 * MAX_ELEMENTS for t in given):
            continue
        # Some samples raise errors in this dtype.
        with contextlib.suppress(Exception), recorder:
            result = op.op(sample.input, *sample.args, **sample.kwargs)
            result = sample.output_process_fn_grad(result)
            roots = [t.sum() for t in tensors(result) if t.requires_grad]
            leaves = [t for t in given if t.requires_grad]
            if roots and leaves:
                torch.autograd.grad(roots, leaves, allow_unused=True)


@functools.cache
def recorded_calls() -> dict[str, list[Call]]:
    """Returns the calls by op name ("add.Tensor"). Recording takes about ten seconds."""
    recorder = _Recorder()
    torch.manual_seed(0)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # with more threads, small ops mostly wait
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for op in op_db:
            for dtype in DTYPES:
                if dtype in op.supported_dtypes("cpu"):
                    with contextlib.suppress(Exception):
                        _run(op, dtype, recorder)
    torch.set_num_threads(threads)
    return {name: calls for name, calls in sorted(recorder.calls.items()) if calls}
