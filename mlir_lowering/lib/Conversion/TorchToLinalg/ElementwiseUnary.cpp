//===- ElementwiseUnary.cpp - Scalar builders with one operand ------------===//

#include "ElementwiseScalar.h"

#include <limits>
#include <numbers>

using namespace mlir;
using namespace mlir::torch_ltc;

//===----------------------------------------------------------------------===//
// One math op each
//===----------------------------------------------------------------------===//

#define MATH_OP(name)                                                          \
  Value torch_ltc::emit##name(ElementwiseBody &s) {                            \
    return s.unary<math::name##Op>(s.arg(0));                                  \
  }
MATH_OP(Exp)
MATH_OP(Exp2)
MATH_OP(Log10)
MATH_OP(Log1p)
MATH_OP(Sqrt)
MATH_OP(Rsqrt)
MATH_OP(Sin)
MATH_OP(Cos)
MATH_OP(Tan)
MATH_OP(Asin)
MATH_OP(Acos)
MATH_OP(Atan)
MATH_OP(Sinh)
MATH_OP(Cosh)
MATH_OP(Tanh)
MATH_OP(Asinh)
MATH_OP(Acosh)
MATH_OP(Atanh)
MATH_OP(Erfc)
#undef MATH_OP

Value torch_ltc::emitLog(ElementwiseBody &s) { return s.log(s.arg(0)); }
Value torch_ltc::emitLog2(ElementwiseBody &s) { return s.log2(s.arg(0)); }

// Copies the operand's sign: MLIR 22's polynomial for erf returns 0 at -0.
Value torch_ltc::emitErf(ElementwiseBody &s) {
  Value x = s.arg(0);
  return s.copySign(s.unary<math::ErfOp>(x), x);
}

Value torch_ltc::emitExpm1(ElementwiseBody &s) {
  return s.unary<math::ExpM1Op>(s.arg(0));
}

//===----------------------------------------------------------------------===//
// Rounding
//===----------------------------------------------------------------------===//

// Defines the builder of a rounding op, which returns integers unchanged.
#define ROUNDING_OP(name, MathOp)                                              \
  Value torch_ltc::emit##name(ElementwiseBody &s) {                            \
    return s.isFloat() ? s.unary<math::MathOp>(s.arg(0)) : s.arg(0);           \
  }
ROUNDING_OP(Floor, FloorOp)
ROUNDING_OP(Ceil, CeilOp)
ROUNDING_OP(Trunc, TruncOp)
ROUNDING_OP(Round, RoundEvenOp)
#undef ROUNDING_OP

Value torch_ltc::emitFrac(ElementwiseBody &s) {
  Value x = s.arg(0);
  return s.sub(x, s.unary<math::TruncOp>(x));
}

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

Value torch_ltc::emitNeg(ElementwiseBody &s) { return s.neg(s.arg(0)); }
Value torch_ltc::emitAbs(ElementwiseBody &s) { return s.abs(s.arg(0)); }
Value torch_ltc::emitSquare(ElementwiseBody &s) { return s.square(s.arg(0)); }

Value torch_ltc::emitReciprocal(ElementwiseBody &s) {
  return s.div(s.constant(1), s.arg(0));
}

Value torch_ltc::emitSign(ElementwiseBody &s) {
  Value x = s.arg(0);
  if (isUnsigned(s.dtype))
    return s.convert(s.truth(x), s.builder.getI1Type(), s.dtype);
  // torch returns 0 for NaN, which is neither greater nor less than 0.
  Value zero = s.integer(0);
  Value negative =
      s.select(s.compare(Comparison::lt, x, zero), s.integer(-1), zero);
  return s.select(s.compare(Comparison::gt, x, zero), s.integer(1), negative);
}

Value torch_ltc::emitDeg2rad(ElementwiseBody &s) {
  return s.mul(s.arg(0), s.constant(std::numbers::pi / 180));
}

Value torch_ltc::emitRad2deg(ElementwiseBody &s) {
  return s.mul(s.arg(0), s.constant(180 / std::numbers::pi));
}

Value torch_ltc::emitSinc(ElementwiseBody &s) {
  Value x = s.arg(0), one = s.constant(1);
  Value isZero = s.compare(Comparison::eq, x, s.constant(0));
  Value angle = s.mul(x, s.constant(std::numbers::pi));
  Value quotient = s.div(s.unary<math::SinOp>(angle), angle);
  return s.select(isZero, one, quotient);
}

/// -x log x, with its limit 0 at 0, and -inf below 0.
Value torch_ltc::emitSpecialEntr(ElementwiseBody &s) {
  Value x = s.arg(0), zero = s.constant(0);
  Value below = s.constant(-std::numeric_limits<double>::infinity());
  Value entropy = s.neg(s.mul(x, s.log(x)));
  Value isZero = s.compare(Comparison::eq, x, zero);
  Value isBelow = s.compare(Comparison::lt, x, zero);
  return s.select(isZero, zero, s.select(isBelow, below, entropy));
}

/// aten.logit(self, eps)
Value torch_ltc::emitLogit(ElementwiseBody &s) {
  Value x = s.arg(0), one = s.constant(1);
  if (s.has(1)) {
    // The order of the comparisons matters if eps is greater than one half.
    Value low = s.rounded(s.arg(1)), high = s.rounded(s.sub(one, low));
    Value notAbove = s.select(s.compare(Comparison::gt, x, high), high, x);
    x = s.select(s.compare(Comparison::lt, x, low), low, notAbove);
  }
  return s.log(s.rounded(s.div(x, s.rounded(s.sub(one, x)))));
}

//===----------------------------------------------------------------------===//
// Truth values
//===----------------------------------------------------------------------===//

Value torch_ltc::emitLogicalNot(ElementwiseBody &s) {
  return s.logicalNot(s.argAsBool(0));
}

Value torch_ltc::emitIsnan(ElementwiseBody &s) { return s.isNan(s.arg(0)); }

static Value equalsInfinity(ElementwiseBody &s, Value x, double sign) {
  if (!s.isFloat())
    return s.boolean(false);
  double infinity = std::numeric_limits<double>::infinity();
  return s.compare(Comparison::eq, x, s.constant(sign * infinity));
}

Value torch_ltc::emitIsinf(ElementwiseBody &s) {
  Value x = s.arg(0);
  return equalsInfinity(s, s.isFloat() ? s.abs(x) : x, 1);
}

Value torch_ltc::emitIsposinf(ElementwiseBody &s) {
  return equalsInfinity(s, s.arg(0), 1);
}

Value torch_ltc::emitIsneginf(ElementwiseBody &s) {
  return equalsInfinity(s, s.arg(0), -1);
}

Value torch_ltc::emitSignbit(ElementwiseBody &s) {
  Value x = s.arg(0);
  if (!s.isFloat())
    return isUnsigned(s.dtype) ? s.boolean(false)
                               : s.compare(Comparison::lt, x, s.integer(0));
  return s.signBit(x);
}

Value torch_ltc::emitBitwiseNot(ElementwiseBody &s) {
  Value allOnes = isBool(s.dtype) ? s.boolean(true) : s.integer(-1);
  return s.binary<arith::XOrIOp>(s.arg(0), allOnes);
}
