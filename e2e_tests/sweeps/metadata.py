"""Compares the metadata of tensors on device `lazy` with eager CPU: strides, offset,
base of a view, shared memory, gradient, bits.

The calls are those of PyTorch's OpInfo database, in variants: operands unchanged, with
other strides, as views, in place, into `out=`, in inference_mode. Nothing is computed
unless an op reads values: a variant costs one trace.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import torch
from sweeps.opinfo import CPU_ARGUMENTS, entry_name, samples_of, tensors
from torch.testing._internal.opinfo.core import OpInfo, SampleInput
from torch.utils._pytree import tree_map

#: A function that copies an operand to memory of a certain layout.
Layout = Callable[[torch.Tensor], torch.Tensor]


def as_they_are(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.clone()


def transposed(tensor: torch.Tensor) -> torch.Tensor:
    """Returns a copy whose last dimension is outermost in memory."""
    if tensor.dim() < 2:
        return tensor.clone()
    order = [tensor.dim() - 1, *range(tensor.dim() - 1)]
    back = [*range(1, tensor.dim()), 0]
    return tensor.permute(order).clone(memory_format=torch.contiguous_format).permute(back)  # fmt: skip


def spread(tensor: torch.Tensor) -> torch.Tensor:
    """Returns a copy that consists of every second element of a larger tensor, at an offset
    unless it has one dimension."""
    if tensor.dim() == 0:
        return torch.stack([tensor, tensor])[1]
    wide = torch.stack([tensor, tensor], -1).flatten(-2)
    return torch.cat([wide[:1], wide])[1:, ..., ::2] if wide.dim() > 1 else wide[::2]


def channels_last(tensor: torch.Tensor) -> torch.Tensor:
    formats = {4: torch.channels_last, 5: torch.channels_last_3d}
    if tensor.dim() not in formats:
        return tensor.clone()
    return tensor.clone(memory_format=formats[tensor.dim()])


def empty(tensor: torch.Tensor) -> torch.Tensor:
    return tensor[:0].clone() if tensor.dim() else tensor.clone()


LAYOUTS: dict[str, Layout] = {
    "plain": as_they_are,
    "transposed": transposed,
    "spread": spread,
    "channels_last": channels_last,
    "empty": empty,
}


class Operands:
    """Copies a sample's tensors to a device; arguments that are the same tensor remain the
    same tensor."""

    def __init__(self, device: str, layout: Layout) -> None:
        self.device, self.layout = device, layout
        self.made: dict[int, torch.Tensor] = {}

    def __call__(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            if id(value) not in self.made:
                self.made[id(value)] = self._make(value)
            return self.made[id(value)]
        if isinstance(value, torch.device) or value == "cpu":
            return torch.device(self.device)
        return value

    def _make(self, value: torch.Tensor) -> torch.Tensor:
        if value.layout != torch.strided:
            return value.detach().clone().to(self.device)
        made = self.layout(value.detach().to(self.device))
        # In-place ops accept an op's result, but not a leaf that requires gradients.
        return made.requires_grad_() * 1 if value.requires_grad else made


def described(result: torch.Tensor, operands: list[torch.Tensor]) -> dict[str, Any]:
    strided = result.layout == torch.strided
    base = result._base
    return {
        "dtype": result.dtype,
        "sizes": tuple(result.shape),
        "strides": result.stride() if strided else None,
        "offset": result.storage_offset() if strided else None,
        "contiguous": result.is_contiguous() if strided else None,
        "is_view": result._is_view(),
        "base": None if base is None else _place(base, operands),
        "base_sizes": None if base is None else tuple(base.shape),
        "is": _place(result, operands),
        "requires_grad": result.requires_grad,
        "is_leaf": result.is_leaf,
        "grad_fn": _grad_fn(result),
        "inference": result.is_inference(),
        "conj": result.is_conj(),
        "neg": result.is_neg(),
        "layout": result.layout,
        "itemsize": result.element_size(),
        "is_zero_tensor": result._is_zerotensor(),
    }


def _grad_fn(result: torch.Tensor) -> str | None:
    return None if result.grad_fn is None else result.grad_fn.name()


def _place(tensor: torch.Tensor, operands: list[torch.Tensor]) -> int | None:
    return next((n for n, one in enumerate(operands) if one is tensor), None)


def shares(result: torch.Tensor, operands: list[torch.Tensor]) -> list[int]:
    """Returns the positions of operands that share memory with the result, as far as a
    script can observe it."""
    return [n for n, one in enumerate(operands) if _same_memory(result, one)]


def _same_memory(a: torch.Tensor, b: torch.Tensor) -> bool:
    if a.layout != torch.strided or b.layout != torch.strided:
        return False
    if not a.numel() or not b.numel():
        return False
    return torch._C._is_alias_of(a, b)


# -- variants ------------------------------------------------------------------


def _function(op: OpInfo, first: Any, args: Any, kwargs: Any) -> Any:
    return op.op(first, *args, **kwargs)


def _inplace(op: OpInfo, first: Any, args: Any, kwargs: Any) -> Any:
    return op.inplace_variant(first, *args, **kwargs)


def _inference(op: OpInfo, first: Any, args: Any, kwargs: Any) -> Any:
    with torch.inference_mode():
        return op.op(first, *args, **kwargs)


def _no_grad(op: OpInfo, first: Any, args: Any, kwargs: Any) -> Any:
    with torch.no_grad():
        return op.op(first, *args, **kwargs)


def _out(op: OpInfo, first: Any, args: Any, kwargs: Any, how: str) -> Any:
    right = op.op(first, *args, **kwargs)
    out = tree_map(partial(_destination, how=how), right)
    out = tuple(out) if isinstance(right, (tuple, list)) else out
    answer = op.op(first, *args, **kwargs, out=out)
    return answer, out


def _destination(result: torch.Tensor, how: str) -> torch.Tensor:
    if how == "empty":
        return torch.empty(0, dtype=result.dtype, device=result.device)
    fresh = torch.zeros(result.shape, dtype=result.dtype, device=result.device)
    return transposed(fresh) if how == "transposed" else spread(fresh)


VARIANTS: dict[str, Callable] = {
    "function": _function,
    "inplace": _inplace,
    "inference": _inference,
    "no_grad": _no_grad,
    "out_empty": partial(_out, how="empty"),
    "out_transposed": partial(_out, how="transposed"),
    "out_spread": partial(_out, how="spread"),
}


def has_variant(op: OpInfo, variant: str) -> bool:
    if variant == "inplace":
        return op.inplace_variant is not None
    return op.supports_out or not variant.startswith("out")


def _all_properties(
    op: OpInfo, variant: str, sample: SampleInput, device: str, layout: Layout
) -> list[dict[str, Any]] | str:
    """Returns the metadata of results and operands, or the class and the first line of the
    error."""
    operands = Operands(device, layout)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        first = tree_map(operands, sample.input)
        args, kwargs = sample.args, sample.kwargs
        if getattr(op.op, "__name__", "") not in CPU_ARGUMENTS:
            args, kwargs = tree_map(operands, (args, kwargs))
        torch.manual_seed(3)
        try:
            answer = VARIANTS[variant](op, first, args, kwargs)
        except Exception as error:
            return f"{type(error).__name__}: {str(error).splitlines()[:1]}"
    given = list(operands.made.values())
    results = tensors(answer)
    drawn = hash(torch.get_rng_state().numpy().tobytes())
    properties = [
        {
            **described(one, given),
            "shares": shares(one, given + results),
            "generator": drawn,
        }
        for one in results
    ]
    return properties + [described(one, given) for one in given]


def difference(op: OpInfo, variant: str, sample: SampleInput, layout: str) -> str:
    """Returns what differs between lazy and eager, or ""."""
    eager, lazy = (
        _all_properties(op, variant, sample, device, LAYOUTS[layout])
        for device in ("cpu", "lazy")
    )
    if isinstance(eager, str):
        # Another sweep compares the messages.
        return "" if isinstance(lazy, str) else f"nothing is raised; eager: {eager}"
    if isinstance(lazy, str):
        return lazy
    if len(eager) != len(lazy):
        return f"{len(lazy)} tensors instead of {len(eager)}"
    found = [
        f"tensor {number}: {key} {lazy[number][key]} instead of {value}"
        for number, properties in enumerate(eager)
        for key, value in properties.items()
        if lazy[number][key] != value and not _is_exempt(key, properties, lazy[number])
    ]
    return "; ".join(found[:4])


def _is_exempt(key: str, eager: dict[str, Any], lazy: dict[str, Any]) -> bool:
    if key == "grad_fn":
        return None not in (eager[key], lazy[key]) and (
            eager[key] in OTHER_NODES or eager[key].endswith("_copy")
        )
    if key in ("strides", "contiguous"):  # don't matter for an empty tensor
        return 0 in eager["sizes"]
    # The base of a view only matters if the caller also has the base.
    is_inner = eager["base"] is None and lazy["base"] is None
    return is_inner and key in ("is_view", "base_sizes")


def chosen_samples(
    op: OpInfo, dtype: torch.dtype, gradient: bool, limit: int | None
) -> Iterator[tuple[int, SampleInput]]:
    """Yields the first `limit` samples, and the smallest of the rest, which may be empty or
    of rank 0."""
    smallest: tuple[int, int, SampleInput] | None = None
    for number, sample in enumerate(samples_of(op, dtype, gradient, None)):
        if limit is None or number < limit:
            yield number, sample
            continue
        size = sum(
            t.numel() for t in tensors((sample.input, sample.args, sample.kwargs))
        )
        if smallest is None or size < smallest[0]:
            smallest = (size, number, sample)
    if smallest:
        yield smallest[1:]


def differences(
    op: OpInfo,
    dtype: torch.dtype,
    limit: int | None,
    gradient: bool = False,
    layouts: Iterable[str] = tuple(LAYOUTS),
) -> Iterator[str]:
    name = entry_name(op)
    for number, sample in chosen_samples(op, dtype, gradient, limit):
        for layout, variant in itertools.product(layouts, VARIANTS):
            if not has_variant(op, variant) or is_exempt(name, layout, variant):
                continue
            if text := difference(op, variant, sample, layout):
                yield f"{name}, sample {number}, {layout}, {variant}: {text}"


#: Eager's autograd nodes for which lazy tensors have different nodes.
OTHER_NODES = (
    "AddmmBackward0",  # a linear layer is one node
    "ViewBackward0",
    "AsStridedBackward0",  # after a write, the view is replayed
    "CtcLossBackward0",
    "GridSampler2DBackward0",
    "GridSampler3DBackward0",
    "NarrowCopyBackward0",
    "NativeBatchNormBackward0",
    "PolygammaBackward1",
    "ReshapeAliasBackward0",
)

#: Entry -> prefix of the names of the variants that differ ("" for all), and the reason.
EXEMPT: dict[str, tuple[str, str]] = {
    "as_strided_scatter": ("", "eager fails an internal assertion"),
    "native_group_norm": ("", "eager fails an assertion on the memory format"),
    "_native_batch_norm_legit": ("out", "eager has no gradients of the statistics"),
    "nn.functional.conv3d": (
        "",
        "the memory format depends on which library eager uses",
    ),
    "nn.functional.conv_transpose3d": (
        "",
        "the memory format depends on eager's library",
    ),
    "randn": ("", "its samples save the accelerator's state, before there is one"),
}


EXEMPT_IF_EMPTY: dict[str, str] = {
    "_segment_reduce.lengths": "eager's check of the lengths reads them",
    "nn.functional.channel_shuffle": "an alias of the operand in inference mode",
}


def is_exempt(entry: str, layout: str, variant: str) -> bool:
    if entry == "nn.functional.unfold" and layout == "plain":
        return True  # the sample itself gives its operand unusual strides
    if layout == "empty" and entry in EXEMPT_IF_EMPTY:
        return True
    return entry in EXEMPT and variant.startswith(EXEMPT[entry][0])
