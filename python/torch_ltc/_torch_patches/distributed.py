"""Makes torch.distributed support device "lazy" through the process groups of "cpu".

Lazy tensors are in host memory, and collectives on them are traced ops, which call a
group's CPU backend when the step runs (`ltc_backend/distributed`). Therefore there is no
separate backend: `init_process_group` creates a group that supports "lazy" if it is called
without a backend, or with any backend for "cpu" ("gloo", "cpu:gloo,lazy:gloo").
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from torch_ltc._backend import bindings
from torch_ltc._torch_patches import import_hooks

_DEVICE = "lazy"
_FSDP = "torch.distributed.fsdp._fully_shard._fsdp_param"


def install() -> None:
    if not dist.is_available():
        return
    backend = dist.Backend
    backend.default_device_backend_map.setdefault(_DEVICE, backend.GLOO)
    for devices in backend.backend_capability.values():
        if "cpu" in devices and _DEVICE not in devices:
            devices.append(_DEVICE)
    begin = _take_device_id(dist.init_process_group)
    dist.init_process_group = dist.distributed_c10d.init_process_group = begin
    destroy = _run_collectives_first(dist.destroy_process_group)
    dist.destroy_process_group = destroy
    dist.distributed_c10d.destroy_process_group = destroy
    config = dist.distributed_c10d.BackendConfig
    config.__init__ = _serve_lazy(config.__init__)
    dist.GradBucket.gradients = _gradients_of_parameters(dist.GradBucket.gradients)
    DistributedDataParallel._check_comm_hook = _take_bfloat16(
        DistributedDataParallel._check_comm_hook
    )
    DistributedDataParallel._assign_modules_buffers = _keep_equal_lists(
        DistributedDataParallel._assign_modules_buffers
    )
    DistributedDataParallel._register_delay_all_reduce_hook = _delay_on_lazy(
        DistributedDataParallel._register_delay_all_reduce_hook
    )
    import_hooks.install(
        {
            _FSDP: _release_gathered,
            "torch.distributed.fsdp._fully_shard._fsdp_init": _shard_on_lazy,
            "torch.distributed.fsdp._init_utils": _compute_on_lazy,
            "torch.distributed.tensor._random": _draw_as_on_cpu,
            "torch.distributed.device_mesh": _dispatch_tensors_of_meshes,
        }
    )
    batch_norm: Any = torch.nn.SyncBatchNorm
    batch_norm.forward = _normalize_lazy(batch_norm.forward)


def _take_device_id(original: Callable[..., None]) -> Callable[..., None]:
    """If a program passes device lazy as `device_id`, makes this device the accelerator,
    as torch (2.13) requires. The group isn't bound to the device: torch would split such a
    group instead of creating new groups for the dims of a mesh, and Gloo can't do this."""

    @functools.wraps(original)
    def init_process_group(*args: Any, **kwargs: Any) -> None:
        if getattr(kwargs.get("device_id"), "type", "") == _DEVICE:
            from torch_ltc._torch_patches import accelerator

            accelerator.note_use()
            del kwargs["device_id"]
        original(*args, **kwargs)

    return init_process_group


def _run_collectives_first(original: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(original)
    def destroy_process_group(group: dist.ProcessGroup | None = None) -> None:
        from torch_ltc import _C

        try:
            if _C.is_initialized():
                _C.run_traced_collectives("destroy_process_group")
                _C.wait_device_ops()
        finally:
            original(group)

    return destroy_process_group


def _normalize_lazy(original: Callable[..., torch.Tensor]) -> Callable:
    @functools.wraps(original)
    def forward(self: torch.nn.SyncBatchNorm, input: torch.Tensor) -> torch.Tensor:
        is_ours = input.device.type == _DEVICE and self.training
        if not is_ours or not dist.is_initialized():
            return original(self, input)
        from torch_ltc._torch_patches import sync_batch_norm

        return sync_batch_norm.forward(self, input)

    return forward


def _serve_lazy(original: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(original)
    def init(self, backend: str) -> None:
        original(self, backend)
        # If no backend is named, the group is for the machine's accelerator or for "cpu".
        # In the second case, it supports "lazy", too.
        if backend == dist.Backend.UNDEFINED and "cpu" in self.device_backend_map:
            self.device_backend_map.setdefault(_DEVICE, self.device_backend_map["cpu"])

    return init


def _take_bfloat16(original: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(original)
    def _check_comm_hook(self, hook: Callable) -> None:
        if self.device_type == _DEVICE and callable(hook):
            # Hides the hook's name, by which torch (2.13) decides whether the hook requires
            # a GPU's backend.
            unnamed = functools.partial(hook)
            unnamed.__name__ = "hook"
            hook = unnamed
        original(self, hook)

    return _check_comm_hook


def _keep_equal_lists(original: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(original)
    def _assign_modules_buffers(self) -> None:
        # torch (2.13) makes a new list of the buffers in each step. Keeping an equal list
        # lets a captured step detect whether the buffers have changed.
        names = ("modules_buffers", "named_module_buffers")
        before = [self.__dict__.get(name) for name in names]
        original(self)
        buffers = self.modules_buffers
        if self.device_type == _DEVICE and before[0] is not None:
            listed, named = before
            is_equal = (
                list(named) == list(self.named_module_buffers)
                and len(listed) == len(buffers)
                and all(old is new for old, new in zip(listed, buffers, strict=True))
            )
            if is_equal:
                self.modules_buffers, self.named_module_buffers = before

    return _assign_modules_buffers


def _release_gathered(module: ModuleType) -> None:
    """Makes `fully_shard` release gathered parameters: torch (2.13) resizes the storages of
    the gathered data to 0, but the parameters are separate values on device lazy."""
    kind: Any = module.FSDPParam
    original = kind.free_unsharded_param

    @functools.wraps(original)
    def free_unsharded_param(self) -> None:
        original(self)
        if self.device.type != _DEVICE:
            return
        parameter = getattr(self, "_unsharded_param", None)
        if parameter is None:
            return
        from torch_ltc import _C

        for tensor in (
            *self.all_gather_outputs,
            *self._unsharded_inner_tensors,
            getattr(parameter, "_local_tensor", parameter),
        ):
            _C.release_memory(tensor)

    kind.free_unsharded_param = free_unsharded_param


def _shard_on_lazy(module: ModuleType) -> None:
    """Makes `fully_shard` without a mesh choose device lazy if this device is the
    accelerator; torch (2.13) calls a C++ function that ignores this."""
    original = module._init_default_mesh

    @functools.wraps(original)
    def init_default_mesh(mesh_dim_names: tuple[str, ...] | None = None) -> Any:
        accelerator = torch.accelerator.current_accelerator()
        if accelerator is None or accelerator.type != _DEVICE:
            return original(mesh_dim_names)
        if not dist.is_initialized():
            dist.init_process_group()
        sizes = (dist.get_world_size(),)
        return dist.init_device_mesh(_DEVICE, sizes, mesh_dim_names=mesh_dim_names)

    module._init_default_mesh = init_default_mesh  # type: ignore[attr-defined]


def _compute_on_lazy(module: ModuleType) -> None:
    """Makes FullyShardedDataParallel choose device lazy for a module without parameters of
    its own, and for a `device_id` without an index. torch (2.13) calls `torch.device(0)` in
    both cases, which is the accelerator."""
    original = module._get_compute_device
    from_device_id = module._get_device_from_device_id

    @functools.wraps(from_device_id)
    def get_device_from_device_id(
        device_id: Any, rank: int, handle: Any
    ) -> torch.device | None:
        # Other accelerators get a warning about the missing index, but "lazy" is one device.
        if isinstance(device_id, str | torch.device) and (
            torch.device(device_id) == torch.device(_DEVICE)
        ):
            device_id = torch.device(_DEVICE, 0)
        return from_device_id(device_id, rank, handle)

    @functools.wraps(original)
    def get_compute_device(
        part: torch.nn.Module,
        ignored: set[torch.nn.Parameter],
        requested: torch.device | None,
        rank: int,
        handle: Any,
    ) -> torch.device:
        device = getattr(handle, "_FSDPDeviceHandle__device", None)
        parameters = module._get_orig_params(part, ignored)
        if getattr(device, "type", "") == _DEVICE and next(parameters, None) is None:
            return torch.device(_DEVICE, 0)
        return original(part, ignored, requested, rank, handle)

    module._get_compute_device = get_compute_device  # type: ignore[attr-defined]
    module._get_device_from_device_id = get_device_from_device_id  # type: ignore[attr-defined]


def _draw_as_on_cpu(module: ModuleType) -> None:
    """Makes DTensors on device lazy draw random numbers like those on the CPU: torch's
    tracker (2.13) needs the state of a GPU's generator."""
    original = module.is_rng_supported_mesh

    @functools.wraps(original)
    def is_rng_supported_mesh(device_mesh: Any) -> bool:
        return device_mesh.device_type != _DEVICE and original(device_mesh)

    module.is_rng_supported_mesh = is_rng_supported_mesh  # type: ignore[attr-defined]


def _delay_on_lazy(original: Callable) -> Callable:
    """Creates the buffer of delayed gradients on the parameters' device. Without
    `device_ids`, torch (2.13) creates it on the CPU."""

    @functools.wraps(original)
    def register(self: Any, **kwargs: Any) -> None:
        if kwargs["device_ids"] is None and self.device_type == _DEVICE:
            kwargs["device_ids"] = [torch.device(_DEVICE)]
        original(self, **kwargs)

    return register


def _dispatch_tensors_of_meshes(module: ModuleType) -> None:
    """Makes ops on DTensors bypass functionalization (subclasses.py), which would reject a
    call with DTensors and tensors. DTensors are created in C++ (torch 2.13), and belong to
    a mesh."""
    mesh: Any = module.DeviceMesh
    original = mesh.__init__

    @functools.wraps(original)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        if self.device_type == _DEVICE:
            bindings().pass_functionalization()

    mesh.__init__ = init


def _gradients_of_parameters(original: Callable) -> Callable:
    @functools.wraps(original)
    def gradients(self) -> list[torch.Tensor]:
        buffer = self.buffer()
        if buffer.device.type != _DEVICE:
            return original(self)
        # torch's function (2.13) would read each parameter's sizes at a stored address,
        # which becomes invalid when a lazy tensor gets a new value.
        parts, begin = [], 0
        for parameter in self.parameters():
            part = buffer.narrow(0, begin, parameter.numel())
            parts.append(part.view(parameter.shape))
            begin += parameter.numel()
        return parts

    return gradients
