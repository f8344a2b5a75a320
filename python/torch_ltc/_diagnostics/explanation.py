"""`torch_ltc.explain(step)`: reports whether a loop is healthy, and what to change."""

from __future__ import annotations

import contextlib
import gc
import html
import re
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from types import CellType, FunctionType
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils.weak import WeakTensorKeyDictionary

from torch_ltc._backend import bindings
from torch_ltc._diagnostics.report import bytes_text, render, seconds_text, table
from torch_ltc.config import config
from torch_ltc.debug import memory
from torch_ltc.step import mark_step, wait_device_ops

#: The number of calls before the measured ones: they compile programs and create the
#: optimizer's state.
WARMUP = 3

ADVICE = {
    "device": "move the model, before its optimizer is made, and the inputs with "
    ".to('lazy')",
    "recompile": "make the changing value a tensor, or pad it to a few sizes",
    "sync": "read values after the end of the step, in one place, or in "
    "torch_ltc.add_step_closure",
    "fallback": "replace the op, or run it once outside the loop",
    "donation": "drop the old value before the end of the step: del, .detach().cpu(), "
    "or keep a number instead of a tensor",
    "memory": "keep numbers instead of tensors (loss.item() after the step), and "
    "clear lists of tensors",
    "slow": "",
}


@dataclass
class Finding:
    """A problem of the step, or, with `kind` "slow", the largest part of its time. Other
    values of `kind`: device, recompile, sync, fallback, donation, memory."""

    kind: str
    location: str  # "train.py:31", "" if unknown
    sentence: str
    count: int = 1
    seconds: float = 0.0

    @property
    def advice(self) -> str:
        return ADVICE[self.kind]


@dataclass
class Explanation:
    """The findings of `explain`; `print` it to see the page."""

    steps: int
    findings: list[Finding]
    #: Seconds of a call: the median of the whole call ("step"), and the mean of each part
    #: ("kernels", "compiling", "ending the step"). "Python and tracing" is the rest.
    seconds: dict[str, float]
    #: Bytes of live tensors by the line that created them, largest first.
    memory: dict[str, int] = field(default_factory=dict)
    #: `torch_ltc.debug.memory` of the program with the most ops.
    peak: dict[str, Any] = field(default_factory=dict)
    #: The name of the largest part of the time: "kernels", "compiling", "ending the step"
    #: or "Python and tracing".
    bound_by: str = ""

    @property
    def healthy(self) -> bool:
        return not [f for f in self.findings if f.kind != "slow"]

    def data(self) -> dict[str, Any]:
        """Returns the findings and measurements as plain data."""
        return asdict(self) | {"healthy": self.healthy}

    def __str__(self) -> str:
        troubles = sum(finding.kind != "slow" for finding in self.findings)
        verdict = f"{troubles} finding{'s'[: troubles != 1]}" if troubles else "healthy"
        parts: list[Any] = [
            f"{self.steps} steps after {WARMUP} warm-up steps: {verdict}."
        ]
        rows = [
            [f.kind, f.location, f.sentence + (f" -> {f.advice}" if f.advice else "")]
            for f in self.findings
        ]
        if rows:
            parts.append(table("Findings", ["what", "line", "reason, remedy"], rows))
        times = [[name, seconds_text(value)] for name, value in self.seconds.items()]
        title = "A step's time (median), and the mean of its parts"
        parts.append(table(title, ["where", "time"], times))
        lines = [[line, bytes_text(size)] for line, size in self.memory.items()]
        if lines:
            parts.append(table("Live tensors by line", ["line", "bytes"], lines[:8]))
        if self.peak:
            title = (
                f"At the peak of a step: {bytes_text(self.peak['peak_bytes'])} "
                f"in addition to {bytes_text(self.peak['input_bytes'])} of inputs"
            )
            top = list(self.peak["lines"].items())[:8]
            rows = [[line, bytes_text(size)] for line, size in top]
            parts.append(table(title, ["made by line", "bytes"], rows))
        return render(*parts)

    def _repr_html_(self) -> str:
        """Returns what a notebook shows."""
        return f"<pre>{html.escape(str(self))}</pre>"


def explain(
    step: Callable[..., Any], *args: Any, steps: int = 5, **kwargs: Any
) -> Explanation:
    """Calls `step(*args, **kwargs)` several times and reports whether it is healthy as
    the body of a loop: repeated compilations, implicit syncs, ops that run eagerly, memory
    that isn't reused or grows, and where the time goes. A step ends after each call, even
    if the function doesn't end one. The effects of the calls (training, for example)
    persist. Raises TypeError if `step` isn't callable, ValueError if `steps` is less than
    1."""
    if not callable(step):
        raise TypeError(
            f"torch_ltc.explain calls a function, but got an object of class "
            f"{type(step).__name__}; "
            "move the body of the loop into a function."
        )
    if steps < 1:
        raise ValueError(f"torch_ltc.explain needs at least one step, not {steps}.")
    wait_device_ops()
    watch = _Watch()
    # Compiles new programs at once, to reach the loop's steady state. Tier "auto" would
    # first interpret them.
    tier = "compile" if config.tier == "auto" else config.tier
    with config(source_info=True, tier=tier):
        for _ in range(WARMUP):
            _call(step, args, kwargs)
        watch.begin()
        for _ in range(steps):
            started = time.perf_counter()
            _call(step, args, kwargs)
            watch.note_call(time.perf_counter() - started)
        page = watch.explanation(steps)
        # An additional call finds the line of each tensor that Python receives, including
        # tensors that aren't computed.
        with _MakerLines() as makers:
            _call(step, args, kwargs)
        page.findings[-1:-1] = watch.undonated(makers)
        return page


def _call(step: Callable[..., Any], args: Any, kwargs: Any) -> None:
    result = step(*args, **kwargs)  # keeps the results alive, so that they are computed
    mark_step()
    wait_device_ops()
    del result


class _Watch:
    """Measurements between `begin` and `explanation`."""

    def __init__(self) -> None:
        self._walls: list[float] = []
        self._live: list[Counter[str]] = []
        self._old: set[int] = set()  # identities of the tensors before the first call
        self._keys: dict[str, int] = {}  # `data_key` by name, after the last call
        self._updated: set[str] = set()  # names of tensors that the last call wrote

    def begin(self) -> None:
        backend = bindings()
        self._step = max((row["step"] for row in backend.step_log()), default=0)
        self._syncs = _calls(backend.sync_log())
        self._fallbacks = _calls(backend.fallback_log())
        self._live = [_live_tensors()]
        self._old = {id(tensor) for tensor in lazy_tensors()}
        self._keys = _named_data()

    def note_call(self, wall: float) -> None:
        self._walls.append(wall)
        self._live.append(_live_tensors())
        keys = _named_data()
        self._updated = {n for n, k in keys.items() if self._keys.get(n, k) != k}
        self._keys = keys

    def explanation(self, steps: int) -> Explanation:
        seconds = self._seconds(steps)
        bound_by, slow = _slow(seconds)
        findings = [
            *self._elsewhere(),
            *self._recompiles(),
            *self._syncs_and_fallbacks(),
            *self._growth(),
            slow,
        ]
        return Explanation(
            steps, findings, seconds, _live_bytes(), self._peak(), bound_by
        )

    def _elsewhere(self) -> list[Finding]:
        if any(row["step"] > self._step for row in bindings().step_log()):
            return []
        return [Finding("device", "", "nothing was computed on device lazy")]

    def _peak(self) -> dict[str, Any]:
        """Returns `debug.memory` of the program with the most ops among those that ran."""
        sizes: dict[str, int] = {}
        for row in bindings().step_log():
            if row["step"] > self._step:
                sizes[row["program"]] = row["ops"]
        for program in sorted(sizes, key=lambda name: -sizes[name]):
            # Try the next program if this one is no longer stored or wasn't compiled.
            with contextlib.suppress(RuntimeError):
                return memory(program)
        return {}

    def _compiles(self) -> list[dict[str, Any]]:
        return [e for e in bindings().compile_log() if e["step"] > self._step]

    def _recompiles(self) -> list[Finding]:
        found: dict[str, Finding] = {}
        for entry in self._compiles():
            line = re.search(r"# (\S+:\d+)", entry["reason"])
            location = line[1] if line else entry["location"]
            finding = found.setdefault(
                location,
                Finding("recompile", location, f"a new program: {entry['reason']}", 0),
            )
            finding.count += 1
            finding.seconds += entry["seconds"]
        return list(found.values())

    def _syncs_and_fallbacks(self) -> list[Finding]:
        backend = bindings()
        found = []
        logs = [
            ("fallback", backend.fallback_log(), self._fallbacks),
            ("sync", backend.sync_log(), self._syncs),
        ]
        for kind, rows, earlier in logs:
            for row in rows:
                calls = row["calls"] - earlier[_key(row)]
                if calls <= 0:
                    continue
                what = (
                    f"{row['op']} runs eagerly: {row['reason']}"
                    if kind == "fallback"
                    else f"{row['op']} needs a value in the middle of a step"
                )
                share = row["seconds"] * calls / row["calls"]
                sentence = f"{what} ({calls} times, {seconds_text(share)})"
                found.append(Finding(kind, row["location"], sentence, calls, share))
        return found

    def undonated(self, makers: _MakerLines) -> list[Finding]:
        """Returns findings for named tensors that the last call replaced without reusing
        their memory, because something else holds the old value."""
        programs = {row["program"] for row in bindings().step_log()[-2:]}
        found: dict[str, Finding] = {}  # by tensor, because programs may share tensors
        for program in programs:
            with contextlib.suppress(RuntimeError):  # no longer stored
                for row in bindings().program_tensors(program):
                    if row["role"] != "input" or row["donated"]:
                        continue
                    if row["name"] in self._updated and row["name"] not in found:
                        line, clause = _holder(row["name"], row["sizes"], makers)
                        sentence = (
                            f"'{row['name']}' isn't overwritten in place: something "
                            f"else holds its old value{clause}"
                        )
                        found[row["name"]] = Finding("donation", line, sentence)
        return list(found.values())

    def _growth(self) -> list[Finding]:
        """Returns a finding for each line whose live tensors increase with every call."""
        found = []
        for line in self._live[-1]:
            counts = [live[line] for live in self._live]
            grows = [b - a for a, b in pairwise(counts)]
            if len(grows) > 1 and min(grows) > 0:
                count = (
                    "1 more tensor" if grows[-1] == 1 else f"{grows[-1]} more tensors"
                )
                sentence = (
                    f"each step leaves {count} alive ({counts[-1]} by now)"
                    f"{self._owner(line)}"
                )
                found.append(Finding("memory", line, sentence, counts[-1]))
        return found

    def _owner(self, line: str) -> str:
        """Returns a clause that names the container of most of the tensors that were
        created at `line` since the first call, or ""."""
        origin = bindings().tensor_origin
        new = [
            tensor
            for tensor in lazy_tensors()
            if origin(tensor) == line and id(tensor) not in self._old
        ]
        containers = Counter(filter(None, map(_container, new)))
        return f", held by {containers.most_common(1)[0][0]}" if containers else ""

    def _seconds(self, steps: int) -> dict[str, float]:
        rows = [r for r in bindings().step_log() if r["step"] > self._step]
        execute = sum(max(0.0, r["execute_seconds"]) for r in rows) / steps
        schedule = sum(r["schedule_seconds"] for r in rows) / steps
        compile_time = sum(e["seconds"] for e in self._compiles()) / steps
        wall = sorted(self._walls)[len(self._walls) // 2]
        return {
            "step": wall,
            "kernels": execute,
            "compiling": compile_time,
            "ending the step": max(0.0, schedule - compile_time),
            "Python and tracing": max(0.0, wall - execute - schedule),
        }


def _slow(seconds: dict[str, float]) -> tuple[str, Finding]:
    """Returns the name of the part that takes the most time, and a finding about it."""
    parts = {name: value for name, value in seconds.items() if name != "step"}
    name, value = max(parts.items(), key=lambda item: item[1])
    share = value / max(sum(parts.values()), 1e-12)
    means = {
        "kernels": "kernel-bound: torch_ltc.debug.commands shows the kernels",
        "compiling": "compile-bound: see the findings about new programs",
        "ending the step": "bound by the end of the step: many small tensors are alive",
        "Python and tracing": "tracing-bound: fewer, larger ops or batches help",
    }
    sentence = f"{share:.0%} of the time: {means[name]}"
    return name, Finding("slow", "", sentence, 1, value)


def _key(row: dict[str, Any]) -> tuple[str, str, str]:
    return row["op"], row["location"], row.get("reason", "")


def _calls(rows: list[dict[str, Any]]) -> Counter[tuple[str, str, str]]:
    return Counter({_key(row): row["calls"] for row in rows})


class _MakerLines(TorchFunctionMode):
    """Records the lines of the calls that returned lazy tensors to Python."""

    def __init__(self) -> None:
        super().__init__()
        self._lines = WeakTensorKeyDictionary()

    def __torch_function__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        if isinstance(result, torch.Tensor) and result.device.type == "lazy":
            self._lines[result] = bindings().current_line()
        return result

    def line_of(self, tensor: torch.Tensor) -> str:
        return self._lines.get(tensor, "")


# -- live tensors of Python ----------------------------------------------------


def lazy_tensors() -> list[torch.Tensor]:
    """Returns all lazy tensors that are alive as Python objects."""
    gc.collect()
    return [
        o
        for o in gc.get_objects()
        if issubclass(type(o), torch.Tensor) and o.device.type == "lazy"
    ]


def _live_tensors() -> Counter[str]:
    origin = bindings().tensor_origin
    return Counter(line for t in lazy_tensors() if (line := origin(t)))


def _live_bytes() -> dict[str, int]:
    total: Counter[str] = Counter()
    for tensor in lazy_tensors():
        total[bindings().tensor_origin(tensor) or "unknown"] += tensor.nbytes
    return dict(total.most_common())


def _named_data() -> dict[str, int]:
    backend = bindings()
    return {
        name: backend.data_key(tensor)
        for tensor in lazy_tensors()
        if (name := backend.tensor_name(tensor))
    }


def _closure_variable(cell: CellType) -> str:
    """Returns the name of a cell's variable in a function whose closure contains the cell,
    or ""."""
    for closure in gc.get_referrers(cell):
        for function in gc.get_referrers(closure):
            if isinstance(function, FunctionType) and function.__closure__ is closure:
                places = [held is cell for held in closure]
                return function.__code__.co_freevars[places.index(True)]
    return ""


def _variable(value: Any) -> str:
    """Returns the name of a variable or attribute that refers to `value`, or ""."""
    for scope in gc.get_referrers(value):
        if isinstance(scope, CellType) and (name := _closure_variable(scope)):
            return name
        names = scope if isinstance(scope, dict) else getattr(scope, "__dict__", {})
        for name, held in list(names.items()):
            if held is value and isinstance(name, str):
                return name
    return ""


def _container(tensor: torch.Tensor) -> str:
    """Returns a phrase for a list or dict that holds the tensor and to which a variable
    refers, or ""."""
    for holder in gc.get_referrers(tensor):
        if isinstance(holder, (list, dict)) and (name := _variable(holder)):
            kind = type(holder).__name__
            return f"the {kind} '{name}' of {len(holder)} elements"
    return ""


def _holder(name: str, sizes: list[int], makers: _MakerLines) -> tuple[str, str]:
    """Returns the line that created the tensor that may hold a parameter's old value, and a
    clause that names its variable or container; "" for both if none is found."""
    backend = bindings()
    candidates = [
        tensor
        for tensor in lazy_tensors()
        if list(tensor.shape) == sizes
        and backend.tensor_name(tensor) != name
        and not isinstance(tensor, torch.nn.Parameter)
    ]

    def describe(tensor: torch.Tensor, place: str) -> tuple[str, str]:
        line = makers.line_of(tensor) or backend.tensor_origin(tensor)
        return line, f"; {place} may hold it"

    for tensor in candidates:
        variable = _variable(tensor)
        if variable and variable not in ("grad", "tensor", "_grad"):
            return describe(tensor, f"'{variable}'")
    for tensor in candidates:
        if container := _container(tensor):
            return describe(tensor, container)
    return "", ""
