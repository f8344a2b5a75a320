"""What a recorded call of a captured function leaves, and the checks whether a replay could
repeat the call."""

from __future__ import annotations

import functools
from typing import Any

import torch

from torch_ltc._capture.containers import NotCapturable, flatten
from torch_ltc._capture.sizes import sizes_of
from torch_ltc._capture.state import State
from torch_ltc._capture.traced_sizes import SizeTrace
from torch_ltc._capture.watch import Watch
from torch_ltc.metrics import metrics as _metrics


def marks(tensors: list[torch.Tensor]) -> list[Any]:
    """Returns the properties of the tensors, besides their values, that a call may change:
    requires_grad, gradient, version."""
    return [
        (
            t.requires_grad,
            id(t.grad) if t.is_leaf and t.requires_grad else 0,
            0 if t.device.type == "lazy" or t.is_inference() else t._version,
        )
        for t in tensors
    ]


class RecordedCall:
    """One recorded call. `size_trace`: what the call computed from sizes, if its sizes
    differ from those of earlier calls."""

    def __init__(
        self,
        recording: Any,
        state: State,
        tensors: list[torch.Tensor],
        returned: Any,
        size_trace: SizeTrace | None,
    ) -> None:
        self.recording, self.state = recording, state
        self.tensors = tensors
        self.returned_tensors: list[torch.Tensor] = []
        self.returned = flatten(returned, self.returned_tensors)
        self.scalars = recording.scalars
        self.size_trace = size_trace
        self.sizes = sizes_of(tensors)

    @property
    def data(self) -> Any:
        return self.recording.data

    @functools.cached_property
    def skeleton(self) -> str:
        return self.recording.skeleton


class ReplayedCall:
    """The last replay before a call with other sizes: the recording of that call continues
    from it."""

    def __init__(self, entry: Any) -> None:
        self.data = entry.step.last_data()
        self.skeleton, self.returned = entry.skeleton, entry.returned


def check_recording(recording: Any, watch: Watch, fallbacks: int) -> None:
    if _metrics()["fallback_calls"] > fallbacks:
        raise NotCapturable("an op ran eagerly (torch_ltc.fallbacks() lists it)")
    if recording.first_read:
        raise NotCapturable(
            f"the function reads values, and a replay wouldn't: {recording.first_read}"
        )
    if recording.runs != 1:
        raise NotCapturable(
            "its step isn't one program (option max_trace_ops, or a collective that "
            "isn't traced)"
            if recording.runs
            else "the function computes nothing on device lazy"
        )
    if watch.problem:
        raise NotCapturable(watch.problem)
    if recording.reads_cpu_values:
        raise NotCapturable(
            "the function reads the value of a CPU tensor that is an argument "
            "or was drawn; pass a Python number, or a tensor on device lazy"
        )


def check_arguments(
    arguments: tuple[Any, ...],
    named: dict[str, Any],
    tensors: list[torch.Tensor],
    given: list[Any],
) -> None:
    """Raises NotCapturable if the call changed its arguments, except for writes to
    tensors on device lazy."""
    now: list[torch.Tensor] = []
    flatten((arguments, named) if named else arguments, now)
    if len(now) != len(tensors) or any(a is not b for a, b in zip(now, tensors)):
        raise NotCapturable("the function changes a container of its arguments")
    if marks(tensors) != given:
        raise NotCapturable(
            "the function writes a tensor of its arguments that is on the CPU, or "
            "changes its gradient or requires_grad, which a replay wouldn't"
        )
