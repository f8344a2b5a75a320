"""Ops that compute each element from the operands' elements at the same index."""

from __future__ import annotations

import torch
from ops.program import (
    ALL,
    BF16,
    BOOL,
    EVERY,
    F32,
    F64,
    FLOATS,
    I32,
    I64,
    INTS,
    NUMBERS,
    WIDE,
    Row,
    any_of,
    distinct,
    mask,
    nonzero,
    of,
    positive,
    special,
)
from torch.nn import functional as F

x = any_of(3, 5)
y = any_of(3, 5)
row = any_of(5)
unit = any_of(3, 5, low=-0.9, high=0.9)
tensors = (x, y)
broadcast = (any_of(2, 1, 5), any_of(3, 1))


def _qparams(like: torch.Tensor, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """A scale and a zero point for each channel."""
    numbers = torch.arange(count, device=like.device)
    return (numbers + 1) * 0.1, numbers.int() - 1


def _function(name: str):
    return getattr(torch, name)


_FLOAT_UNARY = {
    "exp": x, "exp2": x, "expm1": x, "log": positive(3, 5), "log2": positive(3, 5),
    "log10": positive(3, 5), "log1p": positive(3, 5), "sqrt": positive(3, 5),
    "rsqrt": positive(3, 5), "sin": x, "cos": x, "tan": unit, "asin": unit,
    "acos": unit, "atan": x, "sinh": x, "cosh": x, "tanh": x, "asinh": x,
    "acosh": any_of(3, 5, low=1.25, high=4), "atanh": unit, "erf": x, "erfc": x,
    "sigmoid": x, "reciprocal": nonzero(3, 5), "sinc": nonzero(3, 5), "deg2rad": x,
    "rad2deg": x, "logit": any_of(3, 5, low=0.1, high=0.9),
}  # fmt: skip

UNARY = [Row(n, _function(n), (m,), FLOATS) for n, m in _FLOAT_UNARY.items()]

# Integers and bool are promoted to float.
PROMOTED = [
    Row(f"{n}-of-integers", _function(n), (positive(3, 5),), (*INTS, BOOL), grad=False)
    for n in ("exp", "log", "sqrt", "sin", "tanh", "sigmoid", "reciprocal")
]

SPECIAL_FUNCTIONS = [
    Row("atan2-special", lambda a: torch.atan2(a[:, None], a), (special(),), WIDE, grad=False),
    Row("erfinv", torch.erfinv, (any_of(3, 5, low=-0.999, high=0.999),), WIDE),
    Row("erfinv-bounds", torch.erfinv, (lambda d, g: torch.tensor([-1.0, 1.0, 0.0, -0.0, 1.5, float("nan")], dtype=d),), FLOATS, grad=False),
    Row("lgamma", torch.lgamma, (any_of(6, 9, low=-5, high=30),), WIDE),
    Row("lgamma-special", torch.lgamma, (special(),), FLOATS, grad=False),
    Row("digamma", torch.digamma, (any_of(6, 9, low=0.1, high=30),), WIDE, grad=False),
    Row("digamma-special", torch.digamma, (special(),), WIDE, grad=False),
    Row("round-decimals", lambda a: a.round(decimals=1) + a.round(decimals=-1), (x,), WIDE),
    Row("special_entr", torch.special.entr, (positive(3, 5),), FLOATS),
    Row("special_entr-special", torch.special.entr, (special(),), FLOATS, grad=False),
    Row("angle", torch.angle, (x,), FLOATS, grad=False),
    Row("i0", torch.i0, (x,), FLOATS),
    Row("digamma-gradient", torch.digamma, (positive(3, 5),), WIDE),
    Row("frexp", lambda a: tuple(torch.frexp(a)), (special(),), WIDE, grad=False),
    Row("nextafter", torch.nextafter, (x, y), WIDE, grad=False),
    Row("ldexp", torch.ldexp, (x, y), WIDE),
    Row("ldexp-special", lambda a: torch.ldexp(a[:, None], torch.tensor([-200, -1, 0, 3, 130, 200], device=a.device)), (special(),), WIDE, grad=False),
    Row("gcd-lcm", lambda a, b: (torch.gcd(a, b), torch.lcm(a, b)), (x, y), INTS, grad=False),
    Row("nan_to_num", lambda a: torch.nan_to_num(a, 7), (special(),), FLOATS),
    Row("fake_quantize", lambda a: torch.fake_quantize_per_tensor_affine(a, 0.1, 3, 0, 15), (x,), (F32,)),
    Row("fake_quantize-tensors", lambda a: torch.fake_quantize_per_tensor_affine(a, *_qparams(a, 1), -8, 7), (x,), (F32,)),
    Row("fake_quantize-channels", lambda a: torch.fake_quantize_per_channel_affine(a, *_qparams(a, 5), 1, -8, 7), (x,), (F32,)),
]  # fmt: skip

ROUNDING = [
    Row(n, _function(n), (any_of(4, 7, low=-4, high=4),), FLOATS)
    for n in ("floor", "ceil", "round", "trunc", "frac")
]

SIGNS = [
    Row("neg", torch.neg, (x,), NUMBERS),
    Row("abs", torch.abs, (nonzero(3, 5),), NUMBERS),
    Row("sign", torch.sign, (x,), NUMBERS),
    Row("sgn", torch.sgn, (x,), NUMBERS),
    Row("square", torch.square, (x,), NUMBERS),
    Row("relu", torch.relu, (nonzero(3, 5),), NUMBERS),
    Row("positive", torch.positive, (x,), NUMBERS),
    Row("signbit", torch.signbit, (nonzero(3, 5),), NUMBERS, grad=False),
    Row("special-abs", torch.abs, (special(),), FLOATS, grad=False),
    Row("special-relu", torch.relu, (special(),), FLOATS, grad=False),
    Row("special-sign", torch.sign, (special(),), FLOATS, grad=False),
    Row("special-exp", torch.exp, (special(),), FLOATS, grad=False),
    Row("special-tanh", torch.tanh, (special(),), FLOATS, grad=False),
    Row("special-log", torch.log, (special(),), FLOATS, grad=False),
]

TESTS = [
    Row(n, _function(n), (special(),), (*FLOATS, *INTS), grad=False)
    for n in ("isnan", "isinf", "isposinf", "isneginf", "isfinite", "logical_not")
]

ACTIVATIONS = [
    Row("gelu", F.gelu, (x,), FLOATS),
    Row("gelu-special", F.gelu, (special(),), FLOATS, grad=False),
    Row("gelu-tanh", lambda a: F.gelu(a, approximate="tanh"), (x,), FLOATS),
    Row("silu", F.silu, (x,), FLOATS),
    Row("hardswish", F.hardswish, (distinct(4, 7),), FLOATS),
    Row("hardsigmoid", F.hardsigmoid, (distinct(4, 7),), FLOATS),
    Row("hardtanh", lambda a: F.hardtanh(a, -1.1, 0.9), (x,), FLOATS),
    Row("leaky_relu", lambda a: F.leaky_relu(a, 0.2), (nonzero(3, 5),), FLOATS),
    Row("elu", lambda a: F.elu(a, 1.3), (nonzero(3, 5),), FLOATS),
    Row("selu", F.selu, (nonzero(3, 5),), FLOATS),
    Row("celu", lambda a: F.celu(a, 1.3), (nonzero(3, 5),), FLOATS),
    Row("softplus", F.softplus, (x,), FLOATS),
    Row("mish", F.mish, (x,), FLOATS),
    Row("threshold", lambda a: F.threshold(a, 0.3, -1.0), (distinct(4, 7),), FLOATS),
    Row("hardshrink", F.hardshrink, (distinct(4, 7),), FLOATS),
    Row("softshrink", F.softshrink, (distinct(4, 7),), FLOATS),
    Row("logsigmoid", F.logsigmoid, (x,), FLOATS),
    Row("prelu", F.prelu, (nonzero(2, 3, 4), positive(3)), FLOATS),
    Row("glu", lambda a: F.glu(a, -1), (any_of(3, 6),), FLOATS),
    Row("relu6", F.relu6, (distinct(4, 7),), FLOATS),
]

ARITHMETIC = [
    Row("add", torch.add, tensors, ALL),
    Row("add-broadcast", torch.add, broadcast, ALL),
    Row("add-alpha", lambda a, b: torch.add(a, b, alpha=2), tensors, NUMBERS),
    Row("add-float-alpha", lambda a, b: torch.add(a, b, alpha=0.3), tensors, FLOATS),
    Row("add-scalar", lambda a: a + 2, (x,), ALL),
    Row("add-float-scalar", lambda a: a + 0.5, (x,), ALL),
    Row("add-rank-0", torch.add, (x, any_of()), NUMBERS),
    Row("add-mixed", torch.add, (x, of(I64, row)), ALL),
    Row("add-mixed-floats", torch.add, (x, of(F64, row)), (F32, BF16)),
    Row("add-empty", torch.add, (any_of(0, 5), row), NUMBERS),
    Row("sub", torch.sub, tensors, NUMBERS),
    Row("sub-alpha", lambda a, b: torch.sub(a, b, alpha=3), tensors, NUMBERS),
    Row("sub-scalar", lambda a: a - 2, (x,), NUMBERS),
    Row("rsub-scalar", lambda a: 2 - a, (x,), NUMBERS),
    Row("rsub", lambda a, b: torch.rsub(a, b), tensors, NUMBERS),
    Row("mul", torch.mul, tensors, ALL),
    Row("mul-broadcast", torch.mul, broadcast, ALL),
    Row("mul-scalar", lambda a: a * 3, (x,), ALL),
    Row("mul-float-scalar", lambda a: a * 0.1, (x,), ALL),
    Row("div", torch.div, (x, nonzero(3, 5)), ALL),
    Row("div-scalar", lambda a: a / 3, (x,), ALL),
    Row("rdiv-scalar", lambda a: 3 / a, (nonzero(3, 5),), NUMBERS),
    Row("div-by-zero", torch.div, (special(), of(F32, special())), WIDE, grad=False),
    Row("pow", torch.pow, (positive(3, 5), y), FLOATS),
    Row("pow-integers", torch.pow, (x, any_of(3, 5, low=0, high=3)), INTS, grad=False),
    Row("pow-2", lambda a: a**2, (x,), NUMBERS),
    Row("pow-3", lambda a: a**3, (x,), NUMBERS),
    Row("pow-half", lambda a: a**0.5, (positive(3, 5),), FLOATS),
    Row("pow-minus-1", lambda a: a**-1, (nonzero(3, 5),), FLOATS),
    Row("pow-float", lambda a: a**1.7, (positive(3, 5),), FLOATS),
    Row("rpow", lambda a: 2.0**a, (x,), NUMBERS),
    Row("remainder", torch.remainder, (x, nonzero(3, 5)), (*WIDE, *INTS)),
    Row("remainder-scalar", lambda a: a % 2, (x,), (*WIDE, *INTS)),
    Row("fmod", torch.fmod, (x, nonzero(3, 5)), (*WIDE, *INTS)),
    Row("rremainder-scalar", lambda a: torch.remainder(5, a), (nonzero(3, 5),), INTS, grad=False),
    Row("fmod-scalar", lambda a: torch.fmod(a, 2), (x,), (*WIDE, *INTS)),
    Row("xlogy-scalars", lambda a: torch.xlogy(a, 2.5) + torch.xlogy(2.5, a), (positive(3, 5),), FLOATS),
    Row("copysign-scalar", lambda a: torch.copysign(a, -1.0), (nonzero(3, 5),), FLOATS),
    Row("atan2", torch.atan2, (x, nonzero(3, 5)), FLOATS),
    Row("xlogy", torch.xlogy, (x, positive(3, 5)), FLOATS),
    Row("copysign", torch.copysign, (x, nonzero(3, 5)), FLOATS),
    Row("hypot", torch.hypot, (nonzero(3, 5), nonzero(3, 5)), FLOATS),
    Row("logaddexp", torch.logaddexp, tensors, FLOATS),
    Row("logaddexp2", torch.logaddexp2, tensors, FLOATS),
    Row("heaviside", torch.heaviside, broadcast, ALL, grad=False),
    Row("heaviside-special", lambda a: torch.heaviside(a[:, None], a), (special(),), EVERY, grad=False),
    Row("addcmul", lambda a, b, c: torch.addcmul(a, b, c, value=0.3), (x, y, row)),
    Row("addcdiv", lambda a, b, c: torch.addcdiv(a, b, c, value=0.3), (x, y, positive(5))),
    Row("lerp", torch.lerp, (x, y, unit), FLOATS),
    Row("lerp-scalar", lambda a, b: torch.lerp(a, b, 0.1), tensors, FLOATS),
    Row("dist-chain", lambda a, b: ((a - b) ** 2).sum().sqrt(), tensors, WIDE),
]  # fmt: skip

_MODES = [
    Row(
        f"div-{mode}-{what}",
        lambda a, *b, mode=mode: torch.div(a, *(b or (2,)), rounding_mode=mode),
        (any_of(3, 5, low=-6, high=6), *((nonzero(3, 5),) if what == "tensor" else ())),
        (*WIDE, *INTS),
        grad=False,
    )
    for mode in ("floor", "trunc")
    for what in ("tensor", "scalar")
]
_MODES.append(
    Row(
        "floor_divide",
        lambda a, b: a // b,
        (x, nonzero(3, 5)),
        (*WIDE, *INTS),
        grad=False,
    )
)

EXTREMA = [
    Row("maximum", torch.maximum, (distinct(4, 7), any_of(4, 7, low=0.1, high=0.2)), NUMBERS),
    Row("minimum", torch.minimum, (distinct(4, 7), any_of(4, 7, low=0.1, high=0.2)), NUMBERS),
    Row("maximum-special", torch.maximum, (special(), special()), FLOATS, grad=False),
    Row("fmax", torch.fmax, (special(), any_of(9)), (F32, F64, BF16), grad=False),
    Row("fmin", torch.fmin, (special(), any_of(9)), (F32, F64, BF16), grad=False),
    Row("clamp", lambda a: a.clamp(-1, 1), (distinct(4, 7),), NUMBERS),
    Row("clamp-min", lambda a: a.clamp(min=0.1), (distinct(4, 7),), FLOATS),
    Row("clamp-max", lambda a: a.clamp(max=1), (distinct(4, 7),), NUMBERS),
    Row("clamp-tensors", torch.clamp, (x, any_of(5, low=-2, high=-1), positive(5)), FLOATS),
    Row("clamp_max", lambda a: torch.clamp_max(a, 1), (distinct(4, 7),), NUMBERS),
    Row("clamp_min-tensor", torch.clamp_min, (distinct(4, 7), any_of(7, low=0.1, high=0.2)), FLOATS),
    Row("clamp_max-tensor", torch.clamp_max, (distinct(4, 7), any_of(7, low=0.1, high=0.2)), FLOATS),
    Row("clamp-special", lambda a: a.clamp(-1, 1), (special(),), FLOATS, grad=False),
]  # fmt: skip

COMPARISONS = [
    Row(f"{n}-{what}", lambda a, *b, n=n: getattr(torch, n)(a, *(b or (1,))), inputs, ALL, grad=False)
    for n in ("eq", "ne", "lt", "le", "gt", "ge")
    for what, inputs in (("tensor", broadcast), ("scalar", (x,)))
]  # fmt: skip

LOGIC = [
    Row(n, _function(n), broadcast, ALL, grad=False)
    for n in ("logical_and", "logical_or", "logical_xor")
] + [
    Row(n, _function(n), tensors, (*INTS, BOOL), grad=False)
    for n in ("bitwise_and", "bitwise_or", "bitwise_xor")
]
LOGIC += [
    Row("bitwise_not", torch.bitwise_not, (x,), (*INTS, BOOL), grad=False),
    Row("bitwise_and-scalar", lambda a: a & 3, (x,), INTS, grad=False),
    Row("bitwise_or-scalar", lambda a: a | 3, (x,), INTS, grad=False),
    Row("bitwise_xor-scalar", lambda a: a ^ 3, (x,), INTS, grad=False),
    Row("shift-left-tensor", torch.bitwise_left_shift, (any_of(3, 5, low=0, high=9), any_of(5, low=0, high=4)), INTS, grad=False),
    Row("shift-right-tensor", torch.bitwise_right_shift, (any_of(3, 5, low=0, high=9), any_of(5, low=0, high=4)), INTS, grad=False),
    Row("floor_divide-scalar", lambda a: a // 2, (x,), (*WIDE, *INTS), grad=False),
    Row("shift-left", lambda a: torch.bitwise_left_shift(a, 2), (any_of(3, 5, low=0, high=9),), INTS, grad=False),
    Row("shift-right", lambda a: torch.bitwise_right_shift(a, 1), (any_of(3, 5, low=0, high=9),), INTS, grad=False),
]  # fmt: skip

SELECTION = [
    Row("where", lambda c, a, b: torch.where(c, a, b), (mask(3, 1), x, row), ALL),
    Row("where-scalar", lambda c, a: torch.where(c, a, 0.0), (mask(3, 5), x), FLOATS),
    Row("masked_fill", lambda a, m: a.masked_fill(m, 2), (x, mask(3, 1)), ALL),
    Row("masked_fill-inf", lambda a, m: a.masked_fill(m, float("-inf")), (x, mask(5))),
    Row(
        "masked_fill-tensor",
        lambda a, m, v: a.masked_fill(m, v),
        (x, mask(5), any_of()),
    ),
]

# Conversions between each pair of dtypes, and copies.
CONVERSIONS = [
    Row(f"to-{str(d)[6:]}", lambda a, d=d: a.to(d), (any_of(3, 5, low=0, high=9),), ALL)
    for d in (F32, F64, BF16, I64, I32, BOOL, torch.float16, torch.uint8, torch.int8)
] + [
    Row("clone", torch.clone, (x,), ALL),
    Row("type_as", lambda a, b: a.type_as(b), (x, of(I32, y)), NUMBERS, grad=False),
    Row("contiguous", lambda a: a.t().contiguous(), (x,), ALL),
]

# In-place writes, which are functionalized before the tracer sees them.
IN_PLACE = [
    Row("add_", lambda a, b: a.clone().add_(b), tensors, ALL),
    Row("mul_-scalar", lambda a: a.clone().mul_(3), (x,), NUMBERS),
    Row("copy_", lambda a, b: a.clone().copy_(b), (x, row), ALL),
    Row("copy_-mixed", lambda a, b: a.clone().copy_(b), (x, of(I64, row)), ALL, grad=False),
    Row("fill_", lambda a: a.clone().fill_(2), (x,), ALL),
    Row("zero_", lambda a: a.clone().zero_(), (x,), ALL),
    Row("write-through-view", lambda a, b: _write(a.clone(), b), (any_of(4, 5), row), ALL),
    Row("write-base-read-view", lambda a: _read_view(a.clone()), (any_of(4, 5),), ALL),
    Row("masked-assignment", lambda a, m: _assign(a.clone(), m), (x, mask(3, 5)), ALL),
]  # fmt: skip


def _write(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    a[1:3].t()[:, 0].copy_(b)
    return a


def _read_view(a: torch.Tensor) -> torch.Tensor:
    view = a.t()[1]
    a.mul_(2) if a.dtype is not BOOL else a.logical_not_()
    return view + 1


def _assign(a: torch.Tensor, m: torch.Tensor) -> torch.Tensor:
    a[m] = 1
    return a


_INTEGER_EDGES = [
    Row("int64-large", lambda a: a * 3 + 1, (lambda d, g: torch.tensor([2**62, -(2**62), 2**53 + 1]),), (I64,), grad=False),
    Row("int32-wraps", lambda a: a + a, (lambda d, g: torch.tensor([2**31 - 1, -(2**31)], dtype=I32),), (I32,), grad=False),
    Row("bool-sum-of-products", lambda a, b: (a & b) | ~a, (mask(3, 5), mask(5)), (BOOL,), grad=False),
]  # fmt: skip

ROWS = [
    *UNARY, *PROMOTED, *SPECIAL_FUNCTIONS, *ROUNDING, *SIGNS, *TESTS, *ACTIVATIONS,
    *ARITHMETIC, *_MODES,
    *EXTREMA, *COMPARISONS, *LOGIC, *SELECTION, *CONVERSIONS, *IN_PLACE,
    *_INTEGER_EDGES,
]  # fmt: skip
