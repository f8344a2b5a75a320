"""Programs traced at several sizes, compared with their general form."""

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

#: Sizes that are drawn; few, so that different dimensions often have equal ones.
MOST_GROWTH = 6


def trace(function: Callable[[], Any]) -> Any:
    """The program of the lazy tensors that `function` returns; None if it ran ops
    eagerly or read values, which ends the trace."""
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
    """Texts of errors may contain sizes. An error has the text of the traced graph."""
    return re.sub(r'(assert_msg=|torch\.constant\.str )"[^"]*"', r"\1", text)


def same(ours: Any, program: Any, stages: bool = True) -> None:
    """A graph's complete contents (ops, arguments, operands, shapes), and the
    compiler's input, but for the texts of errors.
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
    """The outcome for some programs of one skeleton."""

    general: int = 0  # general forms
    bound: int = 0  # programs that the form of others fits
    refined: int = 0  # programs that corrected it
    refused: str = ""  # why there is no general form


def check(programs: Sequence[Any], stages: bool = True) -> Outcome:
    """The first programs of each skeleton, two or a few more, give a general form. For
    each later program, the general form either binds and is exactly that program, or it
    rejects the sizes, and is exactly that program after the correction.
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
                    outcome.refused = str(error).split("\n")[0]
                    break
                values, reason = form.bind(program)
                assert values is not None, reason
            elif number >= seen:
                outcome.bound += 1
            same(form.instantiate(values, program.name), program, stages)
    return outcome


def _general_form(group: Sequence[Any], outcome: Outcome) -> tuple[Any, int]:
    """The general graph of the programs, and how many of them it was made from."""
    reason = ""
    for seen in range(2, min(len(group), 4) + 1):
        try:
            return bindings().GeneralGraph(group[:seen]), seen
        except RuntimeError as error:
            reason = str(error).split("\n")[0]
    outcome.refused = outcome.refused or reason
    return None, 0


def _by_skeleton(programs: Sequence[Any]) -> dict[str, list[Any]]:
    groups: dict[str, list[Any]] = {}
    for program in programs:
        groups.setdefault(bindings().skeleton(program), []).append(program)
    return groups


class Growth:
    """Other sizes in place of those of some tensors, equal ones in place of equal ones;
    larger ones, so that indices stay in range."""

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
        """An integer of an argument: a size, or a product of two."""
        if number in self.sizes:
            return self.sizes[number]
        for size, larger in self.sizes.items():
            other = self.sizes.get(number // size) if number % size == 0 else None
            if other:
                return larger * other
        return number

    def tensor(self, tensor: torch.Tensor) -> torch.Tensor:
        """The same elements, repeated."""
        result = tensor
        for dim, size in enumerate(tensor.shape):
            wanted = self.size(size)
            if wanted != size:
                repeated = torch.cat([result] * (wanted // size + 1), dim)
                result = repeated.narrow(dim, 0, wanted)
        return result.contiguous()
