"""`torch._lazy.computation`: pending graphs as programs that run on other inputs.

What `torch._lazy.extract_compiled_graph` is made of. PyTorch's own functions take the
computations of its TorchScript backend (2.13).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import torch
import torch._lazy
import torch._lazy.computation as computation

from torch_ltc._backend import bindings

if TYPE_CHECKING:
    from torch_ltc.mlir_module import CompiledModule

#: Graphs that can be run, and tensors whose ids are known: the last ones.
_LIMIT = 1024


@dataclass
class _Graph:
    traced: Any
    #: For each tensor without its repetitions: position among the outputs.
    positions: list[int]

    @cached_property
    def module(self) -> CompiledModule:
        from torch_ltc.mlir_module import compile_mlir
        from torch_ltc.program import Program

        return compile_mlir(Program(self.traced).bytecode)

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
_ids: OrderedDict[int, int] = OrderedDict()  # by the key of a tensor's data


def _keep(known: OrderedDict, key: Any, value: Any) -> None:
    known[key] = value
    known.move_to_end(key)
    if len(known) > _LIMIT:
        known.popitem(last=False)


def _trace(tensors: Sequence[torch.Tensor]) -> tuple[bytes, _Graph]:
    unique = list({id(tensor): tensor for tensor in tensors}.values())
    traced = bindings().pending_program(unique)
    positions = list(traced.output_of_tensor)
    # The program's name doesn't tell graphs apart that differ in numbers only.
    key = f"{traced.name} {traced.scalars()} {positions}".encode()
    _keep(_graphs, key, _Graph(traced, positions))
    return key, _graphs[key]


def get_tensor_id(tensor: torch.Tensor) -> int:
    """An id that no other lazy tensor of the process has."""
    number = torch._C._lazy._get_tensor_id(tensor)
    if key := bindings().data_key(tensor):
        _keep(_ids, key, number)
    return number


def get_tensors_ts_device_data_node(
    tensors: Sequence[torch.Tensor],
) -> tuple[list[int], list[torch.Tensor]]:
    """What the pending graph of the tensors reads: for each input the id that
    `torch._lazy.get_tensor_id` gave for its tensor, negative for others, and
    its value on the CPU."""
    traced = _trace(tensors)[1].traced
    rows = list(enumerate(traced.inputs()))
    ids = [_ids.get(row["data"], -1 - position) for position, row in rows]
    return ids, [traced.input_tensor(position) for position, _ in rows]


def get_graph_hash(tensors: Sequence[torch.Tensor]) -> bytes:
    """The name of the pending graph of the tensors, for `run_cached_graph`."""
    return _trace(tensors)[0]


def run_cached_graph(
    graph_hash: bytes, graph_inputs: Sequence[torch.Tensor]
) -> list[torch.Tensor]:
    """Runs a graph on tensors, in the order of its data nodes: a CPU tensor
    for each of the tensors that it was asked for, without repetitions."""
    if graph_hash not in _graphs:
        raise RuntimeError(
            "torch._lazy.computation.run_cached_graph doesn't know this graph: ask "
            "for its hash with get_graph_hash before the tensors are synced."
        )
    return _graphs[graph_hash].run(graph_inputs)


def install() -> None:
    torch._lazy.get_tensor_id = get_tensor_id
    for function in (
        get_tensors_ts_device_data_node,
        get_graph_hash,
        run_cached_graph,
    ):
        setattr(computation, function.__name__, function)
