"""Changes the layouts and dtypes of operands of every recorded op and compares the calls
with eager:

    python -m fuzz.other_layouts [--ops 'nll|softmax'] [--step 1] [--start 0]

In each call, the first operand that a change applies to is changed, or all such operands.
Whatever eager accepts, device `lazy` accepts (by fallback if necessary), with eager's
values, sizes and dtypes.
"""

from __future__ import annotations

import argparse
import collections
from collections.abc import Callable, Iterator

import torch
from fuzz.odd_calls import Outcome, compare, names
from fuzz.recorded_calls import Call, recorded_calls
from torch.utils._pytree import tree_leaves, tree_map


def _gaps(t: torch.Tensor) -> torch.Tensor:
    wide = torch.zeros(*t.shape, 2, dtype=t.dtype)
    wide[..., 1] = t
    return wide[..., 1]


def _reversed_strides(t: torch.Tensor) -> torch.Tensor:
    order = list(range(t.dim()))[::-1]
    return t.permute(order).contiguous().permute(order)


def _offset(t: torch.Tensor) -> torch.Tensor:
    return torch.cat([t.new_zeros(3), t.reshape(-1)])[3:].view(t.shape)


def _float(t: torch.Tensor) -> bool:
    return t.is_floating_point()


def _integer(t: torch.Tensor) -> bool:
    return t.dtype in (torch.int64, torch.int32)


def _matrix(t: torch.Tensor) -> bool:
    return _float(t) and t.dim() == 2


def _quantized(t: torch.Tensor) -> torch.Tensor:
    return torch.quantize_per_tensor(t.float(), 0.1, 3, torch.quint8)


def _to(dtype: torch.dtype) -> Callable[[torch.Tensor], torch.Tensor]:
    return lambda t: t.to(dtype)


#: For each change: whether it applies to an operand, and the function that makes it.
CHANGES: dict[str, tuple[Callable, Callable]] = {
    "gaps": (lambda t: t.dim() > 0, _gaps),
    "reversed strides": (lambda t: t.dim() > 1, _reversed_strides),
    "offset": (lambda t: t.dim() > 0, _offset),
    "expanded": (lambda t: t.dim() > 0 and t.numel() > 0, lambda t: t[:1].expand_as(t)),
    "conj": (_float, lambda t: torch.complex(t.float(), t.float() / 2).conj()),
    "neg": (_float, lambda t: torch._neg_view(t)),
    "complex64": (_float, lambda t: torch.complex(t.float(), t.float() / 2)),
    "complex32": (_float, _to(torch.complex32)),
    "float16": (_float, _to(torch.float16)),
    "float8_e4m3fn": (_float, _to(torch.float8_e4m3fn)),
    "float8_e5m2": (_float, _to(torch.float8_e5m2)),
    "sparse_coo": (lambda t: _float(t) and t.dim() > 0, lambda t: t.to_sparse()),
    "sparse_csr": (_matrix, lambda t: t.to_sparse_csr()),
    "quint8": (_float, _quantized),
    "bool": (_integer, _to(torch.bool)),
    "int8": (_integer, _to(torch.int8)),
    "uint16": (_integer, _to(torch.uint16)),
    "uint32": (_integer, _to(torch.uint32)),
    "uint64": (_integer, _to(torch.uint64)),
}


def changed(call: Call, change: str, first_only: bool) -> Call | None:
    """Changes the first operand that the change applies to, or all such operands, and
    returns the new call. Returns None if the change applies to no operand."""
    applies, make = CHANGES[change]
    made = 0

    def convert(leaf: object) -> object:
        nonlocal made
        if not isinstance(leaf, torch.Tensor) or (first_only and made):
            return leaf
        if not applies(leaf):
            return leaf
        made += 1
        return make(leaf.detach())

    try:
        args, kwargs = tree_map(convert, (call.args, call.kwargs))
    except (RuntimeError, NotImplementedError):
        return None
    return Call(call.op, args, kwargs) if made else None


def calls(pattern: str, start: int = 0, step: int = 1) -> Iterator[tuple[str, Call]]:
    number = 0
    for name in names(pattern):
        for call in recorded_calls()[name][:2]:
            several = (
                sum(isinstance(v, torch.Tensor) for v in tree_leaves(call.args)) > 1
            )
            for change in CHANGES:
                for first_only in (True, False) if several else (True,):
                    number += 1
                    if number % step == start % step:
                        made = changed(call, change, first_only)
                        if made is not None:
                            yield change, made


def sweep(pattern: str, start: int, step: int) -> Iterator[tuple[str, Outcome]]:
    import torch_ltc

    for number, (change, call) in enumerate(calls(pattern, start, step)):
        yield change, compare(call)
        if number % 200 == 199:
            torch_ltc.reset_metrics()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m fuzz.other_layouts")
    parser.add_argument("--ops", default="", help="a pattern for the ops' names")
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--step", type=int, default=1, help="make every n-th call")
    options = parser.parse_args()
    torch.set_num_threads(1)
    counts: collections.Counter[str] = collections.Counter()
    for change, outcome in sweep(options.ops, options.start, options.step):
        counts[outcome.kind or "agrees"] += 1
        if outcome.kind:
            print(
                f"{outcome.kind}: {change}: {outcome.call}: {outcome.detail}",
                flush=True,
            )
    print(dict(counts))


if __name__ == "__main__":
    main()
