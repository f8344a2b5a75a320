"""Calls ops with odd arguments and compares device `lazy` with eager, in a subprocess that
may crash:

    python -m fuzz.odd_calls --each 20 [--ops 'nll|softmax'] [--seed 0]

Draws `--each` calls of every recorded op. A crash, a different result, an error where
eager returns a result and a result where eager raises are failures. Errors whose class or
message differs from eager's are counted, but aren't failures.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import json
import mmap
import os
import random
import re
import struct
import subprocess
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from comparison import assert_close, largest
from fuzz.odd_arguments import odd_call
from fuzz.recorded_calls import Call, recorded_calls
from torch.utils._pytree import tree_flatten, tree_map

#: Patterns of ops that aren't compared, with the reason.
LEFT_OUT = {
    r"^(new_)?empty|^resize|^_efficientzerotensor": "uninitialized memory",
    r"^(native_batch_norm|_native_batch_norm_legit)": "writes an argument that its schema declares as read",
    r"^(lift|record_stream|set_|_fused_|_foreach_)": "not for a user's call",
    # For these ops, eager reads past the end of operands, or crashes.
    r"^(embedding|nll_loss|fractional|adaptive_max|max_unpool|native_\w+|_embedding_bag|"
    r"grid_sampler|_pack|batch_norm|avg_pool|max_pool|_?adaptive|_log_softmax|"
    r"replication_pad)\w*_backward": "out of bounds in eager",
}  # fmt: skip
_SUFFIX = re.compile(r" ?\[\w+::\S+ on device 'lazy'[^\]]*\]")
_TOLERANCE = {
    torch.float64: 1e-8, torch.float32: 1e-4, torch.float16: 1e-2,
    torch.bfloat16: 5e-2, torch.complex64: 1e-4, torch.complex128: 1e-8,
}  # fmt: skip


@dataclass
class Outcome:
    """The outcome of a call. `kind` is "" (agrees), "wrong", "rejected" or "accepted" (only
    lazy or only eager raises), "class" or "words" (the errors' classes or messages differ),
    or "crash"."""

    call: str
    kind: str
    detail: str = ""

    @property
    def fails(self) -> bool:
        return self.kind in ("wrong", "rejected", "accepted", "crash")


def _moved(value: Any, device: str) -> Any:
    copies: dict[int, torch.Tensor] = {}

    def move(leaf: Any) -> Any:
        if isinstance(leaf, torch.device):
            return torch.device(device)
        if not isinstance(leaf, torch.Tensor):
            return leaf
        if id(leaf) not in copies:
            # `clone` preserves strides, except those with gaps.
            copies[id(leaf)] = leaf.clone().to(device)
        return copies[id(leaf)]

    return tree_map(move, value)


def run(call: Call, device: str) -> list[Any]:
    args, kwargs = _moved((call.args, call.kwargs), device)
    if any(a.name == "device" for a in call.op._schema.arguments):
        kwargs["device"] = torch.device(device)
    torch.manual_seed(3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = call.op(*args, **kwargs)
    written = (args, kwargs) if call.op._schema.is_mutable else ()
    # Errors that depend on values are raised when the results are read.
    return [
        _plain(leaf.cpu()) if isinstance(leaf, torch.Tensor) else leaf
        for leaf in tree_flatten((result, written))[0]
    ]


def _plain(value: torch.Tensor) -> torch.Tensor:
    """Converts a tensor to one that can be compared element by element."""
    if value.is_quantized:
        return value.dequantize()
    if value.layout != torch.strided:
        return value.to_dense()
    return (
        value.float()
        if value.dtype.itemsize == 1 and value.is_floating_point()
        else value
    )


def difference(results: list[Any], expected: list[Any]) -> str:
    for number, (result, wanted) in enumerate(zip(results, expected, strict=True)):
        if not isinstance(wanted, torch.Tensor):
            continue
        if (result.dtype, result.shape) != (wanted.dtype, wanted.shape):
            return f"result {number} is {_text(result)} instead of {_text(wanted)}"
        tolerance = _TOLERANCE.get(wanted.dtype, 0)
        absolute = tolerance * largest(wanted, 1e-3) if tolerance else 0
        with contextlib.suppress(AssertionError):
            assert_close(result, wanted, tolerance, absolute, equal_nan=True)
            continue
        return f"result {number} differs: {_text(result)} instead of {_text(wanted)}"
    return ""


def words(error: Exception) -> str:
    """Returns the message without the suffix (op and line) of errors on device `lazy`."""
    return _SUFFIX.sub("", str(error).split("\nException raised from")[0]).strip()


def compare(call: Call) -> Outcome:
    return _compared(call, *_attempt(call, "cpu"))


def _compared(call: Call, expected: list[Any], eager: Exception | None) -> Outcome:
    text = describe(call)
    results, lazy = _attempt(call, "lazy")
    if lazy is not None:
        settle()
    if eager is None and lazy is None:
        detail = difference(results, expected)
        return Outcome(text, "wrong" if detail else "", detail)
    if eager is None or lazy is None:
        kind, error = ("rejected", lazy) if eager is None else ("accepted", eager)
        return Outcome(text, kind, f"{type(error).__name__}: {words(error)[:200]}")
    detail = f"{type(lazy).__name__}: {words(lazy)[:150]} | eager: {type(eager).__name__}: {words(eager)[:150]}"  # fmt: skip
    if type(lazy) is not type(eager):
        return Outcome(text, "class", detail)
    same = words(eager).split("\n")[0] in words(lazy)
    return Outcome(text, "" if same else "words", detail)


def _attempt(call: Call, device: str) -> tuple[list[Any], Exception | None]:
    try:
        return run(call, device), None
    except Exception as error:
        return [], error


def settle() -> None:
    import torch_ltc

    for action in (torch_ltc.mark_step, torch_ltc.wait_device_ops):
        with contextlib.suppress(Exception):
            action()


def _text(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        values = ""
        if value.layout == torch.strided and value.numel() <= 6:
            with contextlib.suppress(RuntimeError):  # some tensors have no memory
                values = f"={value.tolist()}"
        return f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}{values}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_text, value))}]"
    return repr(value)


def describe(call: Call) -> str:
    given = [_text(a) for a in call.args]
    given += [f"{name}={_text(value)}" for name, value in call.kwargs.items()]
    return f"{call.name}({', '.join(given)})"


def drawn(name: str, number: int, seed: int) -> Call:
    calls = recorded_calls()[name]
    return odd_call(
        calls[number % len(calls)], random.Random(f"{seed}:{name}:{number}")
    )


def names(pattern: str = "") -> list[str]:
    """Returns the names of recorded ops that match the pattern, except those that match
    one of LEFT_OUT."""
    return [
        name
        for name in recorded_calls()
        if re.search(pattern, name) and not any(re.search(p, name) for p in LEFT_OUT)
    ]


#: What a child process writes to shared memory: the position of the current call, and
#: whether eager has run it.
_AT = struct.Struct("qq")


def _worker(options: argparse.Namespace) -> None:
    """Prints a line of JSON after each call. The calls are recorded once; a child process
    makes them until it crashes, and then the next child continues.
    """
    torch.set_num_threads(1)
    todo = [(n, k) for n in names(options.ops) for k in range(options.each)]
    random.Random(options.seed).shuffle(todo)
    calls = [drawn(*one, options.seed) for one in todo[: options.calls or len(todo)]]
    at = mmap.mmap(-1, _AT.size)
    start, by_eager = 0, True
    while start < len(calls):
        if not (child := os.fork()):
            _make(calls, start, by_eager, at)
            sys.stdout.flush()
            os._exit(0)
        if not (status := os.waitpid(child, 0)[1]):
            return
        start, is_past_eager = _AT.unpack(at[:])
        by_eager = bool(is_past_eager)
        if is_past_eager:
            text, code = describe(calls[start]), os.waitstatus_to_exitcode(status)
            _print(Outcome(text, "crash", f"the process ended with {code}"))
            start += 1


def _make(calls: list[Call], start: int, by_eager: bool, at: mmap.mmap) -> None:
    """Makes the calls from `start` on. Unless `by_eager`, the first call crashes eager, so
    it is made on device `lazy` only.
    """
    import torch_ltc

    for place in range(start, len(calls)):
        at[:] = _AT.pack(place, not by_eager)
        expected, error = [], None
        if by_eager:
            expected, error = _attempt(calls[place], "cpu")
        at[:] = _AT.pack(place, True)
        if by_eager:
            _print(_compared(calls[place], expected, error))
        else:
            _attempt(calls[place], "lazy")
            _print(Outcome(describe(calls[place]), ""))
        by_eager = True
        if place % 200 == 199:
            torch_ltc.reset_metrics()


def _print(outcome: Outcome) -> None:
    print(json.dumps(vars(outcome)), flush=True)


def sweep(arguments: list[str]) -> Iterator[Outcome]:
    """Yields the outcome of each call; a crash is the outcome of the call that crashed."""
    command = [sys.executable, "-m", "fuzz.odd_calls", *arguments, "--worker"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout or ():
            if line.startswith('{"call"'):
                yield Outcome(**json.loads(line))
    if process.returncode:
        raise RuntimeError(f"the worker ended with {process.returncode}")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m fuzz.odd_calls")
    parser.add_argument("--ops", default="", help="a pattern for the ops' names")
    parser.add_argument("--each", type=int, default=20, help="calls of each op")
    parser.add_argument("--calls", type=int, default=0, help="at most so many calls")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> None:
    options = _options()
    if options.worker:
        _worker(options)
        return
    counts: collections.Counter[str] = collections.Counter()
    for outcome in sweep(sys.argv[1:]):
        counts[outcome.kind or "agrees"] += 1
        if outcome.kind:
            print(f"{outcome.kind}: {outcome.call}: {outcome.detail}", flush=True)
    print(dict(counts))
    failures = sum(counts[kind] for kind in ("wrong", "rejected", "accepted", "crash"))
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
