"""A program: lines of Python over tensors `v0`, `v1`, ... on `device`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
import torch_ltc
from fuzz.loop_modules import loop_scope

Values = list[tuple[str, torch.Tensor]]


def parts(tensor: torch.Tensor) -> torch.Tensor:
    """Returns the real and the imaginary parts of complex numbers along an additional last
    dim, and other tensors themselves."""
    if not tensor.is_complex():
        return tensor
    return torch.view_as_real(tensor.resolve_conj())


def _of_parts(make, seed: int, shape: list[int], dtype: torch.dtype, device: str):
    return torch.view_as_complex(make(seed, [*shape, 2], dtype.to_real(), device))


def grid(seed: int, shape: list[int], dtype: torch.dtype, device: str) -> torch.Tensor:
    """Returns random multiples of 1/4 in [-2, 2], integers in [-3, 3], or bools. Sums and
    products of a few such numbers are exact in any order."""
    generator = torch.Generator().manual_seed(seed)
    if dtype == torch.bool:
        return (torch.rand(shape, generator=generator) < 0.5).to(device)
    if dtype.is_complex:
        return _of_parts(grid, seed, shape, dtype, device)
    if dtype.is_floating_point:
        whole = torch.randint(-8, 9, shape, generator=generator)
        return (whole / 4).to(dtype).to(device)
    low = 0 if dtype == torch.uint8 else -3
    return torch.randint(low, 4, shape, generator=generator).to(dtype).to(device)


def noise(seed: int, shape: list[int], dtype: torch.dtype, device: str) -> torch.Tensor:
    if dtype.is_complex:
        return _of_parts(noise, seed, shape, dtype, device)
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator).to(dtype).to(device)


def order(seed: int, shape: list[int], dtype: torch.dtype, device: str) -> torch.Tensor:
    """Returns distinct whole numbers around 0, in random order."""
    generator = torch.Generator().manual_seed(seed)
    count = torch.Size(shape).numel()
    whole = torch.randperm(count, generator=generator) - count // 2
    return whole.reshape(shape).to(dtype).to(device)


def below(limit: int, seed: int, shape: list[int], device: str) -> torch.Tensor:
    """Returns random int64 numbers in [0, limit)."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(max(limit, 1), shape, generator=generator).to(device)


@dataclass
class Line:
    text: str
    reads: set[str] = field(default_factory=set)
    writes: list[str] = field(default_factory=list)
    op: str = ""


@dataclass
class Program:
    seed: int
    lines: list[Line]
    #: Number of ops after which a step ends, even in the middle of a backward pass; 0: only
    #: lines of the program end steps.
    longest_step: int = 0
    #: Value of option `tier`; "" leaves it unchanged.
    tier: str = ""

    def text(self) -> str:
        return "\n".join(line.text for line in self.lines)

    def run(self, device: str) -> Values:
        """Returns the values that the program checked, followed by those of its variables
        at the end; complex numbers as `parts`."""
        seen: Values = []
        scope = scope_of(
            device, lambda n, t: seen.append((n, parts(t.detach().cpu()).clone()))
        ) | loop_scope(seen)
        torch.manual_seed(self.seed)
        longest = self.longest_step or torch_ltc.config.max_trace_ops
        tier = self.tier or torch_ltc.config.tier
        with torch_ltc.config(max_trace_ops=longest, tier=tier):
            exec(compile(self.text(), f"<program {self.seed}>", "exec"), scope)
            torch_ltc.mark_step()
        left = [(n, t) for n, t in scope.items() if isinstance(t, torch.Tensor)]
        return seen + [(n, parts(t.detach().cpu())) for n, t in left]


def scope_of(device: str, check: Callable[[str, torch.Tensor], None]) -> dict[str, Any]:
    def on_device(maker: Callable[..., torch.Tensor]):
        return lambda *arguments: maker(*arguments, device)

    return {
        "torch": torch,
        "aten": torch.ops.aten,
        "device": device,
        "mark_step": torch_ltc.mark_step,
        "check": check,
        **{maker.__name__: on_device(maker) for maker in (grid, noise, order, below)},
    }
