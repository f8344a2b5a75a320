#!/usr/bin/env python3
"""Prints how long one inference by each rule takes, next to the Meta kernel's time.

    TORCH_LTC_SHAPE_TESTING_DIR=<build>/shape_testing python benchmark_shapes.py

Measures typical calls of a training step and, for each rule, the first test case that
has a closed form. The script isn't a test, because times differ between machines.
"""

import argparse

# isort: off
import conftest  # noqa: F401 - sys.path
import torch
import _shape_testing
import test_closed_forms
# isort: on

TYPICAL = {
    "add same": ("aten::add.Tensor", torch.ones(32, 64), torch.ones(32, 64)),
    "add broadcast": ("aten::add.Tensor", torch.ones(32, 64), torch.ones(64)),
    "mul number": ("aten::mul.Scalar", torch.ones(32, 64), 0.5),
    "relu": ("aten::relu", torch.ones(32, 64)),
    "mm": ("aten::mm", torch.ones(32, 64), torch.ones(64, 16)),
    "addmm": ("aten::addmm", torch.ones(16), torch.ones(32, 64), torch.ones(64, 16)),
    "view": ("aten::view_copy", torch.ones(32, 64), [32, 8, 8]),
    "t": ("aten::t_copy", torch.ones(32, 64)),
    "expand": ("aten::expand_copy", torch.ones(1, 64), [32, 64]),
    "sum over dims": ("aten::sum.dim_IntList", torch.ones(32, 64), [0], True),
    "convolution": (
        "aten::convolution", torch.ones(8, 3, 32, 32), torch.ones(16, 3, 3, 3), None,
        [1, 1], [1, 1], [1, 1], False, [0, 0], 1,
    ),
}  # fmt: skip


def report(label, op, args, kwargs, iterations):
    closed = _shape_testing.nanoseconds(op, args, kwargs, iterations, False)
    try:
        spent = _shape_testing.nanoseconds(op, args, kwargs, 20, True)
        meta = f"{spent / 1000:10.1f} us"
    except test_closed_forms.ERRORS:
        meta = "rejects it"
    print(f"{label:28} {op:44} {closed:8.0f} ns {meta:>13}", flush=True)


def first_call(op):
    for call in test_closed_forms.generator(op)(op):
        found, is_closed = test_closed_forms.inferred(op, call)
        sizes = [] if isinstance(found, Exception) else [r[1] for r in found if r]
        if is_closed and any(len(s) >= 2 or not s for s in sizes):
            return call
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--iterations", type=int, default=20000)
    iterations = parser.parse_args().iterations
    print(f"{'call or rule':28} {'op':44} {'closed form':>11} {'Meta kernel':>13}")
    for label, (op, *args) in TYPICAL.items():
        report(label, op, tuple(args), {}, iterations)
    seen = set()
    for op, rule, _ in test_closed_forms.ROWS:
        call = None if rule in seen else first_call(op)
        if call:
            seen.add(rule)
            report(f"rule {rule}", op, *call.make("cpu"), iterations)


if __name__ == "__main__":
    main()
