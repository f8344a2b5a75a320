"""The device module `torch.lazy`, the counterpart of `torch.cuda`.

There is one device, `lazy:0`: the host. Random numbers come from PyTorch's
default CPU generator, so seeds and generator states are those of the CPU.
"""

from __future__ import annotations

import os
import sys
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch

from torch_ltc import _backend
from torch_ltc.step import mark_step, wait_device_ops

__all__ = [
    "Event",
    "Stream",
    "current_device",
    "current_stream",
    "device",
    "device_count",
    "empty_cache",
    "get_amp_supported_dtype",
    "get_device_name",
    "get_device_properties",
    "get_rng_state",
    "get_rng_state_all",
    "init",
    "initial_seed",
    "is_available",
    "is_bf16_supported",
    "is_initialized",
    "manual_seed",
    "manual_seed_all",
    "mark_step",
    "max_memory_allocated",
    "memory_allocated",
    "memory_stats",
    "reset_peak_memory_stats",
    "seed",
    "set_device",
    "set_rng_state",
    "set_rng_state_all",
    "stream",
    "synchronize",
    "wait_device_ops",
]


def install() -> None:
    """Registers this module as `torch.lazy`."""
    if getattr(torch, "lazy", None) is not sys.modules[__name__]:
        torch._register_device_module("lazy", sys.modules[__name__])


# -- the device ------------------------------------------------------------


def is_available() -> bool:
    """Whether tensors can be created on device "lazy"."""
    return _backend.load()


def is_initialized() -> bool:
    return _backend.load()


def init() -> None:
    """Raises BackendUnavailable if the device can't be used; otherwise has no effect."""
    _backend.bindings()


def device_count() -> int:
    return 1 if is_available() else 0


def current_device() -> int:
    return 0


def _check_index(index: Any) -> None:
    if isinstance(index, int):
        number = index
    elif index is None:
        number = 0
    else:
        parsed = torch.device(index)
        if parsed.type != "lazy":
            raise ValueError(f"torch.lazy doesn't have device '{parsed}'.")
        number = parsed.index or 0
    if number not in (0, -1):
        raise ValueError(
            f"Device 'lazy:{number}' doesn't exist: there is only 'lazy:0'."
        )


def set_device(index: Any) -> None:
    _check_index(index)


def device(index: Any = None) -> AbstractContextManager[None]:
    """Returns a context manager without effect, for code that selects a device: there is
    only one. Raises ValueError if `index` denotes a device other than lazy:0."""
    _check_index(index)
    return nullcontext()


def synchronize(device: Any = None) -> None:
    """Ends the step of this thread and waits until all scheduled steps have run."""
    _check_index(device)
    mark_step(wait=True)
    wait_device_ops()


# There are no streams: steps run in order on one queue. The classes below return objects
# of torch's own classes, because torch's functions in C (2.13) reject objects of derived
# classes, or treat any object as one of these classes.


class Event(torch.Event):
    def __new__(
        cls,
        enable_timing: bool = False,
        blocking: bool = False,
        interprocess: bool = False,
    ) -> torch.Event:
        _backend.bindings()
        return torch.Event(
            "lazy:0",
            enable_timing=enable_timing,
            blocking=blocking,
            interprocess=interprocess,
        )


class Stream(torch.Stream):
    def __new__(cls, device: Any = None, priority: int = 0) -> torch.Stream:
        _check_index(device)
        return current_stream()


def current_stream(device: Any = None) -> torch.Stream:
    _check_index(device)
    _backend.bindings()
    return torch.Stream("lazy:0")


def stream(stream: torch.Stream | None) -> AbstractContextManager:
    return nullcontext()


def get_device_name(device: Any = None) -> str:
    _check_index(device)
    return f"lazy ({_backend.bindings().build_info()['cpu_name']})"


def get_device_properties(device: Any = None) -> dict[str, Any]:
    """Returns name, cpu, cpu_features, threads, total_memory (bytes)."""
    _check_index(device)
    info = _backend.bindings().build_info()
    return {
        "name": get_device_name(),
        "cpu": info["cpu_name"],
        "cpu_features": info["cpu_features"],
        "threads": torch.get_num_threads(),
        "total_memory": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
    }


def is_bf16_supported(including_emulation: bool = True) -> bool:
    return True


def get_amp_supported_dtype() -> list[torch.dtype]:
    """Returns the dtypes that `torch.autocast("lazy")` supports."""
    return [torch.bfloat16, torch.float16]


def _is_in_bad_fork() -> bool:
    return is_available() and _backend.bindings().is_in_bad_fork()


# -- random numbers --------------------------------------------------------


def manual_seed(seed: int) -> None:
    torch.default_generator.manual_seed(int(seed))


manual_seed_all = manual_seed


def seed() -> int:
    return torch.default_generator.seed()


seed_all = seed


def initial_seed() -> int:
    return torch.default_generator.initial_seed()


def get_rng_state(device: Any = None) -> torch.Tensor:
    _check_index(device)
    return torch.get_rng_state()


def set_rng_state(new_state: torch.Tensor, device: Any = None) -> None:
    _check_index(device)
    torch.set_rng_state(new_state.cpu())


def get_rng_state_all() -> list[torch.Tensor]:
    return [get_rng_state()]


def set_rng_state_all(new_states: list[torch.Tensor]) -> None:
    for state in new_states:
        set_rng_state(state)


# -- memory ----------------------------------------------------------------


def memory_stats(device: Any = None) -> dict[str, int]:
    """Returns allocated_bytes, peak_allocated_bytes, cached_bytes, arena_bytes (temporaries
    of steps, shared by all programs), packed_weight_bytes (packed copies of convolution
    weights that steps don't change; option cache_packed_weights), live_tensors, pending_ops."""
    _check_index(device)
    return _backend.bindings().memory_stats()


def memory_allocated(device: Any = None) -> int:
    """Returns the number of bytes of host memory that lazy tensors occupy."""
    return memory_stats(device)["allocated_bytes"]


def max_memory_allocated(device: Any = None) -> int:
    return memory_stats(device)["peak_allocated_bytes"]


def reset_peak_memory_stats(device: Any = None) -> None:
    _check_index(device)
    _backend.bindings().reset_peak_memory_stats()


def empty_cache() -> None:
    """Clears the in-memory program cache and returns cached memory to the system. The disk
    cache is unchanged."""
    _backend.bindings().clear_program_cache()
