"""Runs the graphs that TorchInductor can't compile because their tensors are lazy.

TorchInductor, the default backend of torch.compile, has no code generator for device
"lazy" (2.13). The ops of such a graph are traced when the graph runs, as they are without
torch.compile.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import torch
from torch.utils._pytree import tree_leaves


def _is_lazy(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.device.type == "lazy"


def _has_lazy_tensors(graph: Any, inputs: Sequence[Any]) -> bool:
    """Whether an input or the result of a node is lazy. A graph can make lazy tensors
    without having lazy inputs."""
    if any(map(_is_lazy, inputs)):
        return True
    nodes = graph.graph.nodes if isinstance(graph, torch.fx.GraphModule) else ()
    return any(
        _is_lazy(value)
        for node in nodes
        for value in tree_leaves((node.meta.get("example_value"), node.meta.get("val")))
    )


def _wrap_compilation(original: Callable) -> Callable:
    @functools.wraps(original)
    def compile_fx(model_: Any, example_inputs_: Any, *args: Any, **kwargs: Any) -> Any:
        if _has_lazy_tensors(model_, example_inputs_):
            return model_
        return original(model_, example_inputs_, *args, **kwargs)

    return compile_fx


def install(module: ModuleType) -> None:
    module.compile_fx = _wrap_compilation(module.compile_fx)  # type: ignore[attr-defined]
