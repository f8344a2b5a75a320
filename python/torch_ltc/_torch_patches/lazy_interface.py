"""Implements `torch._lazy`, PyTorch's interface to lazy tensors, for this backend.

Replaces the functions that end steps and change settings: PyTorch's functions wait on locks
that our step queue doesn't use, and set flags that this backend doesn't read. Also replaces
the functions of `torch._lazy.computation`, which run pending graphs on other inputs for
`torch._lazy.extract_compiled_graph`: PyTorch's functions (2.13) only support the
TorchScript backend.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import cached_property
from types import ModuleType
from typing import Any

import torch
from torch._lazy import computation, ts_backend
from torch._lazy import config as torch_config

from torch_ltc import step
from torch_ltc._backend import bindings
from torch_ltc.config import config

#: The maximum number of graphs that are kept to be run, and of tensors with known ids.
_LIMIT = 1024


class _Graph:
    def __init__(self, traced: Any, positions: list[int]) -> None:
        self.traced = traced
        #: For each tensor of the deduplicated list, its index among the outputs.
        self.positions = positions

    @cached_property
    def module(self) -> Callable[..., list[torch.Tensor]]:
        import torch_ltc
        from torch_ltc.program import Program

        return torch_ltc.compile_mlir(Program(self.traced).bytecode)

    def run(self, inputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        inputs = [value.cpu() for value in inputs]
        parameters = [row["parameter"] for row in self.traced.outputs()]
        results: list[torch.Tensor] = []
        if any(parameter < 0 for parameter in parameters):
            numbers = [value for _, value in self.traced.scalars()]
            results = self.module(*inputs, *numbers)
        return [
            inputs[parameters[at]] if parameters[at] >= 0 else results[at]
            for at in self.positions
        ]


_graphs: OrderedDict[bytes, _Graph] = OrderedDict()
_ids: OrderedDict[int, int] = OrderedDict()  # ids of tensors by `data_key`


def _keep(known: OrderedDict, key: Any, value: Any) -> None:
    known[key] = value
    known.move_to_end(key)
    if len(known) > _LIMIT:
        known.popitem(last=False)


def _trace(tensors: Sequence[torch.Tensor]) -> tuple[bytes, _Graph]:
    unique = list({id(tensor): tensor for tensor in tensors}.values())
    traced = bindings().pending_program(unique)
    positions = list(traced.output_of_tensor)
    # The program's name doesn't distinguish graphs that only differ in dynamic scalars.
    key = f"{traced.name} {traced.scalars()} {positions}".encode()
    _keep(_graphs, key, _Graph(traced, positions))
    return key, _graphs[key]


def get_tensor_id(tensor: torch.Tensor) -> int:
    """Returns an id that is unique among the lazy tensors of the process."""
    number = torch._C._lazy._get_tensor_id(tensor)
    if key := bindings().data_key(tensor):
        _keep(_ids, key, number)
    return number


def get_tensors_ts_device_data_node(
    tensors: Sequence[torch.Tensor],
) -> tuple[list[int], list[torch.Tensor]]:
    """Returns the ids and the values, on the CPU, of the inputs of the tensors' pending
    graph. The id is the one that `torch._lazy.get_tensor_id` returned for the input's
    tensor, or negative if there is none."""
    traced = _trace(tensors)[1].traced
    rows = list(enumerate(traced.inputs()))
    ids = [_ids.get(row["data"], -1 - position) for position, row in rows]
    return ids, [traced.input_tensor(position) for position, _ in rows]


def get_graph_hash(tensors: Sequence[torch.Tensor]) -> bytes:
    """Returns a key with which `run_cached_graph` finds the tensors' pending graph."""
    return _trace(tensors)[0]


def run_cached_graph(
    graph_hash: bytes, graph_inputs: Sequence[torch.Tensor]
) -> list[torch.Tensor]:
    """Runs a graph. `graph_inputs`: values of the graph's data nodes, in their order.
    Returns a CPU tensor for each of the deduplicated tensors for which the graph was
    extracted. Raises RuntimeError for an unknown hash."""
    if graph_hash not in _graphs:
        raise RuntimeError(
            "torch._lazy.computation.run_cached_graph has no graph with this hash: "
            "call get_graph_hash before the tensors are synced."
        )
    return _graphs[graph_hash].run(graph_inputs)


def _keep_this_backend() -> None:
    """Does nothing, in place of `torch._lazy.ts_backend.init`: a process has one backend,
    whose device is already initialized. torch 2.13's function would overwrite the kernels
    and throw."""


def _get_force_fallback() -> str:
    return config.force_fallback


def _set_force_fallback(configval: str) -> None:
    config.force_fallback = configval


def _set_reuse_ir(val: bool) -> None:
    config.reuse_traces = val


def install(module: ModuleType) -> None:
    """Replaces functions of `module`, torch._lazy, and of its modules."""
    module.mark_step = step.mark_step
    module.wait_device_ops = step.wait_device_ops
    module.sync_multi = step.sync
    module.to_cpu = step.to_cpu
    ts_backend.init = _keep_this_backend
    torch_config.get_force_fallback = _get_force_fallback
    torch_config.set_force_fallback = _set_force_fallback
    torch_config.set_reuse_ir = _set_reuse_ir
    module.get_tensor_id = get_tensor_id
    for function in (
        get_tensors_ts_device_data_node,
        get_graph_hash,
        run_cached_graph,
    ):
        setattr(computation, function.__name__, function)
