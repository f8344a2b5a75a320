"""Steps that run without being traced: `torch_ltc.capture`.

The first calls run the function and are recorded. When two consecutive calls
made the same program, later calls check what the program depends on - shapes,
dtypes, parameter identity, training mode, hyperparameters - and run it: Python
code of the model, autograd and the tracer don't run.
"""

from __future__ import annotations

import functools
import logging
from collections import Counter
from collections.abc import Callable
from typing import Any

import torch

from torch_ltc import step as _step
from torch_ltc._backend import bindings
from torch_ltc.capture_numbers import Numbers
from torch_ltc.capture_state import State
from torch_ltc.metrics import metrics as _metrics

_log = logging.getLogger("torch_ltc")
_PLAIN = (type(None), bool, int, float, complex, str, torch.dtype, torch.device)
# A function whose traces never agree is traced for good after so many.
_ATTEMPTS = 8
_ENTRIES = 64


class CaptureMismatch(RuntimeError):
    """The check mode found a step that the captured program isn't."""


def _flatten(value: Any, tensors: list[torch.Tensor]) -> Any:
    """Appends the tensors; the rest, as something that can be compared."""
    if isinstance(value, torch.Tensor):
        tensors.append(value)
        return torch.Tensor
    if isinstance(value, (tuple, list)):
        return (type(value), *[_flatten(item, tensors) for item in value])
    if isinstance(value, dict):
        items = [(key, _flatten(item, tensors)) for key, item in value.items()]
        return (dict, *items)
    return ("=", type(value), value)  # 1, 1.0 and True are different arguments


def _rebuild(shape: Any, tensors: Any) -> Any:
    """What `_flatten` took apart, with other tensors (an iterator)."""
    if shape is torch.Tensor:
        return next(tensors)
    if shape[0] != "=":
        kind, *items = shape
        if kind is dict:
            return {key: _rebuild(item, tensors) for key, item in items}
        values = [_rebuild(item, tensors) for item in items]
        return kind(*values) if hasattr(kind, "_fields") else kind(values)
    return shape[2]


def _check_plain(shape: Any, what: str) -> None:
    """Raises _NotCapturable for leaves that can't be compared or repeated."""
    if shape is torch.Tensor:
        return
    if shape[0] != "=":
        for item in shape[1:]:
            _check_plain(item[1] if shape[0] is dict else item, what)
    elif not isinstance(shape[2], _PLAIN):
        raise _NotCapturable(
            f"{what} holds an object of class {shape[1].__name__}; tensors, "
            "numbers, strings and containers of them are what a captured step "
            "can be called with and return"
        )


class _NotCapturable(Exception):
    pass


class _Trace:
    """One recorded call."""

    def __init__(self, recording: Any, state: State, returned: Any) -> None:
        self.recording, self.state = recording, state
        self.returned_tensors: list[torch.Tensor] = []
        self.returned = _flatten(returned, self.returned_tensors)
        self.scalars = recording.scalars


class _Entry:
    """What is known about calls with equal non-tensor arguments."""

    def __init__(self) -> None:
        self.numbers: Numbers | None = None
        self.step: Any = None
        self.state: State | None = None
        self.returned: Any = None
        self.attempts = 0
        self.calls = 0

    def forget(self) -> None:
        self.step = self.state = None


class Captured:
    """A captured step function; call it like the function.

    `replays` and `traces` count its calls by what became of them, `fallbacks`
    the reasons why calls were traced after a step had been captured.
    """

    def __init__(self, function: Callable[..., Any], check_every: int) -> None:
        functools.update_wrapper(self, function)
        self._function = function
        self._check_every = check_every
        self._entries: dict[Any, _Entry] = {}
        # The trace of the last call, if that was traced.
        self._last: _Trace | None = None
        self.replays = 0
        self.traces = 0
        self.fallbacks: Counter[str] = Counter()

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        tensors: list[torch.Tensor] = []
        shape = _flatten((arguments, named) if named else arguments, tensors)
        try:
            entry = self._entries.get(shape)
            if entry is None:
                _check_plain(shape, "an argument")
                if len(self._entries) >= _ENTRIES:
                    raise _NotCapturable(
                        f"the function was called with {_ENTRIES} different "
                        "arguments that are no tensors"
                    )
                entry = self._entries[shape] = _Entry()
        except (TypeError, _NotCapturable) as problem:
            self._note_fallback(str(problem))
            self.traces += 1
            return self._function(*arguments, **named)
        entry.calls += 1
        backend = bindings()
        if backend.pending_ops():
            _step.mark_step()
        if entry.step is not None:
            if self._check_every and entry.calls % self._check_every == 0:
                return self._checked(entry, arguments, named, tensors)
            problem = entry.state.changed()
            if not problem:
                values = entry.numbers.values(entry.state)
                if values is None:
                    problem = "a hyperparameter changed for the first time"
            if not problem:
                problem, results = entry.step.replay(tensors, values)
            if not problem:
                entry.state.after_replay()
                self.replays += 1
                _step.run_step_closures()
                return _rebuild(entry.returned, iter(results))
            self._note_fallback(problem)
            entry.forget()
        return self._traced(entry, arguments, named, tensors)

    def _note_fallback(self, reason: str) -> None:
        if not self.fallbacks[reason]:
            _log.info("captured step %s is traced: %s", self._name(), reason)
        self.fallbacks[reason] += 1

    def _name(self) -> str:
        return getattr(self._function, "__qualname__", repr(self._function))

    def _record(self, arguments, named, tensors) -> tuple[Any, _Trace | None]:
        """Runs the function as one step; no trace if it can't be captured."""
        backend = bindings()
        before = _metrics()
        recording = backend.Recording(tensors)
        state = State(self._function)
        try:
            with _step.steps_end_later(), state.watching():
                result = self._function(*arguments, **named)
            _step.mark_step()
        finally:
            recording.close()
        self.traces += 1
        after = _metrics()
        try:
            if recording.runs != 1:
                raise _NotCapturable(
                    "the function reads values, so that its step isn't one program"
                    if recording.runs
                    else "the function computes nothing on device lazy"
                )
            if after["fallback_calls"] > before["fallback_calls"]:
                raise _NotCapturable("an op ran eagerly: torch_ltc.fallbacks()")
            state.finish()
            trace = _Trace(recording, state, result)
            _check_plain(trace.returned, "the result")
        except (_NotCapturable, ValueError) as problem:
            self._note_fallback(str(problem))
            return result, None
        return result, trace

    def _traced(self, entry: _Entry, arguments, named, tensors) -> Any:
        if entry.attempts >= _ATTEMPTS:
            self.traces += 1
            self._last = None
            return self._function(*arguments, **named)
        result, trace = self._record(arguments, named, tensors)
        previous, self._last = self._last, trace
        if trace is None:
            entry.attempts += 1
            entry.numbers = None
        elif (
            previous is not None
            and previous.recording.program == trace.recording.program
            and previous.returned == trace.returned
        ):
            try:
                self._capture(entry, previous, trace)
            except (RuntimeError, ValueError) as problem:
                entry.attempts += 1
                self._note_fallback(str(problem).split("\n")[0])
        return result

    def _capture(self, entry: _Entry, previous: _Trace, trace: _Trace) -> None:
        numbers = entry.numbers
        program = trace.recording.program
        if numbers is None or not numbers.fits(program, trace.state):
            numbers = Numbers(program, previous.scalars, previous.state)
        numbers.learn(previous.scalars, previous.state)
        numbers.learn(trace.scalars, trace.state)
        step = bindings().CapturedStep(
            previous.recording,
            trace.recording,
            trace.state.known_tensors(trace.returned_tensors),
            trace.returned_tensors,
            trace.state.step_counts(),
        )
        for scalar, expression in numbers.bindings():
            step.bind_scalar(scalar, expression)
        entry.numbers, entry.step = numbers, step
        entry.state, entry.returned = trace.state, trace.returned
        entry.attempts = 0
        self._last = None

    def _checked(self, entry: _Entry, arguments, named, tensors) -> Any:
        """Traces the step and compares it with what would have been replayed."""
        program, numbers = entry.step.program, entry.numbers
        entry.state.changed()
        predicted = numbers.values(entry.state)
        # What the step holds couldn't be donated: another program.
        entry.forget()
        result, trace = self._record(arguments, named, tensors)
        problem = ""
        if trace is None:
            problem = "the function can't be captured any more"
        elif trace.recording.program != program:
            problem = "the function made another program"
        elif predicted is not None:
            for scalar, expression in numbers.bindings():
                if trace.scalars[scalar] != predicted[expression]:
                    problem = f"number {scalar} of the program has another value"
            for scalar in numbers.constants():
                if trace.scalars[scalar] != numbers.recorded[scalar]:
                    problem = f"number {scalar} of the program isn't constant"
        self._last = trace
        if problem:
            entry.numbers = None
            raise CaptureMismatch(
                f"Captured step {self._name()}: {problem}, although nothing that "
                "is checked had changed. The function depends on something that "
                "a captured step can't see (docs/capture.md); this call's results "
                "are those of the function."
            )
        return result


def capture(function: Callable[..., Any] | None = None, *, check_every: int = 0) -> Any:
    """Makes a training step replayable: decorator, or function of a function.

    The function is a whole step (gradients to none, forward, loss, backward,
    optimizer); its tensors are arguments or belong to modules and optimizers
    that it refers to. Its Python code runs in the first calls only, and in calls
    where a guard fails (`fallbacks` of the result says which). `check_every=n`
    traces every n-th call and raises CaptureMismatch if the captured program
    would have computed something else.
    """
    if function is None:
        return functools.partial(capture, check_every=check_every)
    return Captured(function, check_every)
