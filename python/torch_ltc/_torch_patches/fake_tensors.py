"""Converts lazy tensors to fake tensors, which have sizes, strides and a device but no
values.

PyTorch's converter (2.13) can describe lazy tensors' functional wrappers, but rejects
the device's name.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch._subclasses.meta_utils import MetaConverter

from torch_ltc import _C


def _is_convertible(tensor: Any) -> bool:
    return (
        isinstance(tensor, torch.Tensor)
        and tensor.device.type == "lazy"
        and not tensor.is_quantized
        and not (
            tensor._is_view() and tensor._base is not None and tensor._base.is_sparse
        )
    )


def _wrap_conversion(original: Callable) -> Callable:
    @functools.wraps(original)
    def convert(
        self: MetaConverter,
        t: Any,
        shape_env: Any = None,
        *,
        callback: Callable | None = None,
        source: Any = None,
        symbolic_context: Any = None,
        trace: bool = True,
    ) -> Any:
        if not _is_convertible(t):
            return original(
                self,
                t,
                shape_env,
                callback=callback,
                source=source,
                symbolic_context=symbolic_context,
                trace=trace,
            )
        self.hit += 1
        description = self.describer.describe_tensor(t, trace=False)
        with contextlib.ExitStack() as modes:
            modes.enter_context(torch._dispatch.python.suspend_functionalization())
            if torch._C._functorch.peek_interpreter_stack() is not None:
                modes.enter_context(
                    torch._functorch.pyfunctorch.temporarily_clear_interpreter_stack()
                )
            made = self.meta_tensor(
                description,
                shape_env,
                callback or self._identity_callable,
                source,
                symbolic_context,
            )
        if type(t) is torch.nn.Parameter:
            made._is_param = True
        if getattr(t, "_is_buffer", False):
            made._is_buffer = True
            made.persistent = getattr(t, "persistent", True)
        return made

    return convert


def _wrap_new(original: Callable) -> Callable:
    """Gives fake tensors of device lazy other dispatch keys than lazy tensors, so that ops
    on them don't call kernels that trace."""

    @functools.wraps(original)
    def new(cls: type, *args: Any, **kwargs: Any) -> FakeTensor:
        tensor = original(cls, *args, **kwargs)
        if tensor.fake_device.type == "lazy":
            _C.set_fake_keys(tensor)
        return tensor

    return new


def _wrap_normalization(original: Callable) -> Callable:
    """Puts fake tensors on 'lazy:0' if 'lazy' was requested, like real tensors."""

    @functools.wraps(original)
    def normalize(device: torch.device) -> torch.device:
        if device.type == "lazy":
            return torch.device("lazy", 0)
        return original(device)

    return normalize


def _wrap_device_hint(original: Callable) -> Callable:
    """Gives Meta kernels the CPU's strides for device lazy."""

    @functools.wraps(original)
    def device_hint(tensor: Any) -> str:
        hint = original(tensor)
        return "cpu" if hint == "lazy" else hint

    return device_hint


def _choose_as_on_cpu(original: Callable) -> Callable:
    """Gives convolutions of fake tensors of device lazy the backend that the CPU has, and
    the memory format of its results; those of unknown devices are contiguous."""

    def on_cpu(tensor: Any) -> Any:
        if not isinstance(tensor, FakeTensor) or tensor.fake_device.type != "lazy":
            return tensor
        return torch.empty_strided(
            tensor.size(), tensor.stride(), dtype=tensor.dtype, device="cpu"
        )

    @functools.wraps(original)
    def choose(*args: Any, **kwargs: Any) -> Any:
        kwargs = {name: on_cpu(value) for name, value in kwargs.items()}
        return original(*map(on_cpu, args), **kwargs)

    return choose


def install() -> None:
    library: Any = torch._C
    for name in ("_select_conv_backend", "_conv_determine_backend_memory_format"):
        setattr(library, name, _choose_as_on_cpu(getattr(library, name)))
    hint = _wrap_device_hint(torch._meta_registrations.device_hint)
    torch._meta_registrations.device_hint = hint  # type: ignore[attr-defined]
    MetaConverter.__call__ = _wrap_conversion(MetaConverter.__call__)  # type: ignore[method-assign]
    FakeTensor.__new__ = staticmethod(_wrap_new(FakeTensor.__new__))  # type: ignore[method-assign]
    normalize = _wrap_normalization(FakeTensor._normalize_fake_device)
    FakeTensor._normalize_fake_device = staticmethod(normalize)  # type: ignore[method-assign]
