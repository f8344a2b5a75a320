"""How optimizers step on device lazy: over all parameters at once.

torch 2.13 has no registration for either of these: names are replaced in its
modules. Options that a user gives (`foreach=False`, `capturable=True`, ...) are
obeyed as everywhere.
"""

from __future__ import annotations

import functools
import sys
from typing import Any

import torch
from torch.utils import _foreach_utils

from torch_ltc._backend import bindings

#: Forms of Adam that take torch's own way.
_SPECIAL = (
    "amsgrad",
    "maximize",
    "capturable",
    "differentiable",
    "has_complex",
    "grad_scale",
    "found_inf",
)
_NUMBERS = ("lr", "beta1", "beta2", "weight_decay", "eps")

Tensors = list[torch.Tensor]


def _prefer_foreach() -> None:
    """Optimizers and gradient clipping take their `foreach` form by default, as
    on other devices than the CPU: a step is a dozen calls from Python, not a
    dozen for each parameter."""
    listed = _foreach_utils._get_foreach_kernels_supported_devices

    def supported() -> list[str]:
        return [*listed(), "lazy"]

    # torch.optim deletes its own attribute `optimizer`.
    for module in (_foreach_utils, sys.modules["torch.optim.optimizer"]):
        module._get_foreach_kernels_supported_devices = supported


def _trace_adam_as_one_op() -> None:
    """Adam's and AdamW's default step is one call and one node a parameter,
    with the numbers of torch's `foreach` form."""
    adam = sys.modules["torch.optim.adam"]
    by_foreach = adam._multi_tensor_adam

    @functools.wraps(by_foreach)
    def step(
        params: Tensors,
        grads: Tensors,
        exp_avgs: Tensors,
        exp_avg_sqs: Tensors,
        max_exp_avg_sqs: Tensors,
        state_steps: Tensors,
        **options: Any,
    ) -> None:
        plain = params and params[0].device.type == "lazy"
        if plain and not any(options[n] not in (False, None) for n in _SPECIAL):
            numbers = [options[name] for name in _NUMBERS]
            decoupled = options["decoupled_weight_decay"]
            state = params, grads, exp_avgs, exp_avg_sqs, state_steps
            if torch.Tensor not in map(type, numbers) and bindings().adam_step(
                *state, *numbers, decoupled
            ):
                return
        by_foreach(
            params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps, **options
        )  # fmt: skip

    adam._multi_tensor_adam = step


def install() -> None:
    _prefer_foreach()
    _trace_adam_as_one_op()
