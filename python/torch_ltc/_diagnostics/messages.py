"""Passes log messages of the C++ part to Python's logger "torch_ltc"."""

from __future__ import annotations

import functools
import inspect
import logging
import signal
import traceback
from typing import Any

logger = logging.getLogger("torch_ltc")


def what_was_forbidden(error: BaseException | None) -> str:
    """Returns the event that a guard of torch_ltc.debug forbade (events/guards.cpp), with
    its Python line; "" for other errors."""
    what, guard, _ = str(error).partition(", which torch_ltc.debug.")
    return what if guard and isinstance(error, RuntimeError) else ""


def _is_of_signal_handler(error: BaseException) -> bool:
    """Whether a signal handler raised the error: Python may call handlers while any code
    runs."""
    codes = set()
    for number in signal.valid_signals():
        handler: Any = signal.getsignal(number)
        if not callable(handler):
            continue
        if isinstance(handler, functools.partial):
            handler = handler.func
        if not inspect.isroutine(handler):
            handler = type(handler).__call__
        codes.add(getattr(handler, "__code__", None))
    frames = traceback.walk_tb(error.__traceback__)
    return any(frame.f_code in codes for frame, _ in frames)


def log_hook(level: int, sentence: str) -> None:
    """Logs a sentence. The bindings call this function from any thread, with the GIL held.
    Exceptions of logging handlers must not propagate into C++. Those of signal handlers,
    such as KeyboardInterrupt, propagate: the bindings raise them as soon as Python
    continues."""
    try:
        logger.log(level, sentence)
    except Exception as error:
        if _is_of_signal_handler(error):
            raise
        logging.lastResort.handle(
            logger.makeRecord("torch_ltc", level, "", 0, sentence, (), None)
        )
