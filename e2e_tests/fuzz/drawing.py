"""Draws the program of a seed and runs each line on the CPU, so that the shapes are known
and no line is drawn that eager rejects."""

from __future__ import annotations

import math
import random
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import torch
from fuzz import arguments, exactness, table
from fuzz.program import Line, Program, parts, scope_of

POOL = 9
FLOATS = [torch.float32] * 6 + [torch.float64, torch.bfloat16, torch.float16]
COMPLEX = [torch.complex64, torch.complex64, torch.complex128]
OTHERS = [torch.int64, torch.int64, torch.int32, torch.bool, torch.uint8, torch.int16]


@dataclass(frozen=True)
class Sizes:
    """The tensors of a program."""

    dims: dict[int, int]  #: weights of the sizes of dimensions
    most_of_leaf: float  #: elements
    most_of_result: int
    factors: tuple[int, ...] = (1,)  #: of sizes that an op's rule draws


SMALL = Sizes({1: 3, 2: 4, 3: 6, 4: 4, 5: 2, 7: 1}, math.inf, 300)
#: Sizes for which kernels have several tiles and threads, and values have pooled memory.
LARGE = Sizes(
    {1: 2, 2: 2, 3: 2, 5: 2, 8: 3, 33: 3, 64: 4, 100: 3, 257: 3, 1000: 3, 4096: 2},
    400_000,
    1 << 20,
    (1, 4, 16),
)


class Rejected(Exception):
    """Raised if the drawn op and its arguments can't be a line of the program."""


def draw(seed: int, shortest: int = 5, longest: int = 60) -> Program:
    drawing = Drawing(seed)
    return drawing.program(drawing.random.randint(shortest, longest))


def draw_large(seed: int) -> Program:
    drawing = Drawing(seed, LARGE)
    return drawing.program(drawing.random.randint(3, 25))


def _restorer(tensor: torch.Tensor) -> Callable[[], bool]:
    """Returns a function that restores the current elements and geometry of `tensor`: an
    in-place op that was tried and rejected may have changed both (`as_strided_`, `t_`). The
    function returns False if the tensor has changed whether it requires gradients, which
    can't be undone."""
    required = tensor.requires_grad
    storage = tensor.untyped_storage()
    elements = storage.clone()
    geometry = tensor.shape, tensor.stride(), tensor.storage_offset()

    def restore() -> bool:
        storage.copy_(elements)
        with torch.no_grad():
            tensor.as_strided_(*geometry)
        return tensor.requires_grad == required

    return restore


def _geometry(tensor: torch.Tensor) -> tuple:
    return tensor.shape, tensor.stride(), tensor.storage_offset()


class Drawing:
    def __init__(self, seed: int, sizes: Sizes = SMALL) -> None:
        self.seed = seed
        self.sizes = sizes
        self.random = random.Random(seed)
        self.scope = scope_of("cpu", lambda name, tensor: None)
        self.lines: list[Line] = []
        self.values: dict[str, torch.Tensor] = {}
        self.count = 0
        self.exactness = exactness.Exactness()
        self.viewed: dict[int, torch.UntypedStorage] = {}
        self.strided: dict[int, torch.UntypedStorage] = {}
        #: Storages of tensors that require gradients here but won't in the program.
        self.unlike: dict[int, torch.UntypedStorage] = {}
        self.rejected: dict[str, str] = {}
        self.wants_gradients = self.random.random() < 0.3
        self.leaves: list[str] = []

    def program(self, length: int) -> Program:
        torch.manual_seed(self.seed)
        for _ in range(self.random.randint(1, 3)):
            self.leaf(self.shape(), self.dtype())
        drawn = 0
        while drawn < length:
            drawn += self._attempt()
            self._between()
        self._gradients()
        # A separate generator draws the length of a step, so that the draw has no effect
        # on the program of a seed.
        longest = random.Random(f"step {self.seed}").choice([0, 0, 2, 3, 5, 8, 13])
        return Program(self.seed, self._accepted(), longest)

    def _accepted(self) -> list[Line]:
        """Returns the lines before the first one that eager rejects when the whole program
        runs. The whole program may run differently: while lines were drawn, autograd may
        have recorded writes of rejected ops, although these were undone.
        """
        scope = scope_of("cpu", lambda name, tensor: None)
        torch.manual_seed(self.seed)
        for number, line in enumerate(self.lines):
            try:
                exec(line.text, scope)
            except Exception:
                return self.lines[:number]
        return self.lines

    # Used by the rules for arguments.

    def shape(self, least: int = 0, most: int = 4) -> list[int]:
        rank = self.random.choices(range(5), [1, 4, 6, 4, 2])[0]
        rank = min(max(rank, least), most)
        dims, weights = list(self.sizes.dims), list(self.sizes.dims.values())
        while True:
            shape = [self.random.choices(dims, weights)[0] for _ in range(rank)]
            if math.prod(shape) <= self.sizes.most_of_leaf:
                break
        if rank and self.random.random() < 0.02:
            shape[self.random.randrange(rank)] = 0
        return shape

    def length(self, least: int, most: int) -> int:
        """Returns a size for a dimension of an operand that fits its op."""
        length = self.random.randint(least, most)
        factors = self.sizes.factors
        # A single factor isn't drawn, so that the programs of small sizes stay the same.
        return length * (self.random.choice(factors) if len(factors) > 1 else 1)

    def dtype(self) -> torch.dtype:
        kind = self.random.random()
        if kind < 0.05:
            return self.random.choice(COMPLEX)
        return self.random.choice(FLOATS if kind < 0.7 else OTHERS)

    def pick(self, wanted=lambda tensor: True) -> str | None:
        """Returns a live value that satisfies `wanted`; later values are more likely."""
        names = [name for name, tensor in self.values.items() if wanted(tensor)]
        if not names:
            return None
        return self.random.choices(names, range(1, len(names) + 1))[0]

    def leaf(self, shape, dtype: torch.dtype, maker: str = "") -> str:
        if not maker:
            noisy = dtype.is_floating_point and self.random.random() < 0.3
            maker = "noise" if noisy else "grid"
        seed = self.random.randrange(1000)
        name = self.new_name()
        text = f"{name} = {maker}({seed}, {list(shape)}, {dtype})"
        requires = (
            self.wants_gradients
            and maker != "order"
            and dtype in (torch.float32, torch.float64)
            and self.random.random() < 0.6
        )
        if requires:
            text += ".requires_grad_()"
            self.leaves.append(name)
        self.add(Line(text, set(), [name]))
        return name

    def indices(self, limit: int, shape) -> str:
        name = self.new_name()
        seed = self.random.randrange(1000)
        self.add(Line(f"{name} = below({limit}, {seed}, {list(shape)})", set(), [name]))
        return name

    def new_name(self) -> str:
        self.count += 1
        return f"v{self.count - 1}"

    def add(self, line: Line) -> None:
        exec(line.text, self.scope)
        self.lines.append(line)
        for name in line.writes:
            value = self.scope[name]
            if isinstance(value, torch.Tensor):
                self.values[name] = value

    # The parts of a program.

    def _attempt(self) -> int:
        op = self._op()
        kept = len(self.lines), dict(self.values), self.count, list(self.leaves)
        state = torch.get_rng_state()
        restore = None
        try:
            drawn = arguments.draw(op, self)
            in_place = bool(op.in_place) and (
                op.name == op.in_place or self.random.random() < 0.25
            )
            line, restore = self._line(op, drawn, in_place)
            self._accept(op, line, drawn, in_place)
            return 1
        except (Rejected, RuntimeError, IndexError, ValueError, TypeError, NotImplementedError) as reason:  # fmt: skip
            self.rejected[op.name] = str(reason).split("\n")[0]
            if restore and not restore():
                self._keep_from_gradients(self.scope[drawn.names[0]])
            torch.set_rng_state(state)
            lines, self.values, self.count, self.leaves = kept
            del self.lines[lines:]
            return 0

    def _op(self) -> table.Op:
        ops = table.ops()
        if self.random.random() < 0.2:
            ops = [op for op in ops if op.view]
        return self.random.choice(ops)

    def _line(self, op: table.Op, drawn: arguments.Drawn, in_place: bool):
        name = op.in_place if in_place else op.name
        base, _, overload = name.partition(".")
        call = f"aten.{base}.{overload or 'default'}({', '.join(drawn.texts)})"
        reads = set(drawn.names)
        if not in_place:
            self._ask(op, drawn, None)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                results = eval(call, self.scope)
            several = isinstance(results, (tuple, list))
            names = [self.new_name() for _ in results] if several else [self.new_name()]
            if not names:
                raise Rejected("no results")
            for name, result in zip(names, results if several else [results]):
                self.scope[name] = result
            comma = "," if several and len(names) == 1 else ""
            text = f"{', '.join(names)}{comma} = {call}"
            return Line(text, reads, names, op.name), None
        target = self.scope[drawn.names[0]]
        self._ask(op, drawn, target)
        if op.family == "linear":
            result = eval(call.replace(f".{base}.", f".{op.base}."), self.scope)
            if result.shape != target.shape:
                raise Rejected("eager resizes it")
        restore = _restorer(target)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                eval(call, self.scope)
            except Exception:
                if not restore():
                    self._keep_from_gradients(target)
                raise
        return Line(call, reads, [], op.name), restore

    def _ask(self, op: table.Op, drawn: arguments.Drawn, target) -> None:
        tensors = [self.scope[name] for name in drawn.names]
        if not self.exactness.allows(op, tensors):
            raise Rejected("discontinuous in a rounded number")
        if op.family == "random" and not all(t.is_contiguous() for t in tensors):
            raise Rejected("eager draws in the order of memory")
        if op.family == "random" and not all(t.numel() for t in tensors):
            raise Rejected("eager doesn't look at the dtype")
        if op.base == "copy" and exactness.overlaps_itself(tensors[0]):
            raise Rejected("eager's result overlaps itself")
        if op.family == "linear" and not all(t.numel() for t in tensors):
            raise Rejected("eager's addmv of an empty matrix has self's shape")
        if target is None:
            return
        if op.view and target.grad_fn is not None and not target._is_view():
            raise Rejected("rejected where views, or the backward pass, share it")
        if self._behind_as_strided(drawn.names[0]):
            raise Rejected("functionalization (torch 2.13) rejects it")
        if exactness.overlaps_itself(target):
            raise Rejected("writes an element twice")
        shared = [
            t for t in tensors[1:] if exactness.storage(t) == exactness.storage(target)
        ]
        if op.family != "elementwise":
            same = []
        else:  # an operand may be the written tensor itself
            same = [t for t in shared if _geometry(t) == _geometry(target)]
        if len(same) != len(shared):
            raise Rejected("reads what it writes")

    def _behind_as_strided(self, name: str) -> bool:
        """Whether an `as_strided` view of a view has the value's storage. No such value is
        written, because writes to one view of the chain aren't visible through the others
        (torch 2.13 documents this)."""
        return exactness.storage(self.values[name]) in self.strided

    def _accept(self, op, line: Line, drawn: arguments.Drawn, in_place: bool) -> None:
        tensors = [self.scope[name] for name in drawn.names]
        results = [self.scope[name] for name in line.writes]
        results = [r for r in results if isinstance(r, torch.Tensor)]
        written = results or [tensors[0]]
        for result in written:
            self._ask_result(result)
        if not self.exactness.allows_results(tensors, written):
            raise Rejected("a whole number of a rounded number")
        self.lines.append(line)
        for name in line.writes:
            if isinstance(self.scope[name], torch.Tensor):
                self.values[name] = self.scope[name]
        self.exactness.note(op, tensors, written, in_place)
        if op.view:
            storage = written[0].untyped_storage()
            if op.base == "as_strided" and storage._cdata in self.viewed:
                self.strided[storage._cdata] = storage
            self.viewed[storage._cdata] = storage

    def _keep_from_gradients(self, tensor: torch.Tensor) -> None:
        storage = tensor.untyped_storage()
        self.unlike[storage._cdata] = storage

    def _ask_result(self, result: torch.Tensor) -> None:
        if result.numel() > self.sizes.most_of_result:
            raise Rejected("large")
        result = parts(result.detach())
        if not result.is_floating_point() or not result.numel():
            return
        values = result.detach().double()
        finite = values.isfinite()
        if not finite.all() and self.random.random() < 0.9:
            raise Rejected("not finite")
        if finite.any() and values[finite].abs().max() > 1e4:
            raise Rejected("large numbers")

    def _between(self) -> None:
        chance = self.random.random()
        if chance < 0.04:
            self.lines.append(Line("mark_step()"))
        elif chance < 0.06 and self.values:
            name = self.pick()
            self.lines.append(Line(f"check({name!r}, {name})", {name}))
        while len(self.values) > POOL or (
            len(self.values) > 3 and self.random.random() < 0.15
        ):
            name = self.random.choice(list(self.values)[: POOL // 2])
            if name in self.leaves:
                # Keeps a leaf while there is room: its gradient is computed at the end.
                if len(self.values) <= POOL:
                    break
                self.leaves.remove(name)
            del self.values[name], self.scope[name]
            self.lines.append(Line(f"del {name}", {name}))

    def _gradients(self) -> None:
        leaves = [name for name in self.leaves if name in self.values]
        outputs = [n for n in self.values if n not in leaves and self._has_gradient(n)]
        if not leaves or not outputs:
            return
        terms = " + ".join(map(self._term, outputs))
        names = [self.new_name() for _ in leaves]
        line = Line(
            f"{', '.join(names)}, = torch.autograd.grad({terms}, "
            f"[{', '.join(leaves)}], allow_unused=True)",
            {*leaves, *outputs},
            names,
        )
        try:
            exec(line.text, self.scope)
        except (RuntimeError, NotImplementedError):
            return  # a tensor was written after autograd had saved it
        self.lines.append(line)

    def _term(self, name: str) -> str:
        if self.values[name].is_complex():
            return f"({name}.real.double() + 2 * {name}.imag.double()).sum()"
        return f"{name}.double().sum()"

    def _has_gradient(self, name: str) -> bool:
        if exactness.storage(self.values[name]) in self.unlike:
            return False
        try:
            return self.values[name].grad_fn is not None
        except RuntimeError:
            # One op created this view together with others, and the view was written later.
            return False
