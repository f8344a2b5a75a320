"""What the C++ side has to say: it goes to Python's logger "torch_ltc"."""

from __future__ import annotations

import logging

logger = logging.getLogger("torch_ltc")


def what_was_forbidden(error: BaseException | None) -> str:
    """What a guard of torch_ltc.debug forbade (events/guards.cpp), with its Python
    line; empty for other errors."""
    what, guard, _ = str(error).partition(", which torch_ltc.debug.")
    return what if guard and isinstance(error, RuntimeError) else ""


def log_hook(level: int, sentence: str) -> None:
    """Called by the bindings from any thread, with the GIL held. An exception
    of a handler must not travel into C++."""
    try:
        logger.log(level, sentence)
    except Exception:
        logging.lastResort.handle(
            logger.makeRecord("torch_ltc", level, "", 0, sentence, (), None)
        )
