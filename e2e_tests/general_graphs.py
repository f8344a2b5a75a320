"""Compares programs that were traced at several sizes with their general graph."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch_ltc
from counting import counting
from torch.utils._pytree import tree_leaves
from torch_ltc._backend import bindings

#: Maximum growth of a size; small, so that different dimensions often get equal sizes.
MOST_GROWTH = 6


def trace(function: Callable[[], Any]) -> Any:
    """Returns the program of the lazy tensors that `function` returns, or None if it
    returned none, ran fallbacks or read values (which ends the trace)."""
    torch_ltc.mark_step()
    with counting() as counts:
        tensors = [
            leaf
            for leaf in tree_leaves(function())
            if isinstance(leaf, torch.Tensor) and leaf.device.type == "lazy"
        ]
        program = bindings().pending_program(tensors) if tensors else None
    if program is None or counts.fallback_calls or counts.implicit_syncs:
        return None
    return program


def _without_messages(text: str) -> str:
    """Removes error messages, which may contain the sizes of the traced graph."""
    return re.sub(r'(assert_msg=|torch\.constant\.str )"[^"]*"', r"\1", text)


def same(ours: Any, program: Any, stages: bool = True) -> None:
    """Asserts that two programs have the same graph (ops, arguments, operands, shapes) and,
    with `stages`, the same compiler input, except for error messages.
    """
    assert _without_messages(ours.ir()) == _without_messages(program.ir())
    rows = zip(ours.inputs(), program.inputs())
    assert all((a["dtype"], a["sizes"]) == (b["dtype"], b["sizes"]) for a, b in rows)
    if stages:
        raw = [
            _without_messages(p.text("torch-raw", [], False)) for p in (ours, program)
        ]
        assert raw[0] == raw[1]


@dataclass
class Outcome:
    """The outcome of `check`, counted over all skeletons."""

    general: int = 0  # general graphs
    bound: int = 0  # later programs to which the general graph was bound
    refined: int = 0  # programs that corrected a general graph
    rejected: str = ""  # why a skeleton has no general graph


def check(programs: Sequence[Any], stages: bool = True) -> Outcome:
    """Makes a general graph from the first programs of each skeleton, at most four. Asserts
    that the general graph binds to each program's sizes, if necessary after a correction,
    and that the bound graph is exactly the program's graph. A correction that is rejected
    ends the check of the skeleton.
    """
    outcome = Outcome()
    for group in _by_skeleton(programs).values():
        form, seen = _general_form(group, outcome)
        if form is None:
            continue
        outcome.general += 1
        outcome.refined += seen - 2
        for number, program in enumerate(group):
            values, reason = form.bind(program)
            if values is None:
                assert number >= seen, reason
                outcome.refined += 1
                try:
                    form = form.refine(program)
                except RuntimeError as error:
                    outcome.rejected = str(error).split("\n")[0]
                    break
                values, reason = form.bind(program)
                assert values is not None, reason
            elif number >= seen:
                outcome.bound += 1
            same(form.instantiate(values, program.name), program, stages)
    return outcome


def _general_form(group: Sequence[Any], outcome: Outcome) -> tuple[Any, int]:
    """Returns the general graph of the first programs and the number of these programs;
    None and 0 if there is no such graph."""
    reason = ""
    for seen in range(2, min(len(group), 4) + 1):
        try:
            return bindings().GeneralGraph(group[:seen]), seen
        except RuntimeError as error:
            reason = str(error).split("\n")[0]
    outcome.rejected = outcome.rejected or reason
    return None, 0


def _by_skeleton(programs: Sequence[Any]) -> dict[str, list[Any]]:
    groups: dict[str, list[Any]] = {}
    for program in programs:
        groups.setdefault(bindings().skeleton(program), []).append(program)
    return groups


class Growth:
    """Replaces sizes of tensors, so that equal sizes stay equal. The new sizes are never
    smaller, so that indices stay in range."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.sizes: dict[int, int] = {}

    def size(self, size: int) -> int:
        if size < 2:
            return size
        if size not in self.sizes:
            self.sizes[size] = size + self.random.randint(0, MOST_GROWTH)
        return self.sizes[size]

    def number(self, number: int) -> int:
        """Returns the value that replaces the integer argument `number`, if this is a
        replaced size or a product of two, else `number`."""
        if number in self.sizes:
            return self.sizes[number]
        for size, larger in self.sizes.items():
            other = self.sizes.get(number // size) if number % size == 0 else None
            if other:
                return larger * other
        return number

    def tensor(self, tensor: torch.Tensor) -> torch.Tensor:
        """Returns a tensor of the new sizes, filled by repeating the elements."""
        result = tensor
        for dim, size in enumerate(tensor.shape):
            wanted = self.size(size)
            if wanted != size:
                repeated = torch.cat([result] * (wanted // size + 1), dim)
                result = repeated.narrow(dim, 0, wanted)
        return result.contiguous()
