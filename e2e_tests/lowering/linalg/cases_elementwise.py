"""Elementwise ops and casts."""

from __future__ import annotations

import torch
from lowering.linalg.case_functions import Case
from lowering.linalg.inputs import (
    BF16,
    BOOL,
    F16,
    F32,
    F64,
    FLOATS,
    I8,
    I16,
    I32,
    I64,
    INTS,
    U8,
    grid,
    random,
    special,
)  # fmt: skip
from torch_text import Parameter

CASES: list[Case] = []


def add(op: str, *args, tolerance: float | None = None, **kwargs) -> None:
    CASES.append(Case(op, args, kwargs, tolerance))


# Functions of one float. They have a tolerance, because libm's functions are compared with
# torch's vectorized ones.
for op in ("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "rsqrt",
           "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh",
           "acosh", "atanh", "erf", "erfc", "sigmoid", "reciprocal", "sinc", "deg2rad",
           "rad2deg"):  # fmt: skip
    for dtype in (F32, F64, BF16):
        add(op, special(dtype), tolerance=1e-5)
    add(op, random(2, 5, dtype=F32, low=0.1, high=0.9), tolerance=1e-5)
    add(op, torch.arange(1, 4), tolerance=1e-5)  # integers become float32

for op in ("gelu", "silu", "hardswish", "hardsigmoid", "mish", "relu", "softplus",
           "leaky_relu", "hardtanh", "elu", "celu", "hardshrink", "softshrink"):  # fmt: skip
    for dtype in (F32, BF16):
        # Excludes NaN and inf: torch's vectorized gelu returns NaN for inf.
        x = special(dtype)[2:] if op == "gelu" else special(dtype)
        add(op, x, tolerance=2e-5)
add("gelu", special(), approximate="tanh", tolerance=2e-5)
add("elu", special(), 0.7, 1.3, 0.9, tolerance=1e-5)
add("softplus", special(), 2.0, 3.0, tolerance=1e-5)
add("threshold", special(), 0.4, 9.0)
add("hardtanh", special(), -0.3, 0.8)
add("leaky_relu", special(), 0.25)
add("_prelu_kernel", random(4, 3), random(1, 3), tolerance=1e-6)
add("logit", random(6, low=0.05, high=0.95), tolerance=1e-5)
add("logit", random(6, low=-0.5, high=1.5), 1e-2, tolerance=1e-5)

finite = special()[3:]
gradient = random(len(finite))
for op in ("gelu_backward", "silu_backward", "hardswish_backward", "mish_backward",
           "hardsigmoid_backward", "sigmoid_backward", "tanh_backward"):  # fmt: skip
    add(op, gradient, finite, tolerance=2e-5)
    add(op, gradient.to(BF16), finite.to(BF16), tolerance=2e-5)
add("gelu_backward", gradient, finite, approximate="tanh", tolerance=2e-5)
add("hardtanh_backward", gradient, finite, -1.0, 1.0)
add("leaky_relu_backward", gradient, finite, 0.1, False, tolerance=1e-6)
add("elu_backward", gradient, 0.7, 1.3, 0.9, False, finite, tolerance=1e-5)
add("elu_backward", gradient, 0.7, 1.3, 0.9, True, finite, tolerance=1e-5)
add("softplus_backward", gradient, finite, 1.0, 20.0, tolerance=1e-5)
add("threshold_backward", gradient, finite, 0.0)
add("hardshrink_backward", gradient, finite, 0.5)
add("softshrink_backward", gradient, finite, 0.5)
add("log_sigmoid_backward", gradient, finite, torch.exp(-finite.abs()), tolerance=1e-5)

for op in ("neg", "abs", "floor", "ceil", "round", "trunc", "sign", "sgn", "square"):
    for dtype in (*FLOATS, I64, I32, I8, U8):
        add(op, special(dtype), tolerance=1e-6)
add("sign", special(BOOL))
for dtype in FLOATS:
    add("frac", special(dtype))
for op in ("isnan", "isinf", "isposinf", "isneginf", "signbit", "logical_not"):
    for dtype in (F32, BF16, I64, U8):
        add(op, special(dtype))
for dtype in (*INTS, BOOL):
    add("bitwise_not", special(dtype))

# Arithmetic: all pairs of edge values.
for dtype in (*FLOATS, I64, I32, I8, U8):
    a, b = grid(dtype)
    for op in ("add.Tensor", "sub.Tensor", "mul.Tensor", "maximum", "minimum", "fmax",
               "fmin"):  # fmt: skip
        add(op, a, b)
    for op in ("eq", "ne", "lt", "le", "gt", "ge"):
        add(f"{op}.Tensor", a, b)
    for op in ("logical_and", "logical_or", "logical_xor"):
        add(op, a, b)
    add("div.Tensor", a, b, tolerance=1e-6)
    divisor = torch.where(b == 0, torch.ones_like(b), b)
    for op in ("remainder.Tensor", "fmod.Tensor", "floor_divide"):
        # Excludes the lowest integer: dividing it by -1 overflows in torch.
        add(op, a[1:], divisor, tolerance=1e-6)
    for mode in ("trunc", "floor"):
        add("div.Tensor_mode", a[1:], divisor, rounding_mode=mode, tolerance=1e-6)
for dtype in (F32, F64, BF16):
    a, b = grid(dtype)
    add("div.Tensor_mode", a, b, rounding_mode="floor", tolerance=1e-6)
    add("div.Tensor_mode", a, b, rounding_mode=None, tolerance=1e-6)
    for op in ("atan2", "xlogy.Tensor", "copysign.Tensor", "hypot", "logaddexp",
               "logaddexp2", "heaviside", "pow.Tensor_Tensor"):  # fmt: skip
        add(op, a, b, tolerance=1e-5)
a, b = grid(BOOL)
for op in ("add.Tensor", "mul.Tensor", "maximum", "eq.Tensor", "lt.Tensor",
           "logical_and", "bitwise_and.Tensor", "bitwise_xor.Tensor"):  # fmt: skip
    add(op, a, b)
for dtype in INTS:
    a, b = grid(dtype)
    for op in ("and", "or", "xor"):
        add(f"bitwise_{op}.Tensor", a, b)
    counts = torch.arange(0, torch.iinfo(dtype).bits, 3, dtype=dtype)
    add("bitwise_left_shift.Tensor", a, counts)
    add("bitwise_right_shift.Tensor", a, counts)
    exponents = torch.arange(0, 9, dtype=dtype)
    add("pow.Tensor_Tensor", a, exponents)
    add("pow.Tensor_Scalar", a, 3)
add("pow.Tensor_Tensor", torch.tensor([-1, 1, 2, -3]), torch.tensor([-3, -2, -1, -2]))
for exponent in (0.0, 0.5, 1.0, 2.0, 3.0, -0.5, -1.0, -2.0, 2.5, -3.0):
    add("pow.Tensor_Scalar", special(), exponent, tolerance=1e-5)
add("pow.Tensor_Scalar", special(), Parameter(2.5), tolerance=1e-5)
add("pow.Tensor_Scalar", torch.arange(5), 0.5, tolerance=1e-6)
add("pow.Scalar", 2.0, special(), tolerance=1e-5)
add("pow.Scalar", 2, torch.arange(5))

# Broadcasts, alpha, scalar parameters.
add("add.Tensor", random(2, 3, 4), random(3, 1), alpha=0.5, tolerance=1e-6)
add("add.Tensor", random(4), random(2, 1, 4), tolerance=1e-6)
add("add.Tensor", random(2, 3), random(), tolerance=1e-6)
add("add.Tensor", random(), random(), tolerance=1e-6)
add("add.Tensor", random(0, 3), random(3))
add("sub.Tensor", random(2, 1), random(1, 3), alpha=Parameter(0.25), tolerance=1e-6)
add("rsub.Scalar", random(3), 2.0, 3.0, tolerance=1e-6)
add("add.Scalar", torch.arange(4), 3, 2)
add("mul.Scalar", random(3), Parameter(0.1))
add("mul.Scalar", random(3, dtype=BF16), Parameter(0.1))
add("mul.Scalar", random(3, dtype=F64), 0.1)
add("div.Scalar", torch.arange(5), 3, tolerance=1e-7)
add("floor_divide.Scalar", random(5), 0.7)
add("remainder.Scalar", torch.arange(-5, 5), 3)
add("remainder.Scalar_Tensor", 7, torch.tensor([2, -3, 5]))

# Mixed dtypes: which operand determines the result's dtype and precision.
add("add.Tensor", random(3, dtype=F32), torch.arange(3))
add("mul.Tensor", random(3, dtype=BF16), random(3, dtype=F32))
add("mul.Tensor", random(3, dtype=BF16), random(dtype=F32))
add("add.Tensor", torch.arange(3), torch.tensor(2.5))
add("add.Tensor", torch.arange(3, dtype=U8), torch.arange(3, dtype=I8))
add("add.Tensor", random(3, dtype=BF16), random(3, dtype=F16))
add("div.Tensor", torch.arange(5), torch.arange(1, 6), tolerance=1e-7)
add("lt.Tensor", torch.arange(5), torch.tensor(2.5))
add("eq.Scalar", torch.tensor([0.1, 0.2]), 0.1)
add("eq.Scalar", torch.tensor([0.1, 0.2], dtype=BF16), 0.1)
add("eq.Scalar", torch.arange(3), 1.5)
add("ge.Scalar", torch.arange(5), Parameter(2))
add("ge.Scalar", random(5), Parameter(0.1))
add("gt.Tensor", torch.tensor([200], dtype=U8), torch.tensor([-1], dtype=I64))
add("eq.Tensor", torch.tensor([2**53 + 1]), torch.tensor([2.0**53]))

# Selection.
condition = random(3, 4, dtype=BOOL)
for dtype in (F32, BF16, I64, U8, BOOL):
    add("where.self", condition, random(3, 4, dtype=dtype), random(1, 4, dtype=dtype))
add("where.self", condition, random(3, 4), torch.arange(4))
add("masked_fill.Scalar", random(3, 4), condition, float("-inf"))
add("masked_fill.Scalar", random(3, 4, dtype=I64), condition, 7)
add("masked_fill.Scalar", random(3, 4), condition[:1], Parameter(2.5))
add("masked_fill.Tensor", random(3, 4), condition, torch.tensor(2.0))
for dtype in (F32, BF16, I64):
    x = special(dtype)
    add("clamp", x, -1, 2)
    add("clamp", x, None, 1)
    add("clamp", x, 0, None)
    add("clamp", x, 3, 1)
    add("clamp_min", x, 1)
    add("clamp_max", x, 1)
add("clamp", torch.arange(5), 0.5, 2.5)
add("clamp.Tensor", random(3, 4), random(4), None)
add("clamp.Tensor", random(3, 4), random(4), random(3, 1))
add("clamp_min.Tensor", random(3), random(3))

# Ops with three operands.
a, b, c = random(3, 4), random(3, 4), random(3, 4)
add("lerp.Scalar", a, b, 0.1, tolerance=1e-6)
add("lerp.Scalar", a, b, 0.9, tolerance=1e-6)
add("lerp.Scalar", a, b, Parameter(0.999), tolerance=1e-6)
add("lerp.Tensor", a, b, c, tolerance=1e-5)
add("addcmul", a, b, c, value=0.3, tolerance=1e-6)
add("addcdiv", a, b, c, value=Parameter(-0.3), tolerance=1e-6)
add("addcmul", a.to(BF16), b.to(BF16), c.to(BF16), tolerance=1e-6)

# Casts: torch's CPU rules for values that don't fit.
big = torch.tensor([float("nan"), float("inf"), -float("inf"), 1e10, -1e10, 3.99, -3.99,
                    300.0, -1.0, 1e19, 0.0, -0.0])  # fmt: skip
for target in (I64, I32, BOOL, F64, BF16, F16):
    for source in (big, big.to(F64), big.to(BF16)):
        add("_to_copy", source, dtype=target)
for target in (I8, U8, I16):
    add("_to_copy", torch.tensor([0.0, 3.99, -3.99, 100.5]).abs(), dtype=target)
for target in (F32, F64, BF16, I64, I32, I8, U8, BOOL):
    for source in (I64, I32, U8, BOOL):
        add("_to_copy", special(source), dtype=target)
add("_to_copy", torch.tensor([1.00390625001], dtype=F64), dtype=BF16)
add("clone", random(3))

# Further overloads, which are lowered like those above.
whole = torch.arange(-4, 5)
add("sub.Scalar", random(3), 2.0, 3.0, tolerance=1e-6)
add("rsub.Tensor", random(3), random(3), alpha=2, tolerance=1e-6)
add("div.Scalar_mode", whole, 3, rounding_mode="floor")
add("div.Scalar_mode", random(5), 0.7, rounding_mode="trunc")
add("fmod.Scalar", whole, 3)
add("fmod.Scalar", random(5), -0.7, tolerance=1e-6)
add("xlogy.Scalar_Other", special(), 2.0, tolerance=1e-5)
add("xlogy.Scalar_Self", 2.0, special(), tolerance=1e-5)
add("copysign.Scalar", special(), -1.0)
for op in ("and", "or", "xor"):
    add(f"bitwise_{op}.Scalar", whole, 6)
add("bitwise_left_shift.Tensor_Scalar", whole, 3)
add("bitwise_right_shift.Tensor_Scalar", whole, 1)
add("alias", random(3))
add("detach", random(3))
add("lift_fresh_copy", random(3))
