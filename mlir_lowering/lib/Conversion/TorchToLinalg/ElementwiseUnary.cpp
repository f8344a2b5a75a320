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
  Value torch_ltc::emit##name(ElementwiseBody &s, name##Arguments args) {      \
    return s.unary<math::name##Op>(s.arg(args.self));                          \
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

Value torch_ltc::emitLog(ElementwiseBody &s, LogArguments args) {
  return s.log(s.arg(args.self));
}
Value torch_ltc::emitLog2(ElementwiseBody &s, Log2Arguments args) {
  return s.log2(s.arg(args.self));
}

// Copies the operand's sign: MLIR 22's polynomial for erf returns 0 at -0.
Value torch_ltc::emitErf(ElementwiseBody &s, ErfArguments args) {
  Value x = s.arg(args.self);
  return s.copySign(s.unary<math::ErfOp>(x), x);
}

Value torch_ltc::emitExpm1(ElementwiseBody &s, Expm1Arguments args) {
  return s.unary<math::ExpM1Op>(s.arg(args.self));
}

//===----------------------------------------------------------------------===//
// Rounding
//===----------------------------------------------------------------------===//

// Defines the builder of a rounding op, which returns integers unchanged.
#define ROUNDING_OP(name, MathOp)                                              \
  Value torch_ltc::emit##name(ElementwiseBody &s, name##Arguments args) {      \
    return s.isFloat() ? s.unary<math::MathOp>(s.arg(args.self))               \
                       : s.arg(args.self);                                     \
  }
ROUNDING_OP(Floor, FloorOp)
ROUNDING_OP(Ceil, CeilOp)
ROUNDING_OP(Trunc, TruncOp)
ROUNDING_OP(Round, RoundEvenOp)
#undef ROUNDING_OP

Value torch_ltc::emitFrac(ElementwiseBody &s, FracArguments args) {
  Value x = s.arg(args.self);
  return s.sub(x, s.unary<math::TruncOp>(x));
}

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

Value torch_ltc::emitNeg(ElementwiseBody &s, NegArguments args) {
  return s.neg(s.arg(args.self));
}
Value torch_ltc::emitAbs(ElementwiseBody &s, AbsArguments args) {
  return s.abs(s.arg(args.self));
}
Value torch_ltc::emitSquare(ElementwiseBody &s, SquareArguments args) {
  return s.square(s.arg(args.self));
}

Value torch_ltc::emitReciprocal(ElementwiseBody &s, ReciprocalArguments args) {
  return s.div(s.constant(1), s.arg(args.self));
}

Value torch_ltc::emitSign(ElementwiseBody &s, SignArguments args) {
  Value x = s.arg(args.self);
  if (isUnsigned(s.dtype))
    return s.convert(s.truth(x), s.builder.getI1Type(), s.dtype);
  // torch returns 0 for NaN, which is neither greater nor less than 0.
  Value zero = s.integer(0);
  Value negative =
      s.select(s.compare(Comparison::lt, x, zero), s.integer(-1), zero);
  return s.select(s.compare(Comparison::gt, x, zero), s.integer(1), negative);
}

Value torch_ltc::emitDeg2rad(ElementwiseBody &s, Deg2radArguments args) {
  return s.mul(s.arg(args.self), s.constant(std::numbers::pi / 180));
}

Value torch_ltc::emitRad2deg(ElementwiseBody &s, Rad2degArguments args) {
  return s.mul(s.arg(args.self), s.constant(180 / std::numbers::pi));
}

Value torch_ltc::emitSinc(ElementwiseBody &s, SincArguments args) {
  Value x = s.arg(args.self), one = s.constant(1);
  Value isZero = s.compare(Comparison::eq, x, s.constant(0));
  Value angle = s.mul(x, s.constant(std::numbers::pi));
  Value quotient = s.div(s.unary<math::SinOp>(angle), angle);
  return s.select(isZero, one, quotient);
}

/// -x log x, with its limit 0 at 0, and -inf below 0.
Value torch_ltc::emitSpecialEntr(ElementwiseBody &s,
                                 SpecialEntrArguments args) {
  Value x = s.arg(args.self), zero = s.constant(0);
  Value below = s.constant(-std::numeric_limits<double>::infinity());
  Value entropy = s.neg(s.mul(x, s.log(x)));
  Value isZero = s.compare(Comparison::eq, x, zero);
  Value isBelow = s.compare(Comparison::lt, x, zero);
  return s.select(isZero, zero, s.select(isBelow, below, entropy));
}

Value torch_ltc::emitLogit(ElementwiseBody &s, LogitArguments args) {
  Value x = s.arg(args.self), one = s.constant(1);
  if (s.has(args.eps)) {
    // The order of the comparisons matters if eps is greater than one half.
    Value low = s.rounded(s.arg(args.eps)), high = s.rounded(s.sub(one, low));
    Value notAbove = s.select(s.compare(Comparison::gt, x, high), high, x);
    x = s.select(s.compare(Comparison::lt, x, low), low, notAbove);
  }
  return s.log(s.rounded(s.div(x, s.rounded(s.sub(one, x)))));
}

//===----------------------------------------------------------------------===//
// Truth values
//===----------------------------------------------------------------------===//

Value torch_ltc::emitLogicalNot(ElementwiseBody &s, LogicalNotArguments args) {
  return s.logicalNot(s.argAsBool(args.self));
}

Value torch_ltc::emitIsnan(ElementwiseBody &s, IsnanArguments args) {
  return s.isNan(s.arg(args.self));
}

static Value equalsInfinity(ElementwiseBody &s, Value x, double sign) {
  if (!s.isFloat())
    return s.boolean(false);
  double infinity = std::numeric_limits<double>::infinity();
  return s.compare(Comparison::eq, x, s.constant(sign * infinity));
}

Value torch_ltc::emitIsinf(ElementwiseBody &s, IsinfArguments args) {
  Value x = s.arg(args.self);
  return equalsInfinity(s, s.isFloat() ? s.abs(x) : x, 1);
}

Value torch_ltc::emitIsposinf(ElementwiseBody &s, IsposinfArguments args) {
  return equalsInfinity(s, s.arg(args.self), 1);
}

Value torch_ltc::emitIsneginf(ElementwiseBody &s, IsneginfArguments args) {
  return equalsInfinity(s, s.arg(args.self), -1);
}

Value torch_ltc::emitSignbit(ElementwiseBody &s, SignbitArguments args) {
  Value x = s.arg(args.self);
  if (!s.isFloat())
    return isUnsigned(s.dtype) ? s.boolean(false)
                               : s.compare(Comparison::lt, x, s.integer(0));
  return s.signBit(x);
}

Value torch_ltc::emitBitwiseNot(ElementwiseBody &s, BitwiseNotArguments args) {
  Value allOnes = isBool(s.dtype) ? s.boolean(true) : s.integer(-1);
  return s.binary<arith::XOrIOp>(s.arg(args.self), allOnes);
}
