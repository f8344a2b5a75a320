"""Compares modules of PyTorch's `module_db` on device `lazy` with eager CPU.

Outputs, gradients of parameters and inputs, and buffers after the call (running
statistics) are compared for each of a module's inputs, in training and evaluation mode.
All inputs are traced before one step computes them.
"""

from __future__ import annotations

import contextlib
import copy
import itertools
import warnings
from collections.abc import Iterator
from typing import Any

import torch
import torch_ltc
from sweeps.opinfo import Mover, Outcome, difference, one_line, settle, tensors
from torch.testing._internal.common_modules import ModuleInfo, ModuleInput, module_db
from torch.utils._pytree import tree_map

#: Modules that can't be compared -> why.
EXCLUDED: dict[str, str] = {
    f"nn.FractionalMaxPool{n}d": "module_db's random samples are of float64, which eager rejects"
    for n in (2, 3)
}

#: Tolerances relative to the largest magnitude: layers and recurrences amplify errors of
#: the last bit.
TOLERANCE = {"nn.RNN": 5e-5, "nn.MultiheadAttention": 5e-5, "nn.Transformer": 5e-5}


@contextlib.contextmanager
def _one_way() -> Iterator[None]:
    """Disables the fast path of eager's attention, because it sets masked elements to
    zero."""
    enabled = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(enabled)


def module_name(info: ModuleInfo) -> str:
    return info.name


def modules() -> list[ModuleInfo]:
    return [info for info in module_db if torch.float32 in info.dtypes]


def inputs_of(info: ModuleInfo, training: bool, limit: int | None) -> list[ModuleInput]:
    torch.manual_seed(1)
    found = info.module_inputs_func(
        info, device="cpu", dtype=torch.float32, requires_grad=True, training=training
    )
    return list(itertools.islice(found, limit))


def _double(value: Any) -> Any:
    if isinstance(value, torch.Tensor) and value.dtype == torch.float32:
        return value.detach().double().requires_grad_(value.requires_grad)
    return value


def run(
    info: ModuleInfo,
    one: ModuleInput,
    training: bool,
    device: str,
    double: bool = False,
    cut: bool = False,
) -> list[torch.Tensor]:
    """Returns outputs, gradients of the outputs' weighted sum, and buffers. With `cut`,
    a separate program computes the gradients."""
    widen = _double if double else lambda value: value
    construct = one.constructor_input
    args, kwargs = copy.deepcopy((construct.args, construct.kwargs))
    torch.manual_seed(3)
    # The module is created in float32 and converted: initialization generates different
    # numbers for float64 parameters.
    module = info.module_cls(*args, **kwargs).train(training)
    module = (module.double() if double else module).to(device)
    mover = Mover(device)
    forward = one.forward_input
    # The mover recognizes tensors by identity, so all of them must stay alive.
    widened = tree_map(widen, (forward.args, forward.kwargs))
    args, kwargs = tree_map(mover, widened)
    torch.manual_seed(7)
    outputs = tensors(module(*args, **kwargs))
    if cut:
        torch_ltc.mark_step()
    results = list(outputs)
    leaves = [p for p in module.parameters() if p.requires_grad] + mover.leaves
    chosen = [t for t in outputs if t.requires_grad]
    if chosen and leaves:
        weights = [
            torch.linspace(0.5, 1.5, t.numel()).reshape(t.shape).to(t.dtype).to(device)
            for t in chosen
        ]
        found = torch.autograd.grad(chosen, leaves, weights, allow_unused=True)
        results += [g for g in found if g is not None]
    return [t.detach() for t in results + list(module.buffers())]


def sweep(
    info: ModuleInfo, training: bool, limit: int | None, cut: bool = False
) -> Outcome:
    raising = torch_ltc.config(compile_failure="raise")
    with warnings.catch_warnings(), _one_way(), raising:
        warnings.simplefilter("ignore")
        samples = inputs_of(info, training, limit)
        settle()
        torch_ltc.reset_metrics()
        try:
            expected = [run(info, one, training, "cpu") for one in samples]
            lazy = [run(info, one, training, "lazy", cut=cut) for one in samples]
            torch_ltc.mark_step(wait=True)
            fallbacks = sorted({row["op"] for row in torch_ltc.fallbacks()})
            for number, one in enumerate(samples):
                tolerance = TOLERANCE.get(info.name)
                text = difference(lazy[number], expected[number], None, tolerance)
                if text:
                    exact = run(info, one, training, "cpu", double=True)
                    text = difference(lazy[number], expected[number], exact)
                if text:
                    place = f"input {number} ({one.desc}): "
                    return Outcome("wrong", len(samples), fallbacks, place + text)
        except Exception as error:
            return Outcome("error", len(samples), [], one_line(error))
        finally:
            settle()
    return Outcome("fallback" if fallbacks else "agrees", len(samples), fallbacks)
