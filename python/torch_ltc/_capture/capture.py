"""`torch_ltc.capture`: replays steps without tracing them.

The first calls run the function and are recorded. If two consecutive calls produce the
same program, later calls check what the program depends on - shapes, dtypes, the Python
objects that the function's code reads, hyperparameters - and run the program. In these
calls, neither the model's Python code nor autograd nor the tracer runs.
"""

from __future__ import annotations

import copy
import functools
import inspect
import logging
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import torch

from torch_ltc import step as _step
from torch_ltc._backend import bindings
from torch_ltc._capture.budget import LONGEST_PAUSE, Budget
from torch_ltc._capture.code import compares_types
from torch_ltc._capture.constants import describe_constants
from torch_ltc._capture.containers import (
    NotCapturable,
    check_leaves,
    flatten,
    leaves,
    rebuild,
)
from torch_ltc._capture.names import Names
from torch_ltc._capture.numbers import Numbers
from torch_ltc._capture.objects import Unknown
from torch_ltc._capture.recorded_call import (
    RecordedCall,
    ReplayedCall,
    check_arguments,
    check_recording,
    marks,
)
from torch_ltc._capture.sizes import Changed, SizeHistory, VaryingSizes, sizes_of
from torch_ltc._capture.state import State
from torch_ltc._capture.traced_sizes import SizeTrace, tracing_sizes, without_traces
from torch_ltc._capture.watch import Watch
from torch_ltc._diagnostics.messages import logger as _log
from torch_ltc.metrics import metrics as _metrics

# Types of non-tensor arguments that are compared by identity.
_OBJECTS = (torch.nn.Module, torch.optim.Optimizer, type)
# After this many failed attempts to capture a function for some non-tensor arguments, calls
# with these arguments are always traced.
_ATTEMPTS = 8
_ENTRIES = 64
# What `CapturedStep.replay` returns if it has no program for the sizes.
_OTHER_SIZES = "the sizes of the arguments changed"
_SELDOM_REPEATED = (
    f"its calls seldom repeat a program, so only two of up to {LONGEST_PAUSE} calls are "
    "recorded; call it without capture, or pad its tensors to a few sizes"
)


class CaptureMismatch(RuntimeError):
    """Raised with `check_every` if a traced step differs from the captured program."""


class _Entry:
    """The state for all calls with equal non-tensor arguments."""

    def __init__(self, shape: Any) -> None:
        self.roots = [
            (type(leaf).__name__, leaf)
            for leaf in leaves(shape)
            if isinstance(leaf, _OBJECTS)
        ]
        #: The names in the code that the recorded calls have run.
        self.names: Names | None = None
        self.numbers: Numbers | None = None
        self.step: Any = None
        self.state: State | None = None
        self.returned: Any = None
        #: The skeleton of the program, its sizes if there is a program for all sizes, and
        #: what is known about all recorded sizes.
        self.skeleton = ""
        self.varying: VaryingSizes | None = None
        self.history = SizeHistory()
        self.attempts = 0
        self.calls = 0

    def forget(self) -> None:
        self.step = self.state = None


class Captured:
    """A captured step function; call it like the function.

    `replays` and `traces` count the calls that were replayed and traced; `fallbacks` counts
    the calls that weren't captured or replayed, by reason.
    """

    def __init__(self, function: Callable[..., Any], check_every: int) -> None:
        functools.update_wrapper(self, function, updated=())
        self._function = function
        self._lock = threading.RLock()
        self._check_every = check_every
        self._entries: dict[Any, _Entry] = {}
        # The trace of the last call, if it was recorded.
        self._last: RecordedCall | ReplayedCall | None = None
        self._budget = Budget()
        self.replays = 0
        self.traces = 0
        self.fallbacks: Counter[str] = Counter()

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """Returns the captured step of the method for `instance`; each object has a
        separate step. Raises TypeError if the object has no `__dict__`."""
        if instance is None:
            return self
        key = f"_captured_{id(self)}"
        try:
            return instance.__dict__[key]
        except KeyError:
            function = self._function.__get__(instance, owner)
            bound = Captured(function, self._check_every)
            if isinstance(instance, type):  # below @classmethod
                setattr(instance, key, bound)
            else:
                instance.__dict__[key] = bound
            return bound
        except AttributeError:
            raise TypeError(
                f"torch_ltc.capture can't store a step for an object of class "
                f"{type(instance).__name__}, which has no __dict__; capture a "
                "function instead of the method."
            ) from None

    def __deepcopy__(self, memo: dict[int, Any]) -> Captured:
        return Captured(copy.deepcopy(self._function, memo), self._check_every)

    def __reduce__(self) -> Any:
        return Captured, (self._function, self._check_every)

    @property
    def constants(self) -> list[str]:
        """The constant numbers of the captured programs, with their origins. If an origin
        changes, the function is recorded again."""
        lines = []
        for entry in self._entries.values():
            if entry.step is not None:
                lines += describe_constants(entry.numbers, entry.state.objects)
        return lines

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        with self._lock:
            return self._call(arguments, named)

    def _call(self, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        tensors: list[torch.Tensor] = []
        shape = flatten((arguments, named) if named else arguments, tensors)
        try:
            entry = self._entries.get(shape)
            if entry is None:
                entry = self._new_entry(shape)
        except (TypeError, NotCapturable) as problem:
            self._note_fallback(str(problem), logging.WARNING)
            return self._uncaptured(arguments, named)
        entry.calls += 1
        backend = bindings()
        if backend.pending_ops():
            _step.mark_step()
        if entry.step is not None:
            if problem := entry.state.changed():
                entry.history = SizeHistory()
            elif entry.varying is not None:
                problem = self._select_sizes(entry, entry.varying, tensors)
            is_check_due = self._check_every and entry.calls % self._check_every == 0
            if is_check_due and not problem:
                return self._checked(entry, arguments, named, tensors)
            if not problem:
                values = self._values(entry, tensors)
                if values is None:
                    problem = "a hyperparameter changed for the first time"
            if not problem:
                problem, results = entry.step.replay(tensors, values)
                if problem == _OTHER_SIZES:
                    self._last = ReplayedCall(entry)
            if not problem:
                entry.state.after_replay()
                self.replays += 1
                self._budget.replayed()
                _step.run_step_closures()
                return rebuild(entry.returned, iter(results))
            self._note_fallback(problem)
            entry.forget()
        return self._traced(entry, arguments, named, tensors)

    def _select_sizes(
        self, entry: _Entry, varying: VaryingSizes, tensors: list[torch.Tensor]
    ) -> str:
        """Selects the program for the sizes of the arguments. Returns "", or why there is
        none; then this call's recording may continue from the last replay."""
        sizes = sizes_of(tensors)
        if sizes in varying.candidates and entry.step.select_sizes(tensors):
            return ""
        try:
            entry.history.check_range(entry.skeleton, sizes)
            if problem := entry.step.add_sizes(tensors, varying.symbols(tensors)):
                raise Changed(problem)
            varying.check(tensors, entry.step)
        except Changed as problem:
            self._last = ReplayedCall(entry)
            return str(problem)
        return ""

    @staticmethod
    def _values(entry: _Entry, tensors: list[torch.Tensor]) -> list[float] | None:
        sizes = entry.varying.candidates[sizes_of(tensors)] if entry.varying else {}
        return entry.numbers.values(entry.state, sizes)

    def _new_entry(self, shape: Any) -> _Entry:
        check_leaves(shape, "an argument", _OBJECTS)
        if len(self._entries) >= _ENTRIES:
            raise NotCapturable(
                f"the function was called with {_ENTRIES} different "
                "arguments that aren't tensors"
            )
        entry = self._entries[shape] = _Entry(shape)
        return entry

    def _note_fallback(self, reason: str, level: int = logging.INFO) -> None:
        if not self.fallbacks[reason]:
            _log.log(level, "captured step %s is traced: %s", self._name(), reason)
        self.fallbacks[reason] += 1

    def _name(self) -> str:
        return getattr(self._function, "__qualname__", repr(self._function))

    def _record(
        self, entry: _Entry, arguments, named, tensors
    ) -> tuple[Any, RecordedCall | None]:
        """Runs the function as one step. Returns its result, and its trace or None if the
        call can't be captured."""
        self._last = None
        self.traces += 1
        backend = bindings()
        before = _metrics()["fallback_calls"]
        given = marks(tensors)
        try:
            if backend.is_under_a_dispatch_mode():
                raise NotCapturable("a TorchDispatchMode or a transform is active")
            state = State([("function", self._function), *entry.roots], entry.names)
            recording = backend.Recording(tensors)
        except (NotCapturable, Unknown) as problem:
            self._note_fallback(str(problem), logging.WARNING)
            return self._function(*arguments, **named), None
        size_trace = self._size_trace(entry, recording, tensors)
        watch = Watch(size_trace)
        try:
            with (
                _step.steps_end_later(),
                state.watching(),
                watch,
                tracing_sizes(size_trace),
            ):
                result = self._function(*arguments, **named)
            _step.mark_step()
        finally:
            recording.close()
        if size_trace is not None:
            result = without_traces(result)
            size_trace.finish()
        try:
            check_recording(recording, watch, before)
            check_arguments(arguments, named, tensors, given)
            state.finish(recording.draws > 0, watch.seeds, watch.uses_context)
            trace = RecordedCall(recording, state, tensors, result, size_trace)
            check_leaves(trace.returned, "the result")
            self._learn_names(entry, watch, state)
        except (NotCapturable, Unknown, ValueError) as problem:
            self._note_fallback(str(problem), logging.WARNING)
            return result, None
        return result, trace

    @staticmethod
    def _size_trace(
        entry: _Entry, recording: Any, tensors: list[torch.Tensor]
    ) -> SizeTrace | None:
        entry.history.note_call(sizes_of(tensors))
        # Traced numbers have other types.
        if not entry.history.varies or (
            entry.names and any(map(compares_types, entry.names.codes))
        ):
            return None
        return SizeTrace(recording, tensors)

    @staticmethod
    def _learn_names(entry: _Entry, watch: Watch, state: State) -> None:
        """Adds the names in the code that this call ran, and the optimizers that stepped,
        to the entry: later calls are compared by those of all recorded calls."""
        entry.roots = [
            *entry.roots,
            *(
                ("optimizer", optimizer)
                for optimizer in state.stepped
                if all(optimizer is not root for _, root in entry.roots)
            ),
        ]
        known = entry.names.codes if entry.names else {}
        if not watch.codes.keys() <= known.keys():
            entry.names = Names({**watch.codes, **known})
            state.objects = None  # the snapshot lacks the new names

    def _uncaptured(self, arguments, named) -> Any:
        """Runs the function as one step without recording it."""
        self.traces += 1
        self._last = None
        result = self._function(*arguments, **named)
        _step.mark_step()
        return result

    def _traced(self, entry: _Entry, arguments, named, tensors) -> Any:
        if entry.attempts >= _ATTEMPTS:
            return self._uncaptured(arguments, named)
        if not self._budget.allows():
            self._note_fallback(_SELDOM_REPEATED, logging.WARNING)
            return self._uncaptured(arguments, named)
        previous, self._last = self._last, None
        result, trace = self._record(entry, arguments, named, tensors)
        self._last = trace
        if trace is None:
            entry.attempts += 1
            entry.numbers = None
        else:
            if trace.state.objects is not None:  # the first call creates state
                entry.history.note_skeleton(trace)
            general = self._learn_sizes(entry, trace)
            if (
                previous is not None
                and trace.state.objects is not None
                and previous.returned == trace.returned
                and self._is_same_program(previous, trace, general)
            ):
                try:
                    self._capture(entry, previous, trace, general)
                except (RuntimeError, ValueError) as problem:
                    entry.attempts += 1
                    reason = str(problem).split("\n")[0]
                    self._note_fallback(reason, logging.WARNING)
        return result

    @staticmethod
    def _learn_sizes(entry: _Entry, trace: RecordedCall) -> Any:
        """Returns the program for all sizes of the call; None if there is none, or if the
        sizes of the calls don't vary."""
        if trace.size_trace is None:
            return None
        general = bindings().GeneralStep.of(trace.recording)
        try:
            entry.history.of(trace).learn(trace, general)
        except ValueError as problem:
            _log.info("no replays for other sizes: %s", problem)
            return None
        return general

    @staticmethod
    def _is_same_program(
        previous: RecordedCall | ReplayedCall, trace: RecordedCall, general: Any
    ) -> bool:
        if isinstance(previous, RecordedCall) and (
            previous.recording.program == trace.recording.program
        ):
            return True
        return general is not None and previous.skeleton == trace.skeleton

    def _capture(
        self,
        entry: _Entry,
        previous: RecordedCall | ReplayedCall,
        trace: RecordedCall,
        general: Any,
    ) -> None:
        varying = entry.history.of(trace) if general else None
        numbers = varying.numbers if varying else self._numbers(entry, previous, trace)
        trace.state.freeze()
        step = bindings().CapturedStep(
            previous.data,
            trace.recording,
            trace.tensors,
            trace.state.known_tensors(),
            trace.returned_tensors,
            trace.state.step_counts(),
            general,
        )
        if trace.state.problem:
            raise ValueError(trace.state.problem)
        for scalar, expression in numbers.bindings():
            step.bind_scalar(scalar, expression)
        entry.numbers, entry.step, entry.varying = numbers, step, varying
        entry.state, entry.returned = trace.state, trace.returned
        entry.skeleton = trace.skeleton
        entry.attempts = 0
        self._last = None

    @staticmethod
    def _numbers(entry: _Entry, previous: RecordedCall, trace: RecordedCall) -> Numbers:
        program = trace.recording.program
        numbers = entry.numbers
        if numbers is not None and numbers.fits(program, trace.state):
            try:
                numbers.learn(previous.scalars, previous.state)
                numbers.learn(trace.scalars, trace.state)
                return numbers
            except ValueError:  # a number that was constant so far has changed
                pass
        numbers = Numbers(program, previous.scalars, previous.state)
        numbers.learn(previous.scalars, previous.state)
        numbers.learn(trace.scalars, trace.state)
        return numbers

    def _checked(self, entry: _Entry, arguments, named, tensors) -> Any:
        """Traces the step instead of replaying it, and compares the program and its numbers
        with those of the replay."""
        varies, numbers = entry.varying is not None, entry.numbers
        program = entry.skeleton if varies else entry.step.program
        integers = entry.step.integers
        predicted = self._values(entry, tensors)
        # If the captured step still held its tensors, they couldn't be donated, and the
        # program would differ.
        entry.forget()
        result, trace = self._record(entry, arguments, named, tensors)
        problem = ""
        if trace is None:
            problem = "the function can't be captured any more"
        elif program != (trace.skeleton if varies else trace.recording.program):
            problem = "the function produced a different program"
        elif varies and integers != trace.recording.integers:
            problem = "an integer of the program has a different value"
        elif predicted is not None:
            for scalar, expression in numbers.bindings():
                if trace.scalars[scalar] != predicted[expression]:
                    problem = f"number {scalar} of the program has a different value"
            for scalar in numbers.constants():
                if trace.scalars[scalar] != numbers.recorded[scalar]:
                    problem = f"number {scalar} of the program isn't constant"
        self._last = trace
        if problem:
            entry.numbers = None
            raise CaptureMismatch(
                f"Captured step {self._name()}: {problem}, although no checked state has changed. The function depends on something that "
                "a captured step can't see (docs/capture.md); this call's results "
                "are those of the function."
            )
        return result


def capture(function: Callable[..., Any] | None = None, *, check_every: int = 0) -> Any:
    """Returns a replayable form of a training step. Can also be used as a decorator.

    The function is a whole step (gradients to None, forward, loss, backward, optimizer).
    Its tensors are arguments or belong to modules and optimizers that it refers to. Its
    Python code only runs in the first calls, and in calls where a guard fails (`fallbacks`
    of the result contains the reason). `check_every=n` traces every n-th call and raises
    CaptureMismatch if the captured program would have computed something else. Raises
    TypeError for a class, a generator function or a coroutine function, and ValueError for
    an invalid `check_every`.
    """
    if function is None:
        return functools.partial(capture, check_every=check_every)
    if isinstance(function, Captured):
        return function
    if type(check_every) is not int or check_every < 0:
        raise ValueError(
            f"check_every must be a number of calls or 0, but got {check_every!r}."
        )
    _check_function(function)
    return Captured(function, check_every)


def _check_function(function: Any) -> None:
    inner = function.func if isinstance(function, functools.partial) else function
    if not inspect.isroutine(inner) and callable(inner) and not isinstance(inner, type):
        inner = type(inner).__call__
    for is_kind, kind in (
        (inspect.isclass, "a class"),
        (inspect.iscoroutinefunction, "a coroutine function"),
        (inspect.isasyncgenfunction, "an asynchronous generator function"),
        (inspect.isgeneratorfunction, "a generator function"),
        (lambda f: isinstance(f, classmethod), "a classmethod (write @classmethod "
         "above @capture)"),
        (lambda f: not callable(f), f"a {type(function).__name__}"),
    ):  # fmt: skip
        if is_kind(inner):
            raise TypeError(
                "torch_ltc.capture needs a function whose call is a whole step, but "
                f"got {kind}."
            )
