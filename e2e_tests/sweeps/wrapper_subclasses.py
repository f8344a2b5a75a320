"""Runs samples of PyTorch's OpInfo database on wrapper subclasses: tensors whose
`__torch_dispatch__` calls the op on the tensor inside, as DTensor's does."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import torch
from sweeps.opinfo import difference, entry_name, samples_of, tensors
from torch.testing._internal.opinfo.core import OpInfo, SampleInput
from torch.utils._pytree import tree_map

#: Entry -> why it isn't compared.
LEFT_OUT = {
    "fft.hfftn": "eager loses the conjugation of the tensor inside",
    "nn.functional.linear_cross_entropy.chunked": "fails in an op of PyTorch's that is "
    "composed in Python below functionalization",
    "nn.functional.linear_cross_entropy.chunked_none": "the same",
    "tensor_split": "its tensor of indices has to be on the CPU",
}


class Wrapper(torch.Tensor):
    inner: torch.Tensor

    @staticmethod
    def __new__(cls, inner: torch.Tensor) -> Wrapper:
        self = torch.Tensor._make_wrapper_subclass(
            cls, inner.shape, inner.stride(), dtype=inner.dtype, device=inner.device
        )
        self.inner = inner
        return self

    @classmethod
    def __torch_dispatch__(cls, op, types, args=(), kwargs=None):
        answer = op(*unwrapped(args), **unwrapped(kwargs or {}))
        return tree_map(
            lambda x: cls(x) if isinstance(x, torch.Tensor) else x, answer
        )  # fmt: skip


def unwrapped(values: Any) -> Any:
    return tree_map(lambda x: x.inner if isinstance(x, Wrapper) else x, values)


def _run(variant: Callable, sample: SampleInput, device: str) -> tuple[list, list]:
    """Returns the tensors inside the results and inside the arguments after the call."""

    def move(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return Wrapper(value.detach().clone().to(device))
        if isinstance(value, torch.device) or value == "cpu":
            return torch.device(device)
        return value

    values = tree_map(move, (sample.input, sample.args, sample.kwargs))
    torch.manual_seed(7)
    answer = variant(values[0], *values[1], **values[2])
    return tensors(unwrapped(answer)), tensors(unwrapped(values))


def _is_whole(tensor: torch.Tensor) -> bool:
    """Whether users can hold such a tensor. On device `lazy`, it must be a functional
    wrapper, which supports views and writes."""
    if tensor.device.type != "lazy" or tensor.layout != torch.strided:
        return True
    return tensor.is_quantized or torch._is_functional_tensor(tensor)


def failures(op: OpInfo, limit: int) -> Iterator[str]:
    """Yields the failures of an entry's samples, called in each of its variants."""
    if entry_name(op) in LEFT_OUT:
        return
    variants = {
        "function": op.op,
        "method": op.method_variant,
        "inplace": op.inplace_variant,
    }
    samples = list(itertools.islice(samples_of(op, torch.float32, False, limit), limit))
    for (name, variant), sample in itertools.product(variants.items(), samples):
        if variant is None:
            continue
        try:
            expected = _run(variant, sample, "cpu")
        except Exception:  # eager rejects wrappers in this variant
            continue
        results, arguments = _run(variant, sample, "lazy")
        if not all(map(_is_whole, results)):
            yield f"{name}: a result is a value of the trace"
        elif any(t.layout != torch.strided for t in expected[0]):
            continue  # reading their values needs ops that wrappers don't support
        elif text := difference(results + arguments, expected[0] + expected[1]):
            yield f"{name}: {text}"
