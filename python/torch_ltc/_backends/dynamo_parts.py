"""Splits a graph of `torch.compile` into parts: ops that can't be compiled run eagerly
between programs."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import torch
from torch import fx
from torch.fx.passes.split_module import split_module


class _Compiled(torch.nn.Module):
    """A compiled part of a graph. It returns a tuple, like the module that it replaces."""

    def __init__(self, function: Callable[..., list[Any]]) -> None:
        super().__init__()
        self._function = function

    def forward(self, *args: Any) -> tuple[Any, ...]:
        return tuple(self._function(*args))


class _Parts:
    """Divides a graph into numbered parts: each maximal run of consecutive nodes that are
    all compiled or all eager is a part. This preserves the order of random ops."""

    def __init__(self, graph: fx.Graph, rejected: object) -> None:
        self.number: dict[fx.Node, int] = {}
        self.eager: set[int] = set()
        part, was_eager = 0, None
        for node in graph.nodes:
            if node.op != "call_function":
                continue
            source = node.args[0] if node.target is operator.getitem else None
            if source in self.number:  # parts exchange tensors, not tuples
                self.number[node] = self.number[source]
                continue
            is_eager = node.target is rejected
            part += is_eager is not was_eager
            was_eager = is_eager
            self.number[node] = part
            if is_eager:
                self.eager.add(part)


def in_parts(
    module: fx.GraphModule,
    rejected: object,
    compile_part: Callable[[fx.GraphModule], Callable[..., list[Any]]],
) -> Callable[..., list[Any]]:
    """Returns a function of `module`'s inputs that returns the list of its outputs. Nodes
    that call `rejected` run eagerly; `compile_part` compiles the rest."""
    parts = _Parts(module.graph, rejected)
    split = split_module(
        module, None, parts.number.__getitem__, keep_original_order=True, tuple_return=True
    )  # fmt: skip
    for name, child in list(split.named_children()):
        if int(name.removeprefix("submod_")) not in parts.eager:
            setattr(split, name, _Compiled(compile_part(child)))

    def run(*args: Any) -> list[Any]:
        with torch.no_grad():
            return list(fx.Interpreter(split).run(*args))

    return run
