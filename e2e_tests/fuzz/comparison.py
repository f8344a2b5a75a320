"""Runs a program on both devices and reports whether they agree. Isn't `assert_close`: how
much results of a random program may differ depends on how well its inputs determine them.
"""

from __future__ import annotations

import functools

import torch
import torch_ltc
from fuzz import table
from fuzz.exactness import is_small
from fuzz.program import Program, Values, parts
from torch.utils._python_dispatch import TorchDispatchMode

#: The rounding error allowed for any result, relative to its largest element.
RELATIVE = {
    torch.float64: 1e-9,
    torch.float32: 2e-5,
    torch.float16: 1e-2,
    torch.bfloat16: 6e-2,
}
#: How far results may differ, in units of the change of eager's results when each op's
#: result is perturbed by about an ulp.
STEADINESS = 40
#: Elementwise ops that add terms that may cancel: gelu computes 1 + erf(x / sqrt(2)).
CANCELLING = {"gelu", "gelu_", "gelu_backward"}
MOVES = 4


class MovedByAnUlp(TorchDispatchMode):
    """Perturbs each rounded result, which shows how well the inputs determine the program's
    results. With seed 0, results of terms that nearly cancel are set to zero instead.
    """

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.generator = torch.Generator().manual_seed(seed)
        self.cancels = seed == 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        results = func(*args, **(kwargs or {}))
        given = [t for t in args if isinstance(t, torch.Tensor)]
        several = isinstance(results, (tuple, list))
        for result in results if several else [results]:
            if not isinstance(result, torch.Tensor) or result.is_conj():
                continue
            if result.is_floating_point() or result.is_complex():
                self._move(func, list(map(parts, given)), parts(result))
        return results

    def _move(self, func, given: list[torch.Tensor], result: torch.Tensor) -> None:
        if torch._C._functorch.is_functorch_wrapped_tensor(result):
            return  # a tensor's values can't be read inside `vmap`
        made = not given and func.name() != "aten::linspace"
        repeats = any(n > 1 and s == 0 for n, s in zip(result.shape, result.stride()))
        if func.is_view or made or repeats or not result.numel():
            return
        name = func.name().removeprefix("aten::")
        # Sums of small whole numbers are exact, but a mean of three numbers isn't.
        exact = name not in _of("normalization")
        if exact and is_small(result) and all(is_small(t) for t in given):
            return
        scale = _finite(result).abs()
        if name in CANCELLING:
            scale = scale + 0.5
        elif name not in _of("elementwise"):
            # The rounding error of a sum depends on its largest terms, not on its result.
            terms = [t for t in given if t.is_floating_point() and t.numel()]
            most = max(float(_finite(t.detach()).abs().max()) for t in [result, *terms])
            scale = scale + most / 8
        ulp = torch.finfo(result.dtype).eps
        # One to two ulps, up or down: a smaller change could be lost in rounding.
        random = torch.rand(result.shape, generator=self.generator)
        random = (torch.where(random < 0.5, -1, 1) * (1 + random)).to(result.dtype)
        share = bool(((result >= 0) & (result <= 1)).all() and result.any())
        positive = bool((result >= 0).all())
        with torch.no_grad():
            if self.cancels:
                result.masked_fill_(result.abs() <= 4 * scale * ulp, 0)
            else:
                result.add_(scale * ulp * random)
            if positive:
                result.clamp_(min=0)  # stays nonnegative: a square root may follow
            if share:
                result.clamp_(0, 1)  # a probability stays in [0, 1]


def _finite(tensor: torch.Tensor) -> torch.Tensor:
    return torch.where(tensor.isfinite(), tensor, 0)


@functools.cache
def _of(family: str) -> set[str]:
    return {
        name
        for op in table.ops()
        if op.family == family
        for name in (op.name, op.in_place)
    }


def _moved(program: Program, number: int) -> Values | None:
    """Returns the values of a perturbed run, or None if eager rejects a perturbed value,
    such as a probability that became NaN."""
    with MovedByAnUlp(number):
        try:
            return program.run("cpu")
        except RuntimeError:
            return None


def difference(program: Program) -> str:
    """Returns "" if lazy agrees with eager, otherwise the difference."""
    rejected = None
    try:
        expected = program.run("cpu")
    except Exception as error:
        rejected = error
    try:
        with torch_ltc.config(compile_failure="raise"):
            got = program.run("lazy")
    except Exception as error:
        if type(error) is type(rejected):
            return ""
        return f"raises {type(error).__name__}: {str(error)[:1500]}"
    if rejected:
        return f"doesn't raise {type(rejected).__name__}: {str(rejected)[:1500]}"
    if len(got) != len(expected):
        return f"{len(got)} results instead of {len(expected)}"
    suspects = []
    for number, ((name, wanted), (_, result)) in enumerate(zip(expected, got)):
        if result.dtype != wanted.dtype or result.shape != wanted.shape:
            return (
                f"{name} is {result.dtype} {list(result.shape)} instead of "
                f"{wanted.dtype} {list(wanted.shape)}"
            )
        if not _beyond(result, wanted, _allowed(wanted)).any():
            continue
        if not wanted.is_floating_point():
            return f"{name} is {result.flatten().tolist()[:20]} instead of {wanted.flatten().tolist()[:20]}"  # fmt: skip
        suspects.append(number)
    if not suspects:
        return ""
    moved = [_moved(program, number) for number in range(MOVES)]
    for number in suspects:
        (name, wanted), (_, result) = expected[number], got[number]
        allowed = _allowed(wanted)
        for other in filter(None, moved):
            apart = (other[number][1].double() - wanted.double()).abs()
            apart = torch.where(apart.isfinite(), apart, torch.inf)
            same = other[number][1].isnan() & wanted.isnan()
            same |= other[number][1] == wanted
            allowed = allowed + STEADINESS * torch.where(same, 0, apart)
        beyond = _beyond(result, wanted, allowed)
        if beyond.any():
            place = int(beyond.flatten().nonzero()[0])
            return (
                f"{name} ({wanted.dtype}, {list(wanted.shape)}) is "
                f"{result.flatten()[place].item()!r} at element {place} instead of "
                f"{wanted.flatten()[place].item()!r}; {int(beyond.sum())} differ"
            )
    return ""


def _allowed(wanted: torch.Tensor) -> torch.Tensor:
    if not wanted.is_floating_point() or not wanted.numel():
        return torch.zeros(wanted.shape, dtype=torch.float64)
    values = wanted.double()
    finite = torch.where(values.isfinite(), values, 0).abs()
    # Terms below the smallest number of the dtype are rounded to zero or to that number.
    info = torch.finfo(wanted.dtype)
    smallest = 4 * info.tiny * info.eps
    relative = torch.full_like(values, RELATIVE[wanted.dtype])
    return relative * (finite.max() + 1e-6) + smallest


def _beyond(result, wanted, allowed) -> torch.Tensor:
    if not wanted.is_floating_point():
        return result != wanted
    result, wanted = result.double(), wanted.double()
    same = (result == wanted) | (result.isnan() & wanted.isnan())
    return ~same & ~((result - wanted).abs() <= allowed) & ~allowed.isinf()
