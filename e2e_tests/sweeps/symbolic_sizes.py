"""Captures ops with symbolic sizes, as TorchDynamo does for `dynamic=True`. On fake
tensors of device `lazy`, a capture must succeed wherever it does on the CPU, and at least
as many sizes of the results must remain symbols.
"""

from __future__ import annotations

import dataclasses
import itertools
import logging
import warnings
from collections.abc import Iterator
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import (
    DimDynamic,
    ShapeEnv,
    StatelessSymbolicContext,
)
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.opinfo.core import OpInfo, SampleInput
from torch.utils._pytree import tree_leaves, tree_map

SAMPLES = 4


@dataclasses.dataclass
class Capture:
    error: str = ""
    #: The number of constant sizes, in all results together.
    constants: int = 0
    #: The number of symbols that were replaced by equal expressions.
    replaced: int = 0


def entries() -> list[OpInfo]:
    return [op for op in op_db if torch.float32 in op.supported_dtypes("cpu")]


def _samples(op: OpInfo) -> Iterator[SampleInput]:
    samples = op.sample_inputs("cpu", torch.float32, requires_grad=op.supports_autograd)
    return itertools.islice(samples, SAMPLES)


def capture(op: OpInfo, sample: SampleInput, device: str) -> Capture:
    environment = ShapeEnv()
    mode = FakeTensorMode(shape_env=environment, allow_non_fake_inputs=True)

    def fake(value: Any) -> Any:
        if isinstance(value, torch.Tensor) and value.layout == torch.strided:
            dynamic = StatelessSymbolicContext(
                dynamic_sizes=[DimDynamic.DYNAMIC] * value.dim(),
                constraint_sizes=[None] * value.dim(),
            )
            moved = value.detach().to(device).requires_grad_(value.requires_grad)
            return mode.from_tensor(moved, symbolic_context=dynamic)
        if isinstance(value, torch.device) or value == "cpu":
            return torch.device(device)
        return value

    arguments = tree_map(fake, (sample.input, sample.args, sample.kwargs))
    try:
        with mode:
            results = op.op(arguments[0], *arguments[1], **arguments[2])
    except Exception as error:
        return Capture(f"{type(error).__name__}: {error}".splitlines()[0])
    sizes = [size for r in tree_leaves(results) if isinstance(r, torch.Tensor) for size in r.shape]  # fmt: skip
    constants = sum(isinstance(size, int) or size.node.expr.is_number for size in sizes)
    return Capture("", constants, len(environment.replacements))


def difference(op: OpInfo) -> str:
    """Returns how a capture of lazy tensors differs from one of CPU tensors; "" if it
    doesn't.
    """
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for number, sample in enumerate(_samples(op)):
                expected = capture(op, sample, "cpu")
                if expected.error:
                    continue
                actual = capture(op, sample, "lazy")
                if actual.error:
                    return f"sample {number}: {actual.error}"
                if (
                    actual.constants > expected.constants
                    or actual.replaced > expected.replaced
                ):
                    return f"sample {number}: sizes became constants"
    finally:
        logging.disable(logging.NOTSET)
    return ""
