"""Compares each closed form with eager CPU and with the Meta kernel.

For calls that eager accepts, inference must return the dtypes and sizes of eager's results.
Calls that both oracles reject must be rejected. Calls that only the Meta kernel accepts
(for example, dtypes without a CPU kernel) must be rejected, or inference must return the
Meta kernel's dtypes and sizes.
"""

import collections

import _shape_testing
import constructor_cases
import data_movement_cases
import elementwise_cases
import indexing_cases
import linear_cases
import normalization_cases
import pooling_cases
import pytest
import reduction_cases
import torch

ERRORS = (
    RuntimeError,
    IndexError,
    ValueError,
    TypeError,
    AssertionError,
    NotImplementedError,
)
MODULES = (
    elementwise_cases,
    reduction_cases,
    data_movement_cases,
    linear_cases,
    pooling_cases,
    normalization_cases,
    indexing_cases,
    constructor_cases,
)
# torch_ltc's own ops are left out, because the backend, which isn't loaded here, defines
# them; e2e_tests/backend tests them.
ROWS = [
    row
    for row in _shape_testing.rows()
    if row[1] != "meta" and row[0].startswith("aten::")
]


# The CPU kernels of these ops don't check whether statistics are missing before they read
# them (PyTorch 2.13). They are only used for calls that the Meta kernel accepts.
UNCHECKED_ON_CPU = (
    "aten::native_batch_norm",
    "aten::_native_batch_norm_legit.no_stats",
)


def overload(name):
    base, _, variant = name.removeprefix("aten::").partition(".")
    return getattr(getattr(torch.ops.aten, base), variant or "default")


def generator(name):
    for module in MODULES:
        if name in module.GENERATORS:
            return module.GENERATORS[name]
    types = [
        str(argument.type)
        for argument in overload(name)._schema.arguments
        if not argument.has_default_value()
    ]
    return elementwise_cases.by_signature(name, types)


def eager(op, call, device):
    """Returns (dtype, sizes) or None for each result of the call; the error if it fails."""
    args, kwargs = call.make(device)
    names = [argument.name for argument in op._schema.arguments]
    if (
        device != "cpu"
        and "device" in names
        and not any(isinstance(a, torch.Tensor) for a in args)
    ):
        kwargs["device"] = device
    try:
        results = op(*args, **kwargs)
    except Exception as error:  # everything that a user would see
        return error
    if isinstance(results, torch.Tensor):
        results = [results]
    return [
        None if result is None else (result.dtype, list(result.shape))
        for result in results
    ]


def inferred(name, call):
    """Returns the tracer's results or error, and whether they come from a closed form."""
    args, kwargs = call.make("cpu")
    try:
        results = _shape_testing.infer(name, args, kwargs)
        if results is not None:
            return results, True
    except ERRORS as error:
        return error, True
    try:
        return _shape_testing.infer_with_meta_kernel(name, args, kwargs), False
    except ERRORS as error:
        return error, False


def asked_for(results, mask):
    """Sets results that `mask` doesn't request to None, because CPU kernels may return more
    gradients than requested."""
    return [result if asked else None for result, asked in zip(results, mask)]


def complaint(name, op, call, found):
    """Returns None if `found` is right; otherwise, a text that says what was expected."""
    by_meta = None
    if name in UNCHECKED_ON_CPU:
        expected = by_meta = eager(op, call, "meta")
    if not isinstance(by_meta, Exception):
        expected = eager(op, call, "cpu")
    if not isinstance(expected, Exception):
        if op._schema.arguments[-1].name == "output_mask":
            expected = asked_for(expected, call.args[-1])
        return None if found == expected else f"eager: {expected}"
    by_meta = by_meta or eager(op, call, "meta")
    if isinstance(by_meta, Exception):
        if isinstance(found, Exception):
            return None
        return f"eager: {first_line(expected)}"
    if isinstance(found, Exception) or found == by_meta:
        return None
    return f"only the Meta kernel accepts: {by_meta}"


def first_line(value):
    return str(value).split("\n")[0][:160]


@pytest.mark.parametrize("name", [row[0] for row in ROWS])
def test_closed_form(name):
    make_cases = generator(name)
    assert make_cases, f"no calls of {name} to compare"
    op = overload(name)
    counts, shown = collections.Counter(), []
    for call in make_cases(name):
        found, is_closed = inferred(name, call)
        text = complaint(name, op, call, found)
        counts["wrong"] += text is not None
        counts["closed"] += is_closed and not isinstance(found, Exception)
        counts["all"] += 1
        if text and len(shown) < 8:
            found = first_line(found) if isinstance(found, Exception) else found
            shown.append(
                f"{call.args} {dict(call.kwargs)}\n      found {found}\n      {text}"
            )
    assert not counts["wrong"], (
        f"{counts['wrong']} of {counts['all']} calls of {name}:\n  "
        + "\n  ".join(shown)
    )
    assert counts["closed"], "no call has a closed form"


def test_bools_are_not_subtracted():
    mask = torch.ones(2, dtype=torch.bool)
    for op in ("aten::sub.Tensor", "aten::rsub.Tensor"):
        with pytest.raises(RuntimeError, match="with two bool tensors"):
            _shape_testing.infer(op, (mask, mask), {})
        with pytest.raises(RuntimeError, match=r"with a bool tensor.*aten::r?sub"):
            _shape_testing.infer(op, (torch.ones(2), mask), {})


def test_errors_name_the_op():
    with pytest.raises(IndexError, match=r"got 5.*aten::sum\.dim_IntList"):
        _shape_testing.infer("aten::sum.dim_IntList", (torch.ones(2), [5]), {})
    with pytest.raises(
        RuntimeError, match=r"cannot be multiplied \(2x3 and 4x5\).*aten::mm"
    ):
        _shape_testing.infer("aten::mm", (torch.ones(2, 3), torch.ones(4, 5)), {})
    with pytest.raises(RuntimeError, match=r"tensor a \(2\).*tensor b \(3\)"):
        _shape_testing.infer("aten::add.Tensor", (torch.ones(2), torch.ones(3)), {})
