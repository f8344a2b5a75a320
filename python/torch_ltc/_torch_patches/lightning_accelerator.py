"""Makes Lightning accept `Trainer(accelerator="lazy")` and `Fabric(accelerator="lazy")`.

Lightning 2.6 only finds accelerators in its own modules, uses the CPU as the device of
every accelerator that it doesn't list, and uses CUDA's autocast. So when one of its
modules in `_HOOKS` is imported, a function registers the accelerator there, or makes the
module's connector or strategy use the accelerator's device. Programs that don't import
Lightning aren't affected.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any

import torch

from torch_ltc._torch_patches import import_hooks

_NAME = "lazy"


def _make_accelerator(base: type) -> type:
    class LazyAccelerator(base):
        """Device lazy of torch_ltc: one device for each process."""

        def setup_device(self, device: torch.device) -> None:
            if device.type != _NAME:
                raise ValueError(f"Device should be lazy, got {device} instead.")

        def teardown(self) -> None:
            torch.lazy.synchronize()

        def get_device_stats(self, device: Any) -> dict[str, Any]:
            return torch.lazy.memory_stats()

        @staticmethod
        def parse_devices(devices: int | str | list[int]) -> int:
            if devices in (-1, "-1", "auto", [0], "0,"):
                return 1
            if isinstance(devices, str) and devices.isdecimal():
                devices = int(devices)
            if type(devices) is not int or devices < 1:
                raise ValueError(
                    "There is one device lazy: devices is 'auto' or the number of "
                    f"processes, but got {devices!r}."
                )
            return devices

        @staticmethod
        def get_parallel_devices(devices: int) -> list[torch.device]:
            if devices == 1:
                return [torch.device(_NAME)]
            # Each process uses its own device 0; strategies read the index.
            return [torch.device(_NAME, 0)] * devices

        @staticmethod
        def auto_device_count() -> int:
            return 1

        @staticmethod
        def is_available() -> bool:
            return True

        @staticmethod
        def name() -> str:
            return _NAME

    return LazyAccelerator


def _register(module: ModuleType) -> None:
    accelerator = _make_accelerator(module.Accelerator)
    # Spawned processes unpickle the accelerator, by this name.
    accelerator.__module__ = module.__name__
    accelerator.__qualname__ = "LazyAccelerator"
    module.LazyAccelerator = accelerator
    registry = getattr(module, "AcceleratorRegistry", None)
    if registry is None:
        registry = module.ACCELERATOR_REGISTRY
    registry.register(_NAME, accelerator, description="device lazy of torch_ltc")


def _is_on_lazy(connector: Any) -> bool:
    return getattr(connector.accelerator, "name", str)() == _NAME


def _connect(module: ModuleType) -> None:
    """Patches a module whose class reads the arguments of Trainer or Fabric, so that the
    strategy, the precision and `accelerator="auto"` follow the device."""
    connector = getattr(module, "_AcceleratorConnector", None) or module._Connector
    choose_strategy = connector._choose_strategy
    make_precision = connector._check_and_init_precision
    choose_auto = connector._choose_auto_accelerator

    @functools.wraps(choose_strategy)
    def strategy_of_device(self: Any) -> Any:
        alone = self._num_nodes_flag == 1 and len(self._parallel_devices) == 1
        if _is_on_lazy(self) and alone:
            return module.SingleDeviceStrategy(device=torch.device(_NAME))
        return choose_strategy(self)

    @functools.wraps(make_precision)
    def precision_of_device(self: Any) -> Any:
        precision = make_precision(self)
        if _is_on_lazy(self) and isinstance(precision, module.MixedPrecision):
            precision.device = _NAME
            if precision.scaler is not None:
                precision.scaler = torch.amp.GradScaler(_NAME)
        return precision

    @functools.wraps(choose_auto)
    def accelerator_of_torch() -> str:
        current = torch.accelerator.current_accelerator()
        return _NAME if current and current.type == _NAME else choose_auto()

    connector._choose_strategy = strategy_of_device
    connector._check_and_init_precision = precision_of_device
    connector._choose_auto_accelerator = staticmethod(accelerator_of_torch)


def _parallelize(module: ModuleType) -> None:
    """Makes strategy ddp use no device ids on device lazy: with ids, the strategy creates
    CUDA streams."""
    strategy = module.DDPStrategy
    for name in ("determine_ddp_device_ids", "_determine_ddp_device_ids"):
        original = getattr(strategy, name, None)
        if original is None:
            continue

        @functools.wraps(original)
        def device_ids(self: Any, original: Callable = original) -> list[int] | None:
            return None if self.root_device.type == _NAME else original(self)

        setattr(strategy, name, device_ids)


_HOOKS: dict[str, Callable[[ModuleType], None]] = {}
for _pytorch, _fabric in (
    ("lightning.pytorch", "lightning.fabric"),
    ("pytorch_lightning", "lightning_fabric"),
):
    _HOOKS[f"{_pytorch}.accelerators"] = _HOOKS[f"{_fabric}.accelerators"] = _register
    _HOOKS[f"{_pytorch}.trainer.connectors.accelerator_connector"] = _connect
    _HOOKS[f"{_fabric}.connector"] = _connect
    _HOOKS[f"{_pytorch}.strategies.ddp"] = _parallelize
    _HOOKS[f"{_fabric}.strategies.ddp"] = _parallelize


@functools.cache
def _install_hooks() -> None:
    import_hooks.install(_HOOKS)


def install(module: ModuleType) -> None:
    """Installs the hooks for all of Lightning's packages, which import each other."""
    _install_hooks()
