"""Makes device lazy the device of `torch.accelerator` in programs that use device lazy.

PyTorch (2.13) lists in C++ which devices can be the accelerator; `torch.accelerator` is
Python code that calls functions of `torch._C`. These are replaced. A CUDA device (or
another device of that list) remains the accelerator unless the program chooses device lazy,
by option `accelerator` or as the default device. Without such a device (even in PyTorch's
CUDA build), device lazy also becomes the accelerator once the program has created a lazy
tensor. Installing the package alone moves no program to the device.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any

import torch

from torch_ltc import device_module
from torch_ltc._backend import bindings

_original: Callable[[], torch.device | None] = torch._C._accelerator_getAccelerator
_is_used = False


def _is_chosen() -> bool:
    by_option = bindings().config_get("accelerator")
    return bool(by_option) or torch.get_default_device().type == "lazy"


@functools.cache
def _is_available(device_type: str) -> bool:
    """Whether a device of this type exists: in PyTorch's CUDA build, CUDA is the
    accelerator even without a GPU."""
    return torch.get_device_module(device_type).is_available()


def _is_lazy_the_accelerator() -> bool:
    global _is_used
    if not _is_used:
        _is_used = _is_chosen() or bindings().memory_stats()["live_tensors"] > 0
    if not _is_used:
        return False
    other = _original()
    return other is None or not _is_available(other.type) or _is_chosen()


def note_use() -> None:
    """Notes that the program uses device lazy. Called when the program names this device
    where PyTorch expects the accelerator."""
    global _is_used
    _is_used = True


def _current() -> torch.device | None:
    return torch.device("lazy") if _is_lazy_the_accelerator() else _original()


def _select(index: int) -> int:
    device_module.set_device(index)
    return 0


def _stream(index: int) -> torch.Stream:
    device_module.set_device(index)
    return torch.Stream(device="lazy:0")


def _capability(index: int) -> dict[str, Any]:
    device_module.set_device(index)
    integers = {torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32}
    floats = {torch.float16, torch.bfloat16, torch.float32, torch.float64}
    return {"supported_dtypes": {*integers, torch.int64, *floats}}


def _statistics(index: int) -> dict[str, Any]:
    stats = device_module.memory_stats(index)
    current, peak = stats["allocated_bytes"], stats["peak_allocated_bytes"]
    kept = current + stats["cached_bytes"]
    return {
        "allocated_bytes": {"all": {"current": current, "peak": peak}},
        "reserved_bytes": {"all": {"current": kept, "peak": max(kept, peak)}},
    }


def _memory(index: int) -> tuple[int, int]:
    """Returns the free and the total memory of the machine in bytes."""
    device_module.set_device(index)
    page = os.sysconf("SC_PAGE_SIZE")
    return page * os.sysconf("SC_AVPHYS_PAGES"), page * os.sysconf("SC_PHYS_PAGES")


#: Replacements of functions of `torch._C`, by name without the prefix "_accelerator_".
_REPLACED: dict[str, Callable[..., Any]] = {
    "emptyCache": device_module.empty_cache,
    "emptyHostCache": lambda: None,
    "exchangeDevice": _select,
    "getDeviceCapability": _capability,
    "getDeviceIndex": device_module.current_device,
    "getDeviceStats": _statistics,
    "getMemoryInfo": _memory,
    "getStream": _stream,
    "isAllocatorInitialized": lambda: True,
    "maybeExchangeDevice": _select,
    "resetAccumulatedStats": device_module.set_device,
    "resetPeakStats": device_module.reset_peak_memory_stats,
    "setDeviceIndex": device_module.set_device,
    "setStream": lambda stream: device_module.set_device(stream.device_index),
    "synchronizeDevice": device_module.synchronize,
}


def _wrap(original: Callable, ours: Callable) -> Callable:
    @functools.wraps(original)
    def function(*args: Any) -> Any:
        return ours(*args) if _is_lazy_the_accelerator() else original(*args)

    return function


def _wrap_pin_memory(original: Callable) -> Callable:
    """Makes `pin_memory` return CPU tensors unchanged if device lazy is the accelerator:
    its memory is host memory, so copies to it need no pinned memory. A DataLoader with
    `pin_memory=True` pins its batches if there is an accelerator."""

    @functools.wraps(original)
    def pin_memory(self: torch.Tensor, device: Any = None) -> torch.Tensor:
        if device is None and self.is_cpu and _is_lazy_the_accelerator():
            return self
        return original(self) if device is None else original(self, device)

    return pin_memory


def _hide_from_dynamo() -> None:
    """Makes TorchDynamo skip the functions of this module, which replace C functions that
    Dynamo's guards call. If Dynamo compiled them, the guards of the compiled functions
    would call them again, in endless recursion."""
    from torch._C._dynamo import eval_frame

    skip = eval_frame._FrameExecStrategy(
        eval_frame._FrameAction.SKIP, eval_frame._FrameAction.SKIP
    )
    places = [_is_lazy_the_accelerator, _is_chosen, _current, _select, _stream]
    places += [_capability, _is_available.__wrapped__]
    places += [_wrap(_current, _current), _wrap_pin_memory(_current)]
    places += [*_REPLACED.values(), _statistics, _memory]
    for place in places:
        if hasattr(place, "__code__"):
            eval_frame.set_code_exec_strategy(place.__code__, skip)


def install() -> None:
    _hide_from_dynamo()
    torch._C._accelerator_getAccelerator = _current
    torch.Tensor.pin_memory = _wrap_pin_memory(torch.Tensor.pin_memory)  # type: ignore
    for name, ours in _REPLACED.items():
        name = f"_accelerator_{name}"
        setattr(torch._C, name, _wrap(getattr(torch._C, name), ours))
